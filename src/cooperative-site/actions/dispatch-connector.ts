/** The connector over the ordinary facilities: an action is one command of the dispatcher and one call of the correlator. */
import { onAbort } from '../../internal/async/abort.js'
import { guardErrorHook } from '../../internal/async/hook.js'
import { sleep } from '../../internal/async/timer.js'
import type { ConnectionRegistry } from '../../internal/contract/connections.js'
import type { DeliveryInspector, DeliveryStatus } from '../../internal/contract/delivery.js'
import type {
  AcknowledgeInput,
  CommandDispatcher,
  DispatchInput,
  SettleInput,
} from '../../internal/contract/delivery-dispatch.js'
import type { MessageHistory } from '../../internal/contract/history.js'
import { commandStream } from '../../internal/contract/ingest.js'
import {
  type ActionConnector,
  type InvocationError,
  InvocationError as PublicError,
} from '../../internal/contract/invocations.js'
import {
  checkFields,
  defineOptions,
  hook,
  type Input,
  readParts,
  withMethods,
} from '../../internal/contract/options.js'
import type { Awaitable } from '../../internal/contract/page.js'
import type { RpcCorrelator, RpcInspector } from '../../internal/contract/rpc.js'
import { Refusal, type RefusalCode, wasNotRun } from '../../internal/refusal.js'
import { createClientWatch } from './client-watch.js'
import { ActionFailure, isDefinite, readResult, toInvocationError } from './failure.js'
import type { ActionOutcome, ActionReply, ReplyTarget } from './handlers.js'

// What becomes of a client's reply: call, command and history come to agree, however often it has to be sent.

/** The stores of calls and commands. Their inspectors are needed to finish a reply that was interrupted half-way. */
interface ReplyFacilities {
  rpc: RpcCorrelator & { inspector?: Pick<RpcInspector, 'getPending'> }
  dispatcher: CommandDispatcher & { inspector?: Pick<DeliveryInspector, 'status'> }
}

const NO_SIGNAL_CTX = { signal: new AbortController().signal }

/** Converts an error of the reply or the correlator to the gate's failure. */
function toFailure(error: unknown): unknown {
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
function createReply(
  { rpc, dispatcher }: ReplyFacilities,
  traces: Traces,
  record: (reply: Recorded, outcome: Read) => Promise<unknown>,
  onError: (error: unknown) => void,
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
    const by = status?.acknowledgement?.instance_id ?? instance_id
    const { state, reason } = status?.terminal ?? {}
    return by === instance_id && state === end.state && (reason ?? undefined) === end.reason
  }

  /** The trace of a call that another node opened, from the record of its command. A result is recorded without it if that fails. */
  async function readTrace({ correlation_id, user_id, client_id }: Omit<ActionReply, 'outcome'>) {
    const key = { user_id, client_id, command_id: correlation_id }
    const read = async () => dispatcher.inspector?.status(key, NO_SIGNAL_CTX)
    const status = await read().catch(onError)
    return status?.trace ?? undefined
  }

  return async ({ outcome: given, ...from }: ActionReply): Promise<boolean> => {
    if (given === undefined) return false
    // First, so that what settles the call can settle the command and be recorded too.
    const outcome = readOutcome(given)
    const { user_id, client_id, instance_id, correlation_id } = from
    // The call forgets its trace when it ends.
    const own = traces.get(correlation_id)
    const settled = await rpc.settle(correlation_id, { ...outcome, from: { user_id, client_id, instance_id } })
    if (!settled && !(await hasEnded(correlation_id))) return false
    const end = endOf(outcome)
    // A reply implies an acknowledgement, whether or not one was sent before.
    const by = { user_id, client_id, instance_id, acknowledge: true }
    const ended = await dispatcher.settle({ ...by, command_id: correlation_id, ...end })
    if (!settled && !ended && !(await hasEndedWith(from, end))) return false
    const trace = own ? own.trace : await readTrace(from)
    await record({ ...from, ...(trace === undefined ? {} : { trace }) }, outcome)
    return settled || ended
  }
}

/** Options of `createDispatchConnector`. */
export const DispatchConnectorOptions = defineOptions({
  /** Correlator of the calls. */
  rpc: withMethods<ReplyFacilities['rpc']>('open', 'settle'),
  /** Dispatcher of the commands. */
  dispatcher: withMethods<ReplyFacilities['dispatcher']>('dispatch', 'acknowledge', 'settle', 'cancel'),
  /** Registry that knows the current instance of a client. */
  connections: withMethods<Pick<ConnectionRegistry, 'currentInstance'>>('currentInstance'),
  /** History that records commands and results. */
  history: withMethods<MessageHistory>('append'),
  /** Called if a command could not be recorded; the call continues. `null` disables it. @default console.error */
  onError: hook<(error: unknown) => void>(),
})
export interface DispatchConnectorOptions extends Input<typeof DispatchConnectorOptions> {}

