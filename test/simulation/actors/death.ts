/** A node dies in a calm world while it holds attempts in each state: its clients attach to another node. */
import type { SimulatedNode } from '../node.js'
import type { Any } from '../record.js'
import type { Stage } from '../stage.js'

/** How long `oracle/progress.ts` gives the other nodes, with the steps before and after. */
export const DEATH_MS = 14_000
const PLANS = ['hangs', 'resolves', 'rejects'] as const

/** Attaches a new instance of a client to a node. */
export async function arrive(stage: Stage, node: SimulatedNode, instance: Any, deliver: (command: Any) => Any) {
  const { world, history } = stage
  await stage.call(node, 'connect', instance, ({ connections }) =>
    connections.connect({ ...instance, client_type: 'console' }),
  )
  return stage.call(node, 'attach', instance, ({ dispatcher }) =>
    dispatcher.attach(instance, (command: Any) => {
      const { command_id, attempt, action } = command
      const handed = { command_id, attempt, action, payload: JSON.stringify(command.payload), at: world.now }
      const handover = { ...instance, ...handed, node: node.name, plan: 'death', done: Number.POSITIVE_INFINITY }
      history.handovers.push(handover)
      const answer = deliver(command)
      if (answer === undefined) handover.done = world.now
      return answer
    }),
  )
}

export async function actAsDeath(stage: Stage): Promise<void> {
  const { world, history, config } = stage
  const dice = stage.dice('death')
  const [dying, living] = stage.nodes as [SimulatedNode, SimulatedNode]
  const [{ user_id, client_id }] = stage.clients as [(typeof stage.clients)[number]]
  const client = { user_id, client_id }
  const ids = PLANS.map((plan) => `death-${plan}`)
  const first = await arrive(stage, dying, { ...client, instance_id: `${user_id}-dying` }, ({ command_id }) => {
    if (command_id === 'death-hangs') return new Promise(() => {})
    return command_id === 'death-rejects' ? Promise.reject(new Error('the socket is closed')) : undefined
  })
  if (first.state !== 'ok') return
  for (const command_id of ids) {
    const details = { ...client, command_id, scope_id: command_id, deadline_ms: DEATH_MS, max_attempts: 5, max: 5 }
    const { max, ...input } = details
    await stage.call(living, 'dispatch', { ...details, action: 'sync' }, ({ dispatcher }) =>
      dispatcher.dispatch({ ...input, action: 'sync', payload: { of: command_id } }),
    )
  }
  await world.sleep(dice.between(150, Math.min(400, config.ackTimeoutMs / 2)))
  stage.kill(dying)
  history.faults.push({ fault: 'node dies', node: dying.name, at: world.now })
  const instance = { ...client, instance_id: `${user_id}-surviving` }
  await arrive(stage, living, instance, ({ command_id }) => {
    const word = { ...instance, command_id, end: 'resulted', state: 'resulted' as const, acknowledge: true }
    const { end, ...input } = word
    void stage.call(living, 'settle', word, ({ dispatcher }) => dispatcher.settle(input))
  })
}
