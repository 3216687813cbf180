/** Acknowledges, settles and cancels commands. Calls on behalf of a client are fenced by its instance. */
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { CommandKey } from '../../contract/delivery.js'
import { AcknowledgeInput, CancelInput, type CommandDispatcher, SettleInput } from '../../contract/delivery-dispatch.js'
import { toReason } from '../../contract/ids.js'
import { parseInput } from '../../contract/options.js'
import { wasNotRun } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import type { Hand } from './hand.js'
import type { Mailboxes } from './mailboxes.js'
import { mailboxOf, refOf } from './record.js'
import type { DeliveryRun } from './run.js'

type Registry = Pick<ConnectionRegistry, 'currentInstance'> | undefined

/** Whether a registry was asked ('1', else ''), and the instance that is current according to it. */
interface Fence {
  wasAsked: string
  current: string
}

/** The fence of a dispatcher without a registry. */
export const NO_FENCE: Fence = { wasAsked: '', current: '' }

/** Asks the registry for the current instance of a client. */
export async function fenceOf(
  registry: NonNullable<Registry>,
  client: { user_id: string; client_id: string },
): Promise<Fence> {
  return { wasAsked: '1', current: (await registry.currentInstance(client)) ?? '' }
}

/** `k` acknowledges and `n` refuses a command; `r`, `f` and `c` end it as resulted, failed and cancelled. */
type ReportKind = 'k' | 'n' | 'r' | 'f' | 'c'

export function createEnds(
  store: Store,
  delivery: DeliveryRun,
  hand: Hand,
  mailboxes: Mailboxes,
  registry: Registry,
): Pick<CommandDispatcher, 'acknowledge' | 'settle' | 'cancel'> {
  /** Prefix of the call ids of this node. The store recognises a call that the Redis client resends by its id. */
  const here = crypto.randomUUID().slice(0, 18)
  let reports = 0

  async function report(
    command: CommandKey,
    kind: ReportKind,
    reason: string,
    instance: string,
    { wasAsked, current }: Fence,
    acknowledges = false,
  ): Promise<boolean> {
    const ref = refOf(command)
    const shard = shardOf(command.user_id, await store.claimShards())
    const handed = hand.takeReport(ref)
    const given = [
      ref,
      kind,
      reason,
      instance,
      wasAsked,
      current,
      handed?.delivery ?? '',
      acknowledges ? '1' : '',
      `${here}${++reports}`,
    ]
    try {
      const { answer } = await delivery.run('S', shard, given, mailboxOf(command))
      if (handed && answer !== '1') hand.returnReport(handed)
      return answer === '1'
    } catch (error) {
      if (handed) hand.returnReport(handed)
      if (!wasNotRun(error) && hand.has(ref)) mailboxes.mayHaveEnded(ref, shard)
      throw error
    }
  }

  return {
    async acknowledge(given) {
      const { instance_id, state, reason, ...command } = parseInput(AcknowledgeInput, given)
      const fence = registry ? await fenceOf(registry, command) : NO_FENCE
      return state === 'refused'
        ? report(command, 'n', toReason(reason) ?? 'refused', instance_id, fence)
        : report(command, 'k', '', instance_id, fence)
    },

    async settle(given) {
      const { state, reason, instance_id, acknowledge, ...command } = parseInput(SettleInput, given)
      const fence = instance_id === undefined || !registry ? NO_FENCE : await fenceOf(registry, command)
      const kind = state === 'resulted' ? 'r' : 'f'
      return report(command, kind, toReason(reason) ?? '', instance_id ?? '', fence, acknowledge)
    },

    async cancel(given) {
      const { reason, ...command } = parseInput(CancelInput, given)
      return report(command, 'c', toReason(reason) ?? '', '', NO_FENCE)
    },
  }
}