/** Sends calls as commands of the dispatcher, and takes the replies of the application. */
export interface DispatchConnector extends ActionConnector, ReplyTarget {
  /** The dispatcher's `acknowledge`, so that the connector is all that `actions.deliver` needs. */
  acknowledge(input: AcknowledgeInput): Promise<boolean>
  /**
   * Resolves to whether this was the one reply of the called client. Late, duplicate and foreign replies are dropped,
   * and so is `undefined`. An instance that was superseded meanwhile may still reply, because it ran the action. A
   * result over 1 MiB or one that JSON cannot carry becomes the failure `result_too_large` or `handler_error`. If the
   * promise rejects, send the reply again until it resolves: then call, command and history agree.
   *
   * @throws Refusal `invalid_input` for a value that is not an outcome; the call stays pending. Errors of the history
   * are thrown after the call was settled.
   */
  reply(reply: ActionReply): Promise<boolean>
}

// Pauses before a command is offered to the history again.
const RECORD_AGAIN_MS = [500, 2_000]

/** Whether a dispatcher that threw this may have admitted the command. */
const mayHaveSent = (error: unknown) => !wasNotRun(error) && !isDefinite(error)

// Codes passed to the gate unchanged: mistakes of the caller, or its own cancellation.
const SHOWN_CODES: ReadonlySet<RefusalCode> = new Set(['invalid_input', 'connector_unavailable', 'cancelled'])

/**
 * The caller's signal without its time limit: call and command have their own deadlines and end as timed out and
 * expired. Only a disconnect cancels them: that of the caller, or `abort`.
 */
function withoutTime(given: AbortSignal) {
  const controller = new AbortController()
  const forget = onAbort(given, () => {
    const { reason } = given
    if (!(reason instanceof Refusal && reason.code === 'action_timeout')) controller.abort(reason)
  })
  return { signal: controller.signal, forget, abort: (reason: Refusal) => controller.abort(reason) }
}

/** Converts an error that occurred before anything was sent to the gate's refusal. */
function toNotSent(error: unknown): unknown {
  const code = error instanceof Refusal ? error.code : undefined
  if (code === 'payload_too_large') return new ActionFailure('parameters_too_large')
  // Only a caller's own id can meet itself: the same call is under way, here or on another node.
  if (code === 'command_conflict') return new Refusal('idempotency_in_progress', undefined, { cause: error })
  return code && SHOWN_CODES.has(code) ? error : new Refusal('connector_unavailable', undefined, { cause: error })
}

/** The client and the call of a recorded message. */
interface Recorded extends Omit<ActionReply, 'outcome'> {
  trace?: string
}

/** The traces of the calls that this process has opened and that have not ended, by correlation id. */
type Traces = Map<string, { readonly trace: string | undefined }>

/** The history of the commands and results of actions. */
function createRecorder({ history }: Pick<DispatchConnectorOptions, 'history'>, onError: (error: unknown) => void) {
  const record = async (kind: 'command' | 'result', { correlation_id, ...from }: Recorded, payload: unknown) =>
    history.append({
      ...from,
      message_id: kind === 'command' ? correlation_id : `${correlation_id}.result`,
      stream: commandStream(from.user_id, from.client_id),
      kind,
      payload: JSON.parse(JSON.stringify(payload)),
    })

  /** Records an admitted command. The action is under way: it waits for no history, and no failure of one ends it. */
  async function recordCommand(of: Recorded, payload: object): Promise<void> {
    for (const pause of [...RECORD_AGAIN_MS, undefined]) {
      try {
        return void (await record('command', of, payload))
      } catch (error) {
        if (pause === undefined || isDefinite(error)) return onError(error)
        await sleep(pause)
      }
    }
  }

  return { record, recordCommand }
}

/** Sends a command once, as far as that can be ensured. */
function createSender({ dispatcher }: Pick<DispatchConnectorOptions, 'dispatcher'>) {
  /** Sends the same command again, or finds it. A refusal of this attempt says nothing about the first one. */
  async function sendAgain(command: DispatchInput): Promise<boolean> {
    try {
      return (await dispatcher.dispatch(command)).admission.state === 'admitted'
    } catch {
      return false
    }
  }

  /**
   * Resolves to whether the command was admitted; `false` if unknown.
   *
   * @throws the error if it was certainly not sent, or `timeout` for a command sent earlier.
   */
  async function send(command: DispatchInput): Promise<boolean> {
    let status: DeliveryStatus
    try {
      status = await dispatcher.dispatch(command)
    } catch (error) {
      if (mayHaveSent(error)) return sendAgain(command)
      throw toNotSent(error)
    }
    if (status.admission.state === 'rejected')
      throw new Refusal('connector_unavailable', 'the command was not admitted')
    if (status.terminal !== null) throw new Refusal('timeout', 'a command of this id has run before')
    return true
  }

  return send
}

