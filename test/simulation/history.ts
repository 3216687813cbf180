/** One history: a world, its actors and their faults, by seed, and what the oracle says of it. */
import { actAsClients } from './actors/clients.js'
import { actAsHosts } from './actors/commands.js'
import { actAsDeath, DEATH_MS } from './actors/death.js'
import { actAsFate } from './actors/faults.js'
import { actAroundSites } from './actors/messages.js'
import { actRarely } from './actors/rare.js'
import { type Ask, actAsOperator, readAll } from './actors/readers.js'
import type { Load } from './bundle.js'
import type { Config } from './config.js'
import { judge, judgeLeft } from './oracle/oracle.js'
import { type Any, type History, type Operation, siteOf } from './record.js'
import { Stage } from './stage.js'
import type { Store } from './store.js'
import { DIED, turn, World } from './world.js'

const DAY = 86_400_000
/** Longer than the longest deadline of a command. */
const SETTLE_MS = 8_500

export interface Outcome {
  history: History
  world: World
  /** Digest of all commands and replies of the store, or of all operations without a store. */
  digest: string
}

const beginHistory = (config: Config): History => ({
  config,
  userIds: ['ada', 'bob', 'eve'].slice(0, config.users),
  operations: [],
  handovers: [],
  heard: [],
  viewers: [],
  runs: [],
  lives: [],
  pauses: [],
  faults: [],
  losses: [],
  hasClockSteps: false,
  wasFull: false,
  reported: [],
  probes: [],
  reading: null,
  hasFinished: false,
  calmFrom: config.faults.length > 0 ? Number.POSITIVE_INFINITY : 0,
  quietAt: 0,
  left: null,
  violations: [],
})

/** The faults end: every node lives, every link is whole. */
async function heal(stage: Stage): Promise<void> {
  const { world } = stage
  stage.isOver = true
  if (!stage.isMemory) await world.setFull(false)
  world.loseReply = () => false
  world.storeBlockedUntil = 0
  world.slowTail = 20
  await world.run(Math.max(world.now, ...stage.living().map(({ pausedUntil }) => pausedUntil)) + 10)
  for (const node of stage.nodes) {
    if (node.life.isDead) stage.start(node)
    for (const link of node.life.links) link.recover()
  }
}

/** Each client comes once more, and in a calm world its command must reach it. */
function probe(stage: Stage): void {
  const { world, history, nodes } = stage
  for (const [i, { user_id, client_id }] of stage.clients.entries()) {
    const own = { user_id, client_id }
    const instance = { ...own, instance_id: `${user_id}-${client_id}-probe` }
    const node = nodes[i % nodes.length] as (typeof nodes)[number]
    const other = nodes[(i + 1) % nodes.length] as (typeof nodes)[number]
    const command_id = `probe-${user_id}-${client_id}`
    const result: History['probes'][number] = { isReady: false, command_id, commands: [] }
    history.probes.push(result)
    const deliver = (command: Any): void => {
      const { command_id, attempt, action, payload } = command
      const handover = { command_id, attempt, action, payload: JSON.stringify(payload), at: world.now, node: node.name }
      history.handovers.push({ ...instance, ...handover, plan: 'probe', done: world.now })
      result.commands.push(command_id)
      const end = { state: 'resulted' as const, acknowledge: true }
      void stage.call(node, 'settle', { ...instance, command_id, end: end.state, ...end }, ({ dispatcher }) =>
        dispatcher.settle({ ...instance, command_id, ...end }),
      )
    }
    const run = async () => {
      const connected = await stage.call(node, 'connect', instance, ({ connections }) =>
        connections.connect({ ...instance, client_type: 'console' }),
      )
      const attached = await stage.call(node, 'attach', instance, ({ dispatcher }) =>
        dispatcher.attach(instance, deliver as Any),
      )
      result.isReady = connected.state === 'ok' && attached.state === 'ok'
      if (!result.isReady) stage.violate('probe_refused', `${user_id}/${client_id}: ${connected.code} ${attached.code}`)
      const input = { ...own, command_id, action: 'sync', scope_id: `probe-${user_id}`, deadline_ms: 7_000 }
      const details = { ...input, max: stage.config.maxAttempts }
      result.operation = await stage.call(other, 'dispatch', details, ({ dispatcher }) => dispatcher.dispatch(input))
    }
    run().catch((error) => stage.violate('simulator', error.stack))
  }
}

async function closeAll(stage: Stage): Promise<void> {
  const { world, history, config } = stage
  let closed = 0
  const closing = stage.nodes.map(async (node) => {
    for (const { subscription, node: name } of history.heard) if (name === node.name) subscription.close()
    const { relay, facilities } = stage.runningOn(node)
    await relay.close()
    const ended = (await facilities.close()) as Any
    if (ended?.cut > 0 && config.profile !== 'loss') stage.violate('close_cut', `${node.name} ${JSON.stringify(ended)}`)
    closed++
  })
  Promise.all(closing).catch((error) => stage.violate('close_threw', error.stack))
  await world.run(world.now + 30_000)
  if (closed < stage.nodes.length)
    stage.violate('close_hung', `${stage.nodes.length - closed} nodes are open after 6 s`)
}

