/** What a client or a host says of a command: its acknowledgement and its end, fenced by instance. */
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { CommandKey } from '../../contract/delivery.js'
import { AcknowledgeInput, CancelInput, type CommandDispatcher, SettleInput } from '../../contract/delivery-dispatch.js'
import { toReason } from '../../contract/ids.js'
import { parseInput } from '../../contract/input.js'
import type { Outcomes } from './outcomes.js'
import type { DeliveryRun } from './run.js'
import { ACKNOWLEDGE, END } from './script-ends.js'

type Registry = Pick<ConnectionRegistry, 'currentInstance'> | undefined

/** Whether a registry was asked (1, else ''), and whom it says to be current. */
interface Fence {
  was_asked: string
  current: string
}

/** No registry is there to say who is current. */
export const NO_FENCE: Fence = { was_asked: '', current: '' }

/** What the registry says of a client, as scripts are given it. */
export async function fenceOf(registry: Registry, client: { user_id: string; client_id: string }): Promise<Fence> {
  if (!registry) return NO_FENCE
  return { was_asked: '1', current: (await registry.currentInstance(client)) ?? '' }
}

export function createEnds(
  delivery: DeliveryRun,
  { carriedAfter }: Pick<Outcomes, 'carriedAfter'>,
  registry: Registry,
): Pick<CommandDispatcher, 'acknowledge' | 'settle' | 'cancel'> {
  async function end(
    command: CommandKey,
    state: 'resulted' | 'failed' | 'cancelled',
    reason: string | undefined,
    instance = '',
    { was_asked, current } = NO_FENCE,
    acknowledge = false,
  ) {
    const { next_claim, handed_over, ago, claimed, sent } = carriedAfter(command, current)
    const running = delivery.runFor(
      END,
      command.user_id,
      {
        next_claim,
        user: command.user_id,
        client: command.client_id,
        id: command.command_id,
        state,
        reason: toReason(reason) ?? '',
        instance,
        was_asked,
        current,
        handed_over,
        ago,
        attempt: crypto.randomUUID(),
        acknowledges: acknowledge ? '1' : '',
      },
      claimed,
    )
    sent(running)
    return (await running).answer
  }

  return {
    async acknowledge(given) {
      const { instance_id, state, reason, ...command } = parseInput(AcknowledgeInput, given)
      const { was_asked, current } = await fenceOf(registry, command)
      const { next_claim, handed_over, ago, claimed, sent } = carriedAfter(command, current)
      const running = delivery.runFor(
        ACKNOWLEDGE,
        command.user_id,
        {
          next_claim,
          user: command.user_id,
          client: command.client_id,
          id: command.command_id,
          state: state ?? 'acknowledged',
          reason: toReason(reason) ?? 'refused',
          instance: instance_id,
          was_asked,
          current,
          handed_over,
          ago,
          attempt: crypto.randomUUID(),
        },
        claimed,
      )
      sent(running)
      return (await running).answer
    },

    async settle(given) {
      const { state, reason, instance_id, acknowledge, ...command } = parseInput(SettleInput, given)
      const fence = instance_id === undefined ? NO_FENCE : await fenceOf(registry, command)
      return end(command, state, reason, instance_id, fence, acknowledge)
    },

    async cancel(given) {
      const { reason, ...command } = parseInput(CancelInput, given)
      return end(command, 'cancelled', reason)
    },
  }
}