const CLIENT_FIELDS = ['user_id', 'client_id']
const REQUEST_FIELDS: readonly (keyof Parameters<ActionConnector['call']>[1])[] = [
  'action',
  'parameters',
  'timeout_ms',
  'signal',
  'command_id',
  'trace',
]

/**
 * Creates the standard connector to an application: while an action runs, it is listed in `/rpc/pending` and
 * `/delivery/status`, and its command and result are kept in the history stream
 * `users/{user_id}/clients/{client_id}/commands`. It is attempted once, and only while a connection waits for it, so
 * that an action runs at most once.
 *
 * If the dispatcher does not respond, the command may have been sent: it is sent again with the same id, which sends or
 * finds it, and then the reply is awaited. Only a command that was certainly not sent is `connector_unavailable`. A call
 * whose client has had no connection for 2 s is cancelled, with its command, and is `application_disconnected`.
 *
 * @example
 * const connector = createDispatchConnector(facilities)
 * await facilities.dispatcher.attach(instance, actions.deliver(instance, connector))
 */
export function createDispatchConnector(options: DispatchConnectorOptions): DispatchConnector {
  readParts(DispatchConnectorOptions, options)
  const { rpc, dispatcher, connections } = options
  const onError = guardErrorHook(options.onError)
  const { record, recordCommand } = createRecorder(options, onError)
  const send = createSender(options)
  const traces: Traces = new Map()
  const watchClient = createClientWatch(connections)

  /** Applies the time limit to calls that must succeed before anything is sent. */
  const before = <T>(work: () => Awaitable<T>): Promise<T> =>
    (async () => work())().catch((error) => {
      throw toNotSent(error)
    })

  return {
    async call({ user_id, client_id, ...rest }, request) {
      checkFields(rest, CLIENT_FIELDS, 'client.')
      checkFields(request, REQUEST_FIELDS)
      const client = { user_id, client_id }
      const { action, parameters, timeout_ms, signal, command_id, trace } = request
      const instance_id = await before(() => connections.currentInstance(client))
      if (instance_id === null) throw new Refusal('connector_unavailable', 'the client is not connected')
      const named = command_id === undefined ? {} : { correlation_id: command_id }
      const traced = trace === undefined ? {} : { trace }
      const caller = withoutTime(signal)
      const call = await before(() =>
        rpc.open({ ...client, action, instance_id, timeout_ms, signal: caller.signal, ...named, ...traced }),
      ).catch((error) => {
        caller.forget()
        throw error
      })
      traces.set(call.correlation_id, { trace })
      // After the call has ended, a disconnect no longer cancels it.
      const forgetCall = () => {
        caller.forget()
        traces.delete(call.correlation_id)
      }
      call.result.then(forgetCall, forgetCall)
      const key = { ...client, command_id: call.correlation_id }
      const recorded = () =>
        void recordCommand(
          { ...client, instance_id, correlation_id: key.command_id, ...traced },
          { action, parameters },
        )
      let gone: Refusal | undefined
      const cancel = () =>
        void (async () => dispatcher.cancel({ ...key, reason: gone?.code ?? 'cancelled' }))().catch(() => {})
      let isAdmitted: boolean
      try {
        if (signal.aborted) throw new Refusal('cancelled')
        isAdmitted = await send({
          ...key,
          action,
          payload: parameters as never,
          deadline_ms: timeout_ms,
          ...traced,
          max_attempts: 1,
          require_waiter: true,
        })
      } catch (error) {
        // Out of the pending calls; where that fails it leaves them at its deadline.
        await (async () => rpc.settle(call.correlation_id, { ok: false, error }))().catch(onError)
        throw error
      }
      // Only now: a command that was never admitted must not appear in the history.
      if (isAdmitted) recorded()
      // A command admitted after the time limit must not run.
      const forget = onAbort(signal.aborted ? signal : caller.signal, cancel)
      const unwatch = watchClient(client, () => {
        gone = new Refusal('application_disconnected')
        caller.abort(gone)
      })
      try {
        const result = await call.result
        if (!isAdmitted) recorded()
        return result
      } catch (error) {
        throw gone && error instanceof Refusal && error.code === 'cancelled' ? gone : toFailure(error)
      } finally {
        unwatch()
        forget()
      }
    },

    acknowledge: async (input) => dispatcher.acknowledge(input),
    reply: createReply(options, traces, (of, outcome) => record('result', of, outcome), onError),
  }
}
