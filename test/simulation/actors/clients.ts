/** Clients of the relay: they connect, take commands in every way there is, and leave in every way. */
import { z } from 'zod'
import type { SimulatedNode } from '../node.js'
import type { Dice } from '../random.js'
import type { Any, Handover, Operation } from '../record.js'
import type { RelayClient, Stage } from '../stage.js'

const PLANS = [
  [0.45, 'acknowledge, then end'],
  [0.6, 'end at once'],
  [0.66, 'refuse'],
  [0.72, 'acknowledge only'],
  [0.78, 'say nothing'],
  [0.84, 'reject'],
  [0.88, 'hang'],
  [0.94, 'speak as the former instance'],
  [1, 'end late'],
] as const

type Plan = (typeof PLANS)[number][1]

const planOf = (dice: Dice): Plan => {
  const r = dice.random()
  return (PLANS.find(([below]) => r < below) ?? PLANS[0])[1]
}

/** Returns whether the outcome of the operation is unknown. */
export const isUnsure = (operation: Operation): boolean =>
  operation.state === 'refused' && operation.code === 'unavailable'

const idOf = ({ user_id, client_id }: RelayClient) => ({ user_id, client_id })

type Word = { state?: string; reason?: string; acknowledge?: boolean }

/** A word about a command, said again where its answer is lost. */
async function say(
  stage: Stage,
  dice: Dice,
  client: RelayClient,
  command_id: string,
  what: 'acknowledge' | 'settle',
  word: Word,
  instance_id?: string,
): Promise<void> {
  for (let tries = 0; tries < 3; tries++) {
    const node = stage.anyNode(dice)
    if (!node) return
    const details = { ...idOf(client), command_id, instance_id, end: word.state, ...word }
    const given: Any = { ...idOf(client), command_id, ...(instance_id ? { instance_id } : {}), ...word }
    const operation = await stage.call(node, what, details, ({ dispatcher }) => dispatcher[what](given))
    if (!isUnsure(operation)) return
    await stage.world.sleep(dice.between(1, 400))
  }
}

/** Says late what was not said at the time, as a host may do for a client that has gone. */
export const settleFromOutside = (stage: Stage, dice: Dice, client: RelayClient, command_id: string): Promise<void> =>
  say(stage, dice, client, command_id, 'settle', { state: 'resulted' })

function createApplication(stage: Stage, dice: Dice) {
  const { world, history, observer } = stage
  const handlers = observer.library.createActionHandlers()
  handlers.handle('work', { parameters: z.looseObject({ n: z.string() }) }, async ({ n }) => {
    history.runs.push({ key: n, at: world.now })
    await world.sleep(dice.between(1, 300))
    return { n }
  })
  return handlers
}

/** Runs an action of a viewer and replies, again where the answer is lost. */
async function runAction(
  stage: Stage,
  dice: Dice,
  client: RelayClient,
  instance_id: string,
  application: ReturnType<typeof createApplication>,
  { command_id, payload }: { command_id: string; payload: unknown },
): Promise<void> {
  await say(stage, dice, client, command_id, 'acknowledge', {}, instance_id)
  const call: Any = { action: 'work', parameters: payload, correlation_id: command_id }
  const outcome: Any = await application.execute(call)
  if (!outcome) return
  for (let tries = 0; tries < 4; tries++) {
    const node = stage.anyNode(dice)
    if (!node) return
    const reply = { ...idOf(client), instance_id, correlation_id: command_id }
    const operation = await stage.call(node, 'reply', reply, (_, { connector }) =>
      connector.reply({ ...reply, outcome }),
    )
    if (!isUnsure(operation)) return
    await stage.world.sleep(dice.between(1, 500))
  }
}

async function followPlan(
  stage: Stage,
  dice: Dice,
  client: RelayClient,
  instance_id: string,
  command_id: string,
  plan: Plan,
): Promise<void> {
  const { world, config } = stage
  const { former } = client
  const speak = (what: 'acknowledge' | 'settle', word: Word, as?: string) =>
    say(stage, dice, client, command_id, what, word, as)
  switch (plan) {
    case 'acknowledge, then end':
    case 'acknowledge only':
    case 'speak as the former instance':
      if (plan === 'speak as the former instance' && former) await speak('acknowledge', {}, former)
      await speak('acknowledge', {}, instance_id)
      if (plan === 'acknowledge only') return
      // Long enough that a redelivery after the acknowledgement would show.
      await world.sleep(dice.between(1, dice.chance(0.3) ? 2.5 * config.ackTimeoutMs : 2_000))
      if (dice.chance(0.1) && former) await speak('settle', { state: 'failed' }, former)
      await speak('settle', { state: dice.pick(['resulted', 'failed']) }, dice.chance(0.8) ? instance_id : undefined)
      if (dice.chance(0.2)) await speak('settle', { state: 'failed' }, instance_id)
      return
    case 'end at once':
      return speak('settle', { state: 'resulted', acknowledge: true }, instance_id)
    case 'refuse':
      return speak('acknowledge', { state: 'refused', reason: 'busy' }, instance_id)
    case 'end late':
      await world.sleep(config.ackTimeoutMs * dice.between(0.8, 1.6))
      return speak('settle', { state: 'resulted' }, instance_id)
  }
}

