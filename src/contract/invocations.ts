/** One action invoked in a session: what a viewer asks, and the evidence it gets back. */
import * as z from 'zod'
import { idField, Timestamp } from './ids.js'
import { JsonRecord, JsonValue } from './json.js'

/** What the runtime adds to the parameters of every action; a caller's own names of this kind are refused. */
export const RESERVED_PREFIX = '__cooperative_site_'
export const SESSION_PARAMETER = `${RESERVED_PREFIX}session_id`
export const SITE_PARAMETER = `${RESERVED_PREFIX}id`

/** How long an action may take when the caller does not say. */
export const TIMEOUT_DEFAULT_MS = 30_000
/** Longest time a caller may ask for: a viewer waits for it on one HTTP request. */
export const TIMEOUT_MAX_MS = 120_000

/** The body of an invocation. */
export const InvokeBody = z
  .strictObject({
    parameters: JsonRecord.optional().describe('What the action takes. Absent: `{}`.'),
    timeout_ms: z
      .int()
      .min(1)
      .max(TIMEOUT_MAX_MS)
      .optional()
      .describe(`How long it may take, in ms. Absent: what the relay says, ${TIMEOUT_DEFAULT_MS} by itself.`),
  })
  .describe('An invocation as a viewer asks for it.')
export type InvokeBody = z.infer<typeof InvokeBody>

/** What the application said when an action failed. `message` is what it meant for viewers; a thrown text never is. */
export const InvocationError = z
  .object({
    code: z.string().describe('What went wrong, for programs.'),
    message: z.string().nullable().describe('What it meant for viewers; a thrown text never is.'),
  })
  .describe('What the application said when an action failed.')
export type InvocationError = z.infer<typeof InvocationError>

/** The answer to an invocation that reached the application and came back. */
export const Invocation = z
  .object({
    invocation_id: z.string().describe('This invocation, for logs.'),
    action: idField('action'),
    status: z.enum(['succeeded', 'failed']).describe('What the application said of it.'),
    result: JsonValue.describe('What it returned: any JSON value, `null` where it failed.'),
    error: InvocationError.nullable().describe('Why it failed; `null` where it did not.'),
    started_at: Timestamp.describe('When the relay took it on.'),
    finished_at: Timestamp.describe('When the answer was there.'),
  })
  .describe('The answer to an invocation that reached the application and came back.')
export type Invocation = z.infer<typeof Invocation>

/** How the gate reaches the application: one ordinary call to one client. */
export interface ActionConnector {
  /**
   * @returns what the handler returned. Rejects when the handler failed; with `Refusal` `connector_unavailable` when
   * the client cannot be reached, `timeout` when it did not answer.
   */
  call(
    client: { user_id: string; client_id: string },
    request: {
      action: string
      parameters: Record<string, unknown>
      timeout_ms: number
      signal: AbortSignal
      command_id?: string
    },
  ): Promise<unknown>
}

// The idempotency family: which calls have run under which key, and what they came to.

/** How long a key stands for its call, from the claim on. */
export const IDEMPOTENCY_KEPT_MS = 600_000
/** Keys of one viewer in one session; beyond, the oldest of its own that has ended is forgotten. */
export const IDEMPOTENCY_KEYS_MAX = 1_000

/** One attempt at one call. */
export interface IdempotencyClaim {
  /** Keys belong to one viewer in one session: nobody else meets them, and nobody else can crowd them out. */
  session_id: string
  user_id: string
  key: string
  /** A digest of what is asked for; the same key with another one is another call. */
  fingerprint: string
  /** Names this attempt, so that asking twice is asking once. */
  attempt: string
  /** How long it may be under way; when it has not ended by then, nobody knows what it came to. */
  leaseMs: number
}

/**
 * What became of a claim: this attempt may run; another one is under way; the key belongs to another call; or the call
 * has ended, with its answer, `null` where nobody knows what it came to or the answer was too old to be kept.
 */
export type IdempotencyState =
  | { state: 'claimed' /** Epoch ms. */; at: number }
  | { state: 'running' }
  | { state: 'reused' }
  | { state: 'ended'; answer: Invocation | null }

/**
 * Where keys are kept. One per process is enough for one relay; several relays share one. What it cannot say for certain
 * it must not say: a claim that may have run is never free again before its time.
 */
export interface IdempotencyStore {
  /** @throws Refusal `capacity_exceeded` when all keys of this viewer in this session are under way; `unavailable`. */
  claim(claim: IdempotencyClaim): Promise<IdempotencyState>
  /** The attempt ran, or may have (`null`): this is what every repeat is answered. */
  keep(claim: IdempotencyClaim, answer: Invocation | null): Promise<void>
  /** The attempt did not run: the key is free again. */
  release(claim: IdempotencyClaim): Promise<void>
}