/** After the longest lease only records without a lease may be left. */
async function forget(stage: Stage, ask: Ask): Promise<void> {
  const { world, history } = stage
  const [node] = stage.nodes as [(typeof stage.nodes)[number]]
  stage.start(node)
  const deleteSites = async () => {
    for (const user of history.userIds)
      await stage.call(node, 'site.delete', { user }, ({ sites }) => sites.delete(siteOf(user)))
  }
  const endEverything = async () => {
    const { body } = await ask('/sessions?limit=500')
    for (const { session_id, state } of body.items ?? [])
      if (!['closed', 'expired'].includes(state))
        await stage.call(node, 'session.end', { session_id }, ({ sessions }) => sessions.close(session_id))
    await deleteSites()
  }
  endEverything().catch((error) => stage.violate('simulator', error.stack))
  await world.run(world.now + 3_000)
  for (const one of stage.nodes) one.kill()
  world.skip(31 * DAY)
  stage.start(node)
  // Again: a store whose clock went back does not know a site that was declared later than its present time.
  deleteSites().catch((error) => stage.violate('simulator', error.stack))
  await world.run(world.now + 30_000)
  void stage.runningOn(node).facilities.close()
  await world.run(world.now + 3_000)
  world.skip(2 * 3_600_000)
  history.left = await scanBudget(world)
  judgeLeft(history, stage.violate)
}

const SIZES: Record<string, string> = {
  hash: 'HLEN',
  zset: 'ZCARD',
  set: 'SCARD',
  list: 'LLEN',
  string: 'STRLEN',
  stream: 'XLEN',
}

async function scanBudget({ store: { io } }: World): Promise<string[]> {
  const keys: string[] = []
  let cursor = '0'
  do {
    const [next, page] = (await io.call(['SCAN', cursor, 'COUNT', '1000'])) as [string, string[]]
    cursor = next
    for (const key of page) {
      if (!(await io.call(['EXISTS', key]))) continue
      const type = String(await io.call(['TYPE', key]))
      keys.push(`${key} (${type} of ${await io.call([SIZES[type] ?? 'STRLEN', key])})`)
    }
  } while (cursor !== '0')
  return keys.sort()
}

/**
 * Runs one history and judges it.
 *
 * @param store `null` for the memory composition.
 */
export async function runHistory(config: Config, load: Load, store: Store | null, isTraced = false): Promise<Outcome> {
  const world = new World(config.seed, store, isTraced)
  world.slowTail = config.slowTailMs
  world.hasFunctions = config.hasFunctions
  if (store) await world.wipeStore()
  const history = beginHistory(config)
  const stage = new Stage(world, history, load)
  const endsAt = config.seconds * 1_000
  for (const node of stage.nodes) stage.start(node)
  const ask = stage.createRouter()
  actAsClients(stage, endsAt)
  actAsHosts(stage, endsAt)
  actAroundSites(stage, endsAt)
  actAsOperator(stage, endsAt, ask)
  if (store) actAsFate(stage, endsAt)
  await world.run(endsAt)

  await heal(stage)
  void stage.allActed().then(() => {
    history.hasFinished = true
  })
  await world.run(world.now + 5_500)
  for (let i = 0; i < 15 && !history.hasFinished; i++) await world.run(world.now + 1_000)
  if (config.faults.includes('node dies') && stage.nodes.length > 1) {
    actAsDeath(stage).catch((error) => stage.violate('simulator', error.stack))
    await world.run(world.now + DEATH_MS)
    for (const node of stage.nodes) if (node.life.isDead) stage.start(node)
  }
  if (history.hasFinished) history.calmFrom = Math.min(history.calmFrom, world.now)
  probe(stage)
  actRarely(stage)
  await world.run(world.now + SETTLE_MS)
  history.quietAt = world.now

  readAll(stage, ask).then(
    (reading) => {
      history.reading = reading
    },
    (error) => stage.violate('simulator', error.stack),
  )
  await world.run(world.now + 5_000)
  if (!history.reading) stage.violate('reading_hung', 'the last reading did not end within 5 s of a calm world')
  for (const received of history.heard) {
    const { subscription } = received
    if (subscription.closed || received.final) continue
    received.final = { ...subscription.position, pending: subscription.pending }
    received.isOpenAtEnd = true
  }
  judge(history, stage.violate)
  await closeAll(stage)
  if (config.forgets) await forget(stage, ask)
  for (const node of world.nodes) {
    node.life.isDead = true
    node.life.die(DIED)
  }
  await turn()
  return { history, world, digest: world.digest(history.operations.map(summarise)) }
}

const summarise = ({ what, node, call, ret, state, code }: Operation) => [what, node, call, ret, state, code]
