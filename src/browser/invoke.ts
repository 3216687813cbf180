/** The invocation: one allowed action of the session, asked for once. */
import type { Invocation, InvocationError } from '../contract/invocations.js'
import type { Json, JsonObject } from '../contract/json.js'
import { toSegment, UNEXPECTED } from '../relay-client/answer.js'
import { type Check, isOneOf, isRecordOf, isText, nullable } from '../relay-client/shape.js'
import { CooperativeSiteError, readAnswer, toError } from './problem.js'
import type { Send } from './send.js'

export interface InvokeOptions {
  /** Hangs up, which cancels the call at the relay. */
  signal?: AbortSignal | undefined
  /** Makes it safe to ask again: the same key and parameters are the same call (10 minutes). */
  idempotencyKey?: string | undefined
  /** How long the relay waits for the application, 1 to 120,000 ms. @default the relay's, 30,000 */
  timeoutMs?: number | undefined
}

// Whatever was parsed is JSON; only that it is there can be missing.
const isJson = (value: unknown): value is Json => value !== undefined

const isInvocation: Check<Invocation> = isRecordOf<Invocation>({
  invocation_id: isText,
  action: isText,
  status: isOneOf('succeeded', 'failed'),
  result: isJson,
  error: nullable(isRecordOf<InvocationError>({ code: isText, message: nullable(isText) })),
  started_at: isText,
  finished_at: isText,
})

/**
 * Invokes `action` once; nothing is retried.
 *
 * @returns the relay's answer; `status: 'failed'` means that the application said no.
 * @throws CooperativeSiteError with the relay's code. `outcome: 'unknown'`: it may have run. An abort rejects with the
 * signal's reason.
 */
export async function invoke(
  send: Send,
  action: string,
  parameters: JsonObject | undefined,
  { signal = new AbortController().signal, idempotencyKey, timeoutMs }: InvokeOptions = {},
): Promise<Invocation> {
  const path = `actions/${toSegment('action', action)}`
  const body = JSON.stringify({ parameters, timeout_ms: timeoutMs })
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  // An empty one too: the relay refuses it, while without a key the action would run twice.
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  let response: Response
  try {
    response = await send(path, { method: 'POST', headers, body, signal })
  } catch (cause) {
    signal.throwIfAborted()
    throw new CooperativeSiteError('unreachable', null, 'unknown', { cause })
  }
  if (response.status !== 200) {
    const error = await toError(response, 'unknown')
    signal.throwIfAborted()
    throw error
  }
  const answer = await readAnswer(response)
  signal.throwIfAborted()
  if (!isInvocation(answer)) throw new CooperativeSiteError(UNEXPECTED, 200, 'unknown')
  return answer
}
