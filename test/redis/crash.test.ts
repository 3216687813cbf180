/** Nodes that are killed between any two steps of delivery: nothing admitted is lost, no reservation stays. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { ASK, walk } from '../contract/clock.js'
import type { NodePlan, Order, Word } from './crash-node.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

/** Commands of the campaign; a night's run has more: RELAYSCOPE_CRASH_COMMANDS=5000. */
const COMMANDS = Number(process.env.RELAYSCOPE_CRASH_COMMANDS ?? 300)
const CLIENTS = 12
const SHARDS = 4
const ACK_TIMEOUT_MS = 400
/** Nodes that are brought to their ends at once. */
const GROUP = 8

/** Checks until it holds; what it waits for happens in other processes. */
async function until(check: () => Promise<boolean>, ms: number): Promise<void> {
  for (const end = Date.now() + ms; !(await check()); await new Promise((resolve) => setTimeout(resolve, 50)))
    if (Date.now() > end) throw new Error(`it did not come true within ${ms} ms`)
}

describeRedis('the death of a node', () => {
  let server: Server
  let connected: Connected
  let dir: string
  const alive = new Set<ChildProcess>()

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'relayscope-crash-'))
    await build({
      entryPoints: [join(import.meta.dirname, 'crash-node.ts')],
      outfile: join(dir, 'node.mjs'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)` },
    })
    server = await startServer()
    connected = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    for (const child of alive) child.kill('SIGKILL')
    await connected?.close()
    await server?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  /** A node that is ready, or has died before it was. */
  async function startNode(plan: Omit<NodePlan, 'port' | 'shards' | 'ackTimeoutMs'>, heard: (word: Word) => void) {
    const whole: NodePlan = { ...plan, port: server.port, shards: SHARDS, ackTimeoutMs: ACK_TIMEOUT_MS }
    const child = fork(join(dir, 'node.mjs'), [JSON.stringify(whole)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    alive.add(child)
    const dead = once(child, 'exit').then(() => void alive.delete(child))
    const ready = new Promise<void>((resolve) =>
      child.on('message', (word: Word) => (word.kind === 'ready' ? resolve() : heard(word))),
    )
    await Promise.race([ready, dead])
    return {
      dead,
      get isAlive() {
        return alive.has(child)
      },
      tell: (order: Order) => void (child.connected && child.send(order, () => {})),
      kill: () => void child.kill('SIGKILL'),
    }
  }
  type Node = Awaited<ReturnType<typeof startNode>>

  const observe = (deploymentId: string) => {
    const { delivery } = redisComposition({ client: connected.client, deploymentId }).inspectors
    if (!delivery) throw new Error('the composition has no delivery')
    return delivery
  }
  const survivor = (deploymentId: string) =>
    createRedisCommandDispatcher({
      client: connected.client,
      deploymentId,
      nodeId: 'survivor',
      ackTimeoutMs: ACK_TIMEOUT_MS,
    })

  const key = { user_id: 'ada', client_id: 'tab', command_id: 'c1' }
  // A scope of another shard than the user's: reservation and admission are two steps.
  const order: Order = { kind: 'dispatch', ...key, scope_id: 'team', deadlineMs: 2_000 }
  type End = Pick<NodePlan, 'diesAfter' | 'diesAnswered'>
  const ends = Array.from({ length: 12 }, (_, i) => i + 1).flatMap((diesAfter): End[] => [
    { diesAfter, diesAnswered: false },
    { diesAfter, diesAnswered: true },
  ])

  /** A few processes at a time: all at once would wait for each other. */
  async function inGroups<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
    const done: R[] = []
    for (let i = 0; i < all.length; i += GROUP) done.push(...(await Promise.all(all.slice(i, i + GROUP).map(work))))
    return done
  }

  it('at any step of an admission leaves a whole command, or nothing once the deadline has passed', async () => {
    // The last one dies of nothing before its admission is answered.
    const deployments = await inGroups([...ends, {}], async (end) => {
      const deploymentId = `admit-${end.diesAfter}-${end.diesAnswered}`
      const node = await startNode({ deploymentId, nodeId: 'mortal', ...end }, ({ kind }) => {
        if (kind === 'admitted' && end.diesAfter === undefined) node.kill()
      })
      node.tell(order)
      await node.dead
      const [tenant] = await walk((page) => observe(deploymentId).listTenants(page, ASK))
      const left = await observe(deploymentId).status(key, ASK)
      // A command without its reservation is what must never be, up to the deadline of both.
      const isOver = left?.admission.deadline_at != null && Date.parse(left.admission.deadline_at) <= Date.now()
      expect([deploymentId, left === null || isOver || tenant?.reserved_commands === 1]).toEqual([deploymentId, true])
      return deploymentId
    })
    const states = await Promise.all(
      deployments.map(async (deploymentId) => {
        const other = survivor(deploymentId)
        try {
          await until(async () => {
            const status = await observe(deploymentId).status(key, ASK)
            const tenants = await walk((page) => observe(deploymentId).listTenants(page, ASK))
            return tenants.length === 0 && status?.terminal !== null
          }, 30_000)
          return (await observe(deploymentId).status(key, ASK))?.terminal?.state ?? 'never admitted'
        } finally {
          await other.close()
        }
      }),
    )
    expect(new Set(states)).toEqual(new Set(['never admitted', 'expired']))
    expect([states[0], states.at(-1)]).toEqual(['never admitted', 'expired'])
  }, 120_000)

  it('at any step of a delivery leads to the next node, which brings it to its end', async () => {
    await inGroups(ends, async (end) => {
      const deploymentId = `deliver-${end.diesAfter}-${end.diesAnswered}`
      // The number of shards is the first writer's, and a node that has read it stays with it.
      await server.cli('SET', `relayscope:{${deploymentId}:0}:shards`, String(SHARDS))
      const other = survivor(deploymentId)
      try {
        await other.dispatch({ ...key, action: 'work', scope_id: 'team', deadlineMs: 60_000 })
        const node = await startNode({ deploymentId, nodeId: 'mortal', ...end }, () => {})
        node.tell({ kind: 'attach', user_id: key.user_id, client_id: key.client_id })
        // Its loop goes on when the delivery is over, so it comes to its step in any case.
        await node.dead
        const left = await observe(deploymentId).status(key, ASK)
        await other.attach({ user_id: 'ada', client_id: 'tab', instance_id: 'i2' }, async ({ command_id }) => {
          await other.settle({ ...key, command_id, state: 'resulted' })
        })
        await until(async () => {
          const status = await observe(deploymentId).status(key, ASK)
          // Acknowledged, it is never handed over again: then its end is the client's to say.
          if (status?.acknowledgement.state === 'acknowledged' && !status.terminal)
            await other.settle({ ...key, state: 'resulted' })
          return status?.terminal?.state === 'resulted'
        }, 45_000)
        const tenants = () => walk((page) => observe(deploymentId).listTenants(page, ASK))
        if (!left?.terminal) return await until(async () => (await tenants()).length === 0, 45_000)
        // It died after the end, maybe before the release in another shard: that leaves the place to the deadline.
        for (const { oldest_deadline_at } of await tenants())
          expect(String(oldest_deadline_at) <= String(left.admission.deadline_at)).toBe(true)
      } finally {
        await other.close()
      }
    })
  }, 120_000)

  it('again and again, at random, loses no admitted command and ends none twice', async () => {
    const deploymentId = 'campaign'
    const delivery = observe(deploymentId)
    const random = mulberry(Number(process.env.RELAYSCOPE_CRASH_SEED ?? 5))
    const admitted = new Set<string>()
    const settled = new Map<string, number>()
    const acknowledged = new Map<string, number>()
    const heard = (word: Word) => {
      if (word.kind === 'admitted') admitted.add(word.command_id)
      if (word.kind === 'settled') settled.set(word.command_id, (settled.get(word.command_id) ?? 0) + 1)
      if (word.kind === 'acknowledged') acknowledged.set(word.command_id, word.attempts)
    }
    const clientsOf = Array.from({ length: CLIENTS }, (_, n) => ({ user_id: `u${n % 5}`, client_id: `c${n}` }))
    let born = 0
    let killed = 0
    const start = (isMortal: boolean) => {
      const dies = isMortal ? { diesAfter: 20 + Math.floor(random() * 300), diesAnswered: random() < 0.5 } : {}
      return startNode({ deploymentId, nodeId: `n${++born}`, ...dies }, heard)
    }
    let nodes: Node[] = await Promise.all([start(true), start(true), start(true)])
    const home = new Map<number, Node>()

    /** Replaces the dead, and lets their clients connect somewhere else, as clients do. */
    async function recover(isMortal: boolean) {
      const dead = nodes.filter(({ isAlive }) => !isAlive).length
      killed += dead
      nodes = nodes.filter(({ isAlive }) => isAlive)
      nodes.push(...(await Promise.all(Array.from({ length: dead }, () => start(isMortal)))))
      clientsOf.forEach((client, n) => {
        if (home.get(n)?.isAlive) return
        const node = nodes[Math.floor(random() * nodes.length)] as Node
        home.set(n, node)
        node.tell({ kind: 'attach', ...client })
      })
    }

    const keys = Array.from({ length: COMMANDS }, (_, n) => ({
      ...(clientsOf[n % CLIENTS] as (typeof clientsOf)[number]),
      command_id: `k${n}`,
    }))
    await recover(true)
    for (let n = 0; n < COMMANDS; n++) {
      const node = nodes[Math.floor(random() * nodes.length)] as Node
      node.tell({ kind: 'dispatch', ...(keys[n] as (typeof keys)[number]), scope_id: `s${n % 7}`, deadlineMs: 20_000 })
      if (n % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 40))
      if (n % 100 === 60) nodes[Math.floor(random() * nodes.length)]?.kill()
      await recover(true)
    }
    // From here on nobody dies any more, once the last ones have.
    for (const node of nodes) node.kill()
    await Promise.all(nodes.map(({ dead }) => dead))
    await recover(false)
    await until(async () => (await delivery.summary(ASK)).tracked_commands === 0, 90_000)

    const ends = new Map<string, number>()
    for (const command of keys) {
      const status = await delivery.status(command, ASK)
      if (status === null) {
        // Its node died before the admission; nobody was told otherwise.
        expect(admitted.has(command.command_id)).toBe(false)
        continue
      }
      const state = String(status.terminal?.state)
      ends.set(state, (ends.get(state) ?? 0) + 1)
      const times = settled.get(command.command_id) ?? 0
      expect(times).toBeLessThanOrEqual(1)
      if (times === 1) expect(state).toBe('resulted')
      // What was acknowledged was not handed over again.
      const attempts = acknowledged.get(command.command_id)
      if (attempts !== undefined) expect(status.attempts.count).toBe(attempts)
      // Only a node that died between the acknowledgement and the result leaves the end to the deadline.
      if (state === 'expired') expect(status.acknowledgement.state).toBe('acknowledged')
    }
    expect([...ends.keys()].filter((state) => state !== 'resulted' && state !== 'expired')).toEqual([])
    expect(killed).toBeGreaterThan(5)
    if (process.env.RELAYSCOPE_CRASH_COMMANDS)
      console.info({ commands: COMMANDS, admitted: admitted.size, killed, ...Object.fromEntries(ends) })
    // A node that died between two shards left a reservation behind: until its deadline, and not a moment longer.
    await until(async () => (await walk((page) => delivery.listTenants(page, ASK))).length === 0, 40_000)
    expect((await delivery.summary(ASK)).due_commands).toBe(0)
    // Terminal once: each end entered the store's list of ended commands, and none of them twice.
    let listed = 0
    for (let shard = 0; shard < SHARDS; shard++)
      listed += Number(await server.cli('ZCARD', `relayscope:{${deploymentId}:${shard}}:delivery:ended`))
    expect(listed).toBe([...ends.values()].reduce((sum, count) => sum + count, 0))
  }, 180_000)
})

/** A small random generator that a failure can be repeated with (public-domain mulberry32). */
function mulberry(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
