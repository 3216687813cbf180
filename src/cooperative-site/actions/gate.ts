/** The action gate: checks an invocation and makes at most one call to the application. */

import * as z from 'zod'
import { DEADLINE_MS, withTimeout } from '../../internal/async/deadline.js'
import { guardErrorHook } from '../../internal/async/hook.js'
import { createTracing, withTrace } from '../../internal/contract/channels.js'
import { TIMER_MAX_MS } from '../../internal/contract/checks.js'
import { randomUuid, Traceparent, toTimestamp } from '../../internal/contract/ids.js'
import type { IdempotencyStore } from '../../internal/contract/invocations.js'
import {
  type ActionConnector,
  type Invocation,
  type InvocationError,
  TIMEOUT_DEFAULT_MS,
  TIMEOUT_MAX_MS,
} from '../../internal/contract/invocations.js'
import type { Json, JsonObject } from '../../internal/contract/json.js'
import {
  checkFields,
  count,
  defineOptions,
  func,
  hook,
  type Input,
  madeBy,
  parseInput,
  type Read,
  readOptions,
  timer,
  whole,
  withMethods,
} from '../../internal/contract/options.js'
import type { Awaitable } from '../../internal/contract/page.js'
import type { Principal, Session, SessionPolicy, SessionRegistry } from '../../internal/contract/sessions.js'
import type { SiteRegistry } from '../../internal/contract/sites.js'
import { Refusal, type RefusalCode } from '../../internal/refusal.js'
import { createIdempotencyStore } from '../../memory/cooperative/idempotency.js'
import { admitAction, findSession, requireInvoker } from './check-action.js'
import { ActionFailure, readResult, toInvocationError } from './failure.js'
import { claimKey, type KeyScope } from './keyed-call.js'
import { parseParameters, refuseReserved, requireObject, withReserved } from './parameters.js'
import { createShares } from './shares.js'

/** One call as shown for approval: frozen, and exactly what is sent if approved. */
export interface ApprovalRequest {
  /** Id of the call. */
  invocation_id: string
  /** Id of the session. */
  session_id: string
  /** Id of the site. */
  site_id: string
  /** Name of the action. */
  action: string
  /** Parameters of the call, validated. */
  parameters: JsonObject
  /** The viewer that calls. */
  viewer: Principal
  /** Aborted when the result is no longer needed. */
  signal: AbortSignal
}

/**
 * Called once per call. Anything but `true`, including an error, denies it; an approval is valid for that call only.
 */
export type Approve = (request: ApprovalRequest) => Awaitable<boolean>

interface ApprovalOptions {
  approve: Approve
  ms: number
  signal: AbortSignal | undefined
  onError: (error: unknown) => void
}

/** @throws Refusal `approval_denied`, `approval_timeout`, or `cancelled` when the viewer disconnects. */
async function requireApproval(
  request: Omit<ApprovalRequest, 'signal'>,
  { approve, ms, signal, onError }: ApprovalOptions,
): Promise<void> {
  const requestApproval = async (own: AbortSignal) => approve(Object.freeze({ ...request, signal: own }))
  let answer: unknown
  try {
    answer = await withTimeout(requestApproval, { ms, code: 'approval_timeout', signal })
  } catch (error) {
    if (error instanceof Refusal && (error.code === 'approval_timeout' || error.code === 'cancelled')) throw error
    if (!(error instanceof Refusal)) onError(error)
  }
  if (answer !== true) throw new Refusal('approval_denied')
}

// Codes of a connector that lost track of a call: it may have taken effect.
const LOST: ReadonlySet<RefusalCode> = new Set(['timeout', 'unavailable', 'closed'])
// Codes of calls that end without a response of the application.
const NO_ANSWER: ReadonlySet<RefusalCode> = new Set([
  'connector_unavailable',
  'idempotency_in_progress',
  'action_timeout',
  'application_disconnected',
  'cancelled',
])

/** The application's response. */
interface ApplicationAnswer {
  result: Json
  error: InvocationError | null
}

interface ApplicationCall {
  client: { user_id: string; client_id: string }
  request: Omit<Parameters<ActionConnector['call']>[1], 'signal'>
  signal: AbortSignal | undefined
  onError: (error: unknown) => void
}

/**
 * Calls the application once. A response after the time limit is dropped.
 *
 * @throws Refusal `connector_unavailable` and `idempotency_in_progress` when nothing was sent, `action_timeout`,
 * `application_disconnected` or `cancelled` when the outcome is unknown.
 */
