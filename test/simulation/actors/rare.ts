/** Steps that chance takes too seldom, in a calm world: attempts that are given back, dispatches in vain, an attach that arrives late. */
import type { SimulatedNode } from '../node.js'
import type { Dice } from '../random.js'
import type { Any } from '../record.js'
import type { Stage } from '../stage.js'
import { dispatchInVain } from './commands.js'
import { arrive } from './death.js'

const GIVEN = 3

const settle = (stage: Stage, node: SimulatedNode, instance: Any, command_id: string) => {
  const word = { ...instance, command_id, end: 'resulted', state: 'resulted' as const, acknowledge: true }
  const { end, ...input } = word
  return stage.call(node, 'settle', word, ({ dispatcher }) => dispatcher.settle(input))
}

/** A client leaves while its commands are on their way to it: they reach it where it attaches next. */
async function leaveInTheMiddle(stage: Stage, dice: Dice, k: number): Promise<void> {
  const { world, nodes } = stage
  const node = nodes[k % nodes.length] as SimulatedNode
  const next = nodes[(k + 1) % nodes.length] as SimulatedNode
  const client = { user_id: dice.pick(stage.history.userIds), client_id: `back${k}` }
  const stay = (at: SimulatedNode, instance: Any) =>
    arrive(stage, at, instance, ({ command_id }) => void settle(stage, at, instance, command_id))
  const instance = { ...client, instance_id: `${client.client_id}-leaving` }
  const attached = await stay(node, instance)
  if (attached.state !== 'ok') return
  for (let i = 0; i < GIVEN; i++) {
    const input = { ...client, command_id: `back${k}-${i}`, deadline_ms: 6_500, max_attempts: 1 }
    const details = { ...input, action: 'sync', scope_id: client.user_id, max: 1, mustArrive: true }
    void stage.call(node, 'dispatch', details, ({ dispatcher }) =>
      dispatcher.dispatch({ ...input, action: 'sync', payload: { of: input.command_id } }),
    )
  }
  // While the admission, or the question who is current, is under way.
  await world.sleep(dice.between(0.2, 2))
  await stage.call(node, 'detach', instance, () => attached.value.detach())
  await world.sleep(dice.between(1, 200))
  await stay(next, { ...client, instance_id: `${client.client_id}-returning` })
}

/** A client detaches while an attach of the same order is still on its way, and nothing waits for a command afterwards. */
async function attachLate(stage: Stage, dice: Dice): Promise<void> {
  const { world, nodes } = stage
  // What the others do is over before a link breaks.
  await world.sleep(1_000)
  const node = dice.pick(nodes)
  const client = { user_id: dice.pick(stage.history.userIds), client_id: 'late' }
  const instance = { ...client, instance_id: 'late-leaving' }
  const attached = await arrive(stage, node, instance, () => undefined)
  if (attached.state !== 'ok') return
  if (!stage.isMemory) {
    const cut = world.lingers(node, dice.between(300, 1_500), (args) => /^W(.*\0)?.*:late\0/.test(args.at(-1) ?? ''))
    await Promise.race([cut, world.sleep(2_000)])
  }
  await stage.call(node, 'detach', instance, () => attached.value.detach())
  await world.sleep(2_800)
  const input = { ...client, command_id: 'late', deadline_ms: 1_500, require_waiter: true }
  const details = { ...input, scope_id: client.user_id, action: 'sync', max: stage.config.maxAttempts }
  await stage.call(dice.pick(nodes), 'dispatch', details, ({ dispatcher }) =>
    dispatcher.dispatch({ ...input, action: 'sync', payload: { of: 'late' } }),
  )
}

export function actRarely(stage: Stage): void {
  const begin = (name: string, act: (dice: Dice) => Promise<unknown>) => {
    act(stage.dice(name)).catch((error) => stage.violate('simulator', `${name}: ${error.stack}`))
  }
  for (const k of [0, 1, 2]) begin(`back ${k}`, (dice) => leaveInTheMiddle(stage, dice, k))
  for (const k of [0, 1, 2, 3]) begin(`vain ${k}`, (dice) => dispatchInVain(stage, dice))
  begin('late', (dice) => attachLate(stage, dice))
}