/** Creates the deliver function of a client: it records the delivery and then does as planned. */
function createDeliver(
  stage: Stage,
  dice: Dice,
  client: RelayClient,
  instance_id: string,
  node: SimulatedNode,
  application: ReturnType<typeof createApplication>,
) {
  const { world, history } = stage
  return (command: Any): Promise<void> => {
    const { command_id, attempt, action } = command
    const isAction = action === 'work'
    const plan = planOf(dice)
    const handover: Handover = {
      ...idOf(client),
      instance_id,
      command_id,
      attempt,
      action,
      payload: JSON.stringify(command.payload),
      at: world.now,
      node: node.name,
      plan,
      done: Number.POSITIVE_INFINITY,
    }
    history.handovers.push(handover)
    world.say(() => `${node.name} hands ${command_id} to ${instance_id}, attempt ${attempt}; plan: ${plan}`)
    if (!isAction && plan === 'reject') {
      handover.done = world.now
      return Promise.reject(new Error('the socket is closed'))
    }
    if (!isAction && plan === 'hang') return new Promise(() => {})
    const work = async () => {
      await world.sleep(dice.between(0, 50))
      if (isAction) await runAction(stage, dice, client, instance_id, application, command)
      else await followPlan(stage, dice, client, instance_id, command_id, plan)
    }
    work().catch((error) => stage.violate('simulator', error.stack))
    return world.sleep(dice.between(0, 5)).then(() => {
      handover.done = world.now
    })
  }
}

async function liveOnce(
  stage: Stage,
  dice: Dice,
  client: RelayClient,
  node: SimulatedNode,
  endsAt: number,
  application: ReturnType<typeof createApplication>,
): Promise<void> {
  const { world } = stage
  const { life } = node
  const instance_id = client.instance_id as string
  const instance = { ...idOf(client), instance_id }
  const actions = dice.chance(0.5) ? ['sync', 'work'] : ['sync']
  const connected = await stage.call(node, 'connect', instance, ({ connections }) =>
    connections.connect({ ...instance, client_type: 'console', actions }),
  )
  if (connected.state !== 'ok') return
  const { connection_id } = connected.value
  connected.connection_id = connection_id
  const deliver = createDeliver(stage, dice, client, instance_id, node, application)
  const attached = await stage.call(node, 'attach', instance, ({ dispatcher }) => dispatcher.attach(instance, deliver))
  const until = Math.min(endsAt, world.now + dice.between(500, 12_000))
  while (world.now < until && !life.isDead) {
    await Promise.race([world.sleep(dice.between(500, 4_000)), life.died])
    if (life.isDead) return
    const beat = await stage.call(node, 'heartbeat', { ...instance, connection_id }, ({ connections }) =>
      connections.heartbeat(connection_id),
    )
    if (beat.state === 'ok' && beat.value === false) break
  }
  if (!life.isDead && attached.state === 'ok' && dice.chance(0.7))
    await stage.call(node, 'detach', instance, () => attached.value.detach())
  if (!life.isDead && dice.chance(0.6))
    await stage.call(node, 'disconnect', { ...instance, connection_id }, ({ connections }) =>
      connections.disconnect(connection_id, 'socket_closed'),
    )
}

export function actAsClients(stage: Stage, endsAt: number): void {
  const { world } = stage
  for (const [k, client] of stage.clients.entries())
    stage.act(`client ${k}`, async (dice) => {
      const application = createApplication(stage, dice)
      while (world.now < endsAt) {
        await world.sleep(dice.between(1, 800))
        const node = stage.anyNode(dice)
        if (!node) continue
        if (client.instance_id === null || dice.chance(0.7)) {
          client.former = client.instance_id
          client.instance_id = `${client.user_id}-${client.client_id}-i${client.instances++}`
        }
        await liveOnce(stage, dice, client, node, endsAt, application)
      }
    })
}