async function callApplication(connector: ActionConnector, call: ApplicationCall): Promise<ApplicationAnswer> {
  const { client, request, signal, onError } = call
  const failed = (error: InvocationError) => ({ result: null, error })
  let result: unknown
  try {
    const send = (own: AbortSignal) => connector.call(client, { ...request, signal: own })
    result = await withTimeout(send, { ms: request.timeout_ms, code: 'action_timeout', signal })
  } catch (error) {
    if (error instanceof Refusal && NO_ANSWER.has(error.code)) throw error
    if (error instanceof Refusal && LOST.has(error.code))
      throw new Refusal('action_timeout', error.detail, { cause: error })
    // A failure that the application chose to report is not an error.
    if (!(error instanceof ActionFailure)) onError(error)
    return failed(toInvocationError(error))
  }
  const read = readResult(result)
  return read.ok ? { result: read.result, error: null } : failed(read.error)
}

// Store reads between claiming a key and recording its outcome.
const LOOKS = 4

/** Options of `createCooperativeActionGate`. */
export const ActionGateOptions = defineOptions({
  /** Registry of the sites. */
  sites: withMethods<Pick<SiteRegistry, 'get'>>('get'),
  /** Registry of the sessions. */
  sessions: withMethods<Pick<SessionRegistry, 'get'>>('get'),
  /** Decides who may view and invoke: `createSessionPolicy()` or your own. */
  policy: madeBy<SessionPolicy>('createSessionPolicy()', 'check'),
  /** Sends calls to the application: `createDispatchConnector()` or your own. */
  connector: madeBy<ActionConnector>('createDispatchConnector()', 'call'),
  /** Called before each call is sent; anything but `true` refuses it. @default every call is approved */
  approve: func<Approve>().optional(),
  /** Timeout in ms of a call without `timeout_ms`. @default 30000 */
  timeoutMs: count(TIMEOUT_DEFAULT_MS, TIMEOUT_MAX_MS),
  /** Timeout of `approve` in ms. @default the timeout of the call */
  approvalTimeoutMs: whole(TIMER_MAX_MS).optional(),
  /** Store of the idempotency keys; relays that serve the same viewers share one. @default createIdempotencyStore() */
  idempotency: withMethods<IdempotencyStore>('claim', 'keep', 'release').optional(),
  // Each holds a request, a timer and a call.
  /** Maximum number of pending calls per viewer. @default 1000 */
  callsPerViewer: count(1_000),
  /** Timeout in ms of one read of the stores and the policy. @default 5000 */
  deadlineMs: timer(DEADLINE_MS),
  /** Returns the time in epoch ms. @default Date.now */
  now: func<() => number>().default(() => Date.now),
  /** Returns a new invocation id. @default crypto.randomUUID */
  newId: func<() => string>().default(() => randomUuid),
  /**
   * Called with errors of the policy, a handler or a connector. Viewers never see them. Errors that it throws change nothing.
   * `null` disables it. @default console.error
   */
  onError: hook<(error: unknown) => void>(),
})
export interface ActionGateOptions extends Input<typeof ActionGateOptions> {}

/** One call of an action. */
export interface InvokeInput {
  /** Id of the session. */
  session_id: string
  /** Name of the action. */
  action: string
  /** Parameters of the call: a JSON object. @default {} */
  parameters?: unknown
  /** The viewer that calls. */
  viewer: Principal
  /** Abort it when the viewer disconnects: the call is cancelled, and its outcome is unknown. */
  signal?: AbortSignal | undefined
  /** 1–120,000. */
  timeout_ms?: number | undefined
  /** Calls of a viewer with the same key run once. */
  idempotency_key?: string | undefined
  /** W3C `traceparent` of the caller: passed to the connector, whose call and command show it. @default none */
  trace?: string | undefined
}

const INVOKE_FIELDS: readonly (keyof InvokeInput)[] = [
  'session_id',
  'action',
  'parameters',
  'viewer',
  'signal',
  'timeout_ms',
  'idempotency_key',
  'trace',
]

/** Checks and invokes actions for viewers. */
export interface ActionGate {
  /**
   * Invokes an allowed action once, without retries or a queue.
   *
   * @throws Refusal with the code of the first condition that does not hold, `unavailable` when a store or the policy
   * does not respond, `capacity_exceeded` when the viewer has too many pending calls, `action_timeout` or
   * `application_disconnected` when the outcome is unknown, `cancelled` when the viewer disconnected.
   */
  invoke(input: InvokeInput): Promise<Invocation>
  /** Calls under way, from the moment that their session is found. */
  readonly pending: number
}

interface CheckedCall extends Pick<InvokeInput, 'action' | 'parameters' | 'viewer' | 'signal' | 'trace'> {
  session: Session
  timeout_ms: number
  scope: KeyScope | undefined
}

const Traced = z.object({ trace: Traceparent })

const ACTION = createTracing('relayscope:action')

const isUnsent = (error: unknown) =>
  error instanceof Refusal && (error.code === 'connector_unavailable' || error.code === 'idempotency_in_progress')

/**
 * Creates the gate of one process.
 *
 * @throws TypeError when the policy is missing.
 *
 * @example
 * const gate = createCooperativeActionGate({ sites, sessions, policy, connector })
 * await gate.invoke({ session_id, action: 'archive_note', parameters: { id: 7 }, viewer: { user_id: 'bob' } })
 */
