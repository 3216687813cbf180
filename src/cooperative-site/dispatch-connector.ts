/** The connector over the ordinary facilities: an action is one command of the dispatcher and one call of the correlator. */
import type { ConnectionRegistry } from '../contract/connections.js'
import type { CommandDispatcher } from '../contract/delivery.js'
import type { MessageHistory } from '../contract/history.js'
import { type ActionConnector, InvocationError } from '../contract/invocations.js'
import type { RpcCorrelator } from '../contract/rpc.js'
import { userStream } from '../contract/streams.js'
import { Refusal, type RefusalCode } from '../refusal.js'
import { ActionFailure, toInvocationError } from './failure.js'
import type { ActionOutcome } from './handlers.js'
import { readResult } from './result.js'

export interface DispatchConnectorOptions {
  rpc: RpcCorrelator
  dispatcher: CommandDispatcher
  connections: Pick<ConnectionRegistry, 'currentInstance'>
  history: MessageHistory
}

/** How a client answers a command that it was delivered. */
export interface ActionReply {
  user_id: string
  client_id: string
  instance_id: string
  /** The `command_id` under which it arrived. */
  correlation_id: string
  outcome: ActionOutcome
}

export interface DispatchConnector extends ActionConnector {
  /**
   * Whether this was the one reply of the client that was asked. Late, double and foreign ones are dropped. A result
   * over 1 MiB, and one that JSON cannot carry, is the failure `result_too_large` or `handler_error`.
   *
   * @throws Refusal `invalid_input` for what is no outcome; the call goes on waiting. What the history refuses it
   * refuses after the call was settled.
   */
  reply(reply: ActionReply): Promise<boolean>
}

// Refusals that say that nothing was sent.
const NOT_SENT: ReadonlySet<RefusalCode> = new Set(['unavailable', 'capacity_exceeded', 'closed', 'invalid_identity'])

/** What was thrown before anything was sent, in the words of the gate. */
function toNotSent(error: unknown): unknown {
  if (!(error instanceof Refusal)) return error
  if (error.code === 'payload_too_large') return new ActionFailure('parameters_too_large')
  // Only a caller's own id can meet itself: the same call is under way, here or on another node.
  if (error.code === 'command_conflict') return new Refusal('idempotency_in_progress', error.detail, { cause: error })
  return NOT_SENT.has(error.code) ? new Refusal('connector_unavailable', error.detail, { cause: error }) : error
}

/** What a reply or the correlator said instead of a result. */
function toFailure(error: unknown): unknown {
  const said = InvocationError.safeParse(error)
  return said.success && !(error instanceof Error) ? new ActionFailure(said.data.code, said.data.message) : error
}

/**
 * What a client replied, as it is kept and shown: what JSON cannot carry within the bounds is a failure.
 *
 * @throws Refusal `invalid_input` for what is no outcome.
 */
function readOutcome(given: ActionOutcome): ActionOutcome {
  if (typeof given?.ok !== 'boolean') throw new Refusal('invalid_input', 'outcome.ok: must be true or false')
  if (!given.ok) return { ok: false, error: toInvocationError(toFailure(given.error)) }
  const read = readResult(given.result)
  return read.ok ? { ok: true, result: read.result } : read
}

/**
 * The ordinary way to an application: while an action runs, it stands in `/rpc/pending` and in `/delivery/status`, and
 * its command and result are in the history of `users/{user_id}/clients/{client_id}/commands`. It is attempted once and
 * only while a connection waits for it, so that an action runs at most once.
 *
 * @example
 * const connector = createDispatchConnector(facilities)
 * await facilities.dispatcher.attach(instance, (command) => send(command)) // the client runs it, and then:
 * await connector.reply({ ...instance, correlation_id: command.command_id, outcome })
 */
export function createDispatchConnector(options: DispatchConnectorOptions): DispatchConnector {
  const { rpc, dispatcher, connections, history } = options

  const record = (
    kind: 'command' | 'result',
    { correlation_id, ...from }: Omit<ActionReply, 'outcome'>,
    payload: unknown,
  ) =>
    history.append({
      ...from,
      message_id: kind === 'command' ? correlation_id : `${correlation_id}.result`,
      stream: userStream(from.user_id, 'clients', from.client_id, 'commands'),
      kind,
      payload: JSON.parse(JSON.stringify(payload)),
    })

  return {
    async call(client, { action, parameters, timeout_ms, signal, command_id }) {
      const instance_id = await connections.currentInstance(client)
      if (instance_id === null) throw new Refusal('connector_unavailable', 'the client is not connected')
      const call = await Promise.resolve(
        rpc.open({
          ...client,
          action,
          instance_id,
          timeoutMs: timeout_ms,
          signal,
          ...(command_id === undefined ? {} : { correlation_id: command_id }),
        }),
      ).catch((error) => {
        throw toNotSent(error)
      })
      const key = { ...client, command_id: call.correlation_id }
      // Whatever ends the call before it is awaited below must not count as unhandled.
      call.result.catch(() => {})
      try {
        await record('command', { ...client, instance_id, correlation_id: key.command_id }, { action, parameters })
        if (signal.aborted) throw new Refusal('cancelled')
        const { admission, terminal } = await dispatcher.dispatch({
          ...key,
          action,
          payload: parameters as never,
          deadlineMs: timeout_ms,
          maxAttempts: 1,
          requireWaiter: true,
        })
        if (admission.state === 'rejected') throw new Refusal('connector_unavailable', 'the command was not admitted')
        if (terminal !== null) throw new Refusal('timeout', 'a command of this id has run before')
      } catch (error) {
        const refused = toNotSent(error)
        await rpc.settle(call.correlation_id, { ok: false, error: refused })
        throw refused
      }
      const cancel = () => void Promise.resolve(dispatcher.cancel({ ...key, reason: 'cancelled' })).catch(() => {})
      signal.addEventListener('abort', cancel, { once: true })
      try {
        if (signal.aborted) cancel()
        return await call.result
      } catch (error) {
        throw toFailure(error)
      } finally {
        signal.removeEventListener('abort', cancel)
      }
    },

    async reply({ outcome: given, ...from }) {
      // First, so that what settles the call can settle the command and be recorded too.
      const outcome = readOutcome(given)
      const { user_id, client_id, instance_id, correlation_id } = from
      const settled = await rpc.settle(correlation_id, { ...outcome, from: { user_id, client_id, instance_id } })
      if (!settled) return false
      await dispatcher.settle({
        user_id,
        client_id,
        instance_id,
        command_id: correlation_id,
        ...(outcome.ok ? { state: 'resulted' } : { state: 'failed', reason: outcome.error.code }),
      })
      await record('result', from, outcome)
      return true
    },
  }
}
