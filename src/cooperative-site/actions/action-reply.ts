/** What becomes of a client's reply: call, command and history come to agree, however often it has to be sent. */
import type { DeliveryInspector } from '../../contract/delivery.js'
import type { CommandDispatcher, SettleInput } from '../../contract/delivery-dispatch.js'
import { type InvocationError, InvocationError as PublicError } from '../../contract/invocations.js'
import type { RpcCorrelator, RpcInspector } from '../../contract/rpc.js'
import { Refusal } from '../../refusal.js'
import { ActionFailure, toInvocationError } from './failure.js'
import type { ActionOutcome, ActionReply } from './handlers.js'
import { readResult } from './result.js'

/** The stores of calls and commands. Their inspectors are needed to finish a reply that was interrupted half-way. */
export interface ReplyFacilities {
  rpc: RpcCorrelator & { inspector?: Pick<RpcInspector, 'getPending'> }
  dispatcher: CommandDispatcher & { inspector?: Pick<DeliveryInspector, 'status'> }
}

const NO_SIGNAL_CTX = { signal: new AbortController().signal }

/** Converts an error of the reply or the correlator to the gate's failure. */
export function toFailure(error: unknown): unknown {
  const published = PublicError.safeParse(error)
  return published.success && !(error instanceof Error)
    ? new ActionFailure(published.data.code, published.data.message)
    : error
}

type Read = { ok: true; result: unknown } | { ok: false; error: InvocationError }

/**
 * Validates a client's reply. A result that JSON cannot carry within the bounds becomes a failure.
 *
 * @throws Refusal `invalid_input` for a value that is not an outcome.
 */
function readOutcome(given: ActionOutcome): Read {
  if (typeof given?.ok !== 'boolean') throw new Refusal('invalid_input', 'outcome.ok: must be true or false')
  if (!given.ok) return { ok: false, error: toInvocationError(toFailure(given.error)) }
  const read = readResult(given.result)
  return read.ok ? { ok: true, result: read.result } : read
}

type End = Pick<SettleInput, 'state' | 'reason'>

const endOf = (outcome: Read): End =>
  outcome.ok ? { state: 'resulted' } : { state: 'failed', reason: outcome.error.code }

/**
 * `reply` over the facilities: settles the call, then the command, then records the result. Each step can be taken again,
 * so that a client whose reply was lost on the way sends it again until it is answered.
 */
export function createReply(
  { rpc, dispatcher }: ReplyFacilities,
  record: (reply: Omit<ActionReply, 'outcome'>, outcome: Read) => Promise<unknown>,
) {
  /**
   * Whether the call has ended: this reply may then complete an interrupted one. A pending call has refused the reply.
   */
  async function hasEnded(correlation_id: string): Promise<boolean> {
    return rpc.inspector !== undefined && (await rpc.inspector.getPending(correlation_id, NO_SIGNAL_CTX)) === null
  }

  /** Whether the command ended as this reply would end it, by the same instance. */
  async function hasEndedWith({ correlation_id, instance_id, ...client }: Omit<ActionReply, 'outcome'>, end: End) {
    const status = await dispatcher.inspector?.status({ ...client, command_id: correlation_id }, NO_SIGNAL_CTX)
    const by = status?.acknowledgement.instance_id ?? instance_id
    const { state, reason } = status?.terminal ?? {}
    return by === instance_id && state === end.state && (reason ?? undefined) === end.reason
  }

  return async ({ outcome: given, ...from }: ActionReply): Promise<boolean> => {
    if (given === undefined) return false
    // First, so that what settles the call can settle the command and be recorded too.
    const outcome = readOutcome(given)
    const { user_id, client_id, instance_id, correlation_id } = from
    const settled = await rpc.settle(correlation_id, { ...outcome, from: { user_id, client_id, instance_id } })
    if (!settled && !(await hasEnded(correlation_id))) return false
    const end = endOf(outcome)
    // A reply implies an acknowledgement, whether or not one was sent before.
    const by = { user_id, client_id, instance_id, acknowledge: true }
    const ended = await dispatcher.settle({ ...by, command_id: correlation_id, ...end })
    if (!settled && !ended && !(await hasEndedWith(from, end))) return false
    await record(from, outcome)
    return settled || ended
  }
}