export function createCooperativeActionGate(options: ActionGateOptions): ActionGate {
  return openGate(readOptions(ActionGateOptions, options))
}

/** `createCooperativeActionGate` for options that have been read. */
export function openGate(options: Read<typeof ActionGateOptions>): ActionGate {
  const { connector, approve, approvalTimeoutMs, timeoutMs, deadlineMs, callsPerViewer, now, newId } = options
  const onError = guardErrorHook(options.onError)
  const { sites, sessions, policy } = options
  const deps = { sites, sessions, policy, onError }
  const store = options.idempotency ?? createIdempotencyStore({ now })
  const calls = createShares(callsPerViewer, 'calls are under way')

  /** Reads from stores and the policy within the deadline, while the viewer is connected. */
  const read = <T>(work: () => Promise<T>, signal: AbortSignal | undefined) =>
    withTimeout(work, { ms: deadlineMs, code: 'unavailable', signal })

  /** Checks all conditions again after a slow step, so that revocations in the meantime count. */
  const recheck = ({ session, viewer, action, signal }: CheckedCall) =>
    read(async () => {
      const fresh = await findSession(deps, session.session_id, viewer)
      return admitAction(deps, { session: fresh, viewer, action })
    }, signal)

  /** Runs a call after the viewer's access to the session was checked. */
  async function run(input: CheckedCall): Promise<Invocation> {
    const { session, action, viewer, signal, timeout_ms, scope, trace } = input
    const { session_id, site_id } = session
    requireObject(input.parameters)
    await read(() => requireInvoker(deps, { session, viewer, action }), signal)
    const parameters = parseParameters(input.parameters)
    let admitted = await read(() => admitAction(deps, { session, viewer, action }), signal)
    refuseReserved(parameters)
    if (signal?.aborted) throw new Refusal('cancelled')
    const invocation_id = newId()
    const approvalMs = approve ? (approvalTimeoutMs ?? timeout_ms) : 0
    const claim =
      scope &&
      (await claimKey(
        scope,
        { action, parameters, timeout_ms },
        // Not `invocation_id`: a host's own ids need not be without repeats.
        {
          store,
          attempt: crypto.randomUUID(),
          leaseMs: timeout_ms + approvalMs + LOOKS * deadlineMs,
          read: (work) => read(async () => work(), undefined),
          onError,
        },
      ))
    if (claim && 'status' in claim) return claim

    const startedAt = now()
    let sent = false
    try {
      if (approve)
        await requireApproval(
          { invocation_id, session_id, site_id, action, parameters, viewer },
          { approve, ms: approvalMs, signal, onError },
        )
      if (approve || claim) admitted = await recheck(input)
      sent = true
      const request = {
        action,
        parameters: withReserved(parameters, session_id, site_id),
        timeout_ms,
        ...(claim && { command_id: claim.command_id }),
        ...withTrace(trace),
      }
      const { result, error } = await callApplication(connector, {
        client: admitted.connector,
        request,
        signal,
        onError,
      })
      const invocation: Invocation = Object.freeze({
        invocation_id,
        action,
        status: error === null ? 'succeeded' : 'failed',
        result,
        error,
        started_at: toTimestamp(startedAt),
        finished_at: toTimestamp(now()),
      })
      await claim?.keep(invocation)
      return invocation
    } catch (error) {
      // A call without a response may have taken effect: under its key it must not run again.
      if (sent && !isUnsent(error)) await claim?.keep(null)
      else await claim?.release()
      throw error
    }
  }

  function traced(call: CheckedCall): Promise<Invocation> {
    if (!ACTION.hasSubscribers) return run(call)
    const { session, viewer, action, trace } = call
    const of = { session_id: session.session_id, user_id: viewer.user_id, action }
    return ACTION.run(
      { ...of, ...withTrace(trace), invocation_id: null, status: null },
      () => run(call),
      ({ invocation_id, status }) => ({ invocation_id, status }),
    )
  }

  return {
    get pending() {
      return calls.size
    },
    async invoke(given) {
      checkFields(given, INVOKE_FIELDS)
      const { session_id, timeout_ms = timeoutMs, idempotency_key: key, ...input } = given
      const { viewer, signal } = input
      if (!Number.isSafeInteger(timeout_ms) || timeout_ms < 1 || timeout_ms > TIMEOUT_MAX_MS)
        throw new Refusal('invalid_input', `timeout_ms must be a whole number from 1 to ${TIMEOUT_MAX_MS}`)
      if (input.trace !== undefined) parseInput(Traced, { trace: input.trace })
      const scope = key === undefined ? undefined : { session_id, user_id: viewer.user_id, key }
      const session = await read(() => findSession(deps, session_id, viewer), signal)
      // Only now: a viewer who may not see the session must neither use a slot nor learn that none is free.
      const release = calls.take(viewer.user_id)
      try {
        return await traced({ ...input, session, timeout_ms, scope })
      } finally {
        release()
      }
    },
  }
}
