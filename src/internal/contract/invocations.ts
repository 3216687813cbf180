/** Invocations of actions: a viewer's request and its result. */
import * as z from 'zod'
import { Id, idField, Timestamp, Traceparent } from './ids.js'
import { JsonRecord, JsonValue } from './json.js'
import { checkFields, inputObject, parseInput } from './options.js'

/** Prefix of the parameters that the runtime adds to every action; callers must not use it. */
export const RESERVED_PREFIX = '__cooperative_site_'
/** Name of the reserved parameter with the session id. */
export const SESSION_PARAMETER = `${RESERVED_PREFIX}session_id`
/** Name of the reserved parameter with the site id. */
export const SITE_PARAMETER = `${RESERVED_PREFIX}id`

/** The default timeout of an action, in milliseconds. */
export const TIMEOUT_DEFAULT_MS = 30_000
/** The maximum timeout of an action, in milliseconds: the viewer waits for it on one HTTP request. */
export const TIMEOUT_MAX_MS = 120_000

/** The body of an invocation. */
export const InvokeBody = z
  .strictObject({
    parameters: JsonRecord.optional().describe('The parameters of the action. Absent: `{}`.'),
    timeout_ms: z
      .int()
      .min(1)
      .max(TIMEOUT_MAX_MS)
      .optional()
      .describe(`Timeout in milliseconds. Absent: the relay's default, normally ${TIMEOUT_DEFAULT_MS}.`),
    trace: Traceparent.optional().describe(
      'The W3C `traceparent` of the caller, shown with the call and its command. Absent: none.',
    ),
  })
  .describe('An invocation as requested by a viewer.')
export type InvokeBody = z.infer<typeof InvokeBody>

/** The application's error. `message` is meant for viewers; the message of a thrown error is never used. */
export const InvocationError = z
  .object({
    code: z.string().describe('What went wrong, for programs.'),
    message: z.string().nullable().describe('A message meant for viewers; never that of a thrown error.'),
  })
  .describe("The application's error.")
export type InvocationError = z.infer<typeof InvocationError>

/** The result of an invocation that the application answered. */
export const Invocation = z
  .object({
    invocation_id: z.string().describe('This invocation, for logs.'),
    action: idField('action'),
    status: z.enum(['succeeded', 'failed']).describe('Whether the application succeeded.'),
    result: JsonValue.describe('The returned JSON value; `null` if it failed.'),
    error: InvocationError.nullable().describe('Why it failed; `null` where it did not.'),
    started_at: Timestamp.describe('When the relay accepted the call.'),
    finished_at: Timestamp.describe('When the result arrived.'),
  })
  .describe('The result of an invocation that the application answered.')
export type Invocation = z.infer<typeof Invocation>

/** How the gate reaches the application: one ordinary call to one client. */
export interface ActionConnector {
  /**
   * Calls the application once.
   *
   * @returns the handler's result. Rejects when the handler failed; with `Refusal` `connector_unavailable` when the
   * client cannot be reached, `timeout` when it did not reply, `application_disconnected` when it no longer can.
   */
  call(
    client: { user_id: string; client_id: string },
    request: {
      action: string
      parameters: Record<string, unknown>
      timeout_ms: number
      signal: AbortSignal
      command_id?: string
      /** W3C `traceparent` of the caller. */
      trace?: string
    },
  ): Promise<unknown>
}

// Idempotency keys: which calls ran under which key, and their results.

/** How long a key is remembered after its claim. */
export const IDEMPOTENCY_KEPT_MS = 600_000
/** Maximum keys of one viewer in one session; beyond it the viewer's oldest ended key is forgotten. */
export const IDEMPOTENCY_KEYS_MAX = 1_000

/** One attempt at one call. */
export const IdempotencyClaim = inputObject({
  /** Keys belong to one viewer in one session: other viewers neither see them nor use up their limit. */
  session_id: Id,
  /** Id of the viewer. */
  user_id: Id,
  /** Idempotency key that the viewer sent. */
  key: z.string(),
  /** A digest of the request; the same key with another digest is another call. */
  fingerprint: z.string(),
  /** Identifies this attempt, so that repeating it is harmless. */
  attempt: z.string(),
  /** How long the call may be pending, in ms; after that its outcome is unknown. */
  lease_ms: z.int().min(1),
})
export type IdempotencyClaim = z.infer<typeof IdempotencyClaim>

/** Throws `invalid_input` for a field that an answer does not have. `null` is the answer of a call that may have run. */
export function checkAnswer(answer: Invocation | null): void {
  if (answer !== null) checkFields(answer, Object.keys(Invocation.shape), 'answer.')
}

/** Returns the claim of `given`. @throws Refusal `invalid_input` */
export const readClaim = (given: IdempotencyClaim): IdempotencyClaim => parseInput(IdempotencyClaim, given)

/**
 * The result of a claim: this attempt may run; another one is pending; the key belongs to another call; or the call has
 * ended, with its result, `null` if the outcome is unknown or the result is no longer stored.
 */
export type IdempotencyState =
  | { state: 'claimed' /** Epoch ms. */; at: number }
  | { state: 'running' }
  | { state: 'reused' }
  | { state: 'ended'; answer: Invocation | null }

/**
 * Stores idempotency keys. One per process is enough for one relay; several relays share one. It must never report an
 * uncertain state as certain: a claim that may have run is not free again before it expires.
 */
export interface IdempotencyStore {
  /**
   * Claims a key for one attempt, or returns what is known of it.
   *
   * @throws Refusal `capacity_exceeded` when all keys of this viewer in this session are pending; `unavailable`.
   */
  claim(claim: IdempotencyClaim): Promise<IdempotencyState>
  /** Records the result of an attempt, or `null` if it may have run: every repeat gets it. */
  keep(claim: IdempotencyClaim, answer: Invocation | null): Promise<void>
  /** The attempt did not run: the key is free again. */
  release(claim: IdempotencyClaim): Promise<void>
}
