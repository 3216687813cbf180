/** One call of the application, and what it came to: a bounded result, a failure in its own words, or no answer. */

import { withTimeout } from '../../async/time-limit.js'
import type { ActionConnector, InvocationError } from '../../contract/invocations.js'
import type { Json } from '../../contract/json.js'
import { Refusal, type RefusalCode } from '../../refusal.js'
import { ActionFailure, toInvocationError } from './failure.js'
import { readResult } from './result.js'

// What a connector says when it lost sight of a call: it may have taken effect.
const LOST: ReadonlySet<RefusalCode> = new Set(['timeout', 'unavailable', 'closed'])
// How a call ends without an answer of the application.
const NO_ANSWER: ReadonlySet<RefusalCode> = new Set([
  'connector_unavailable',
  'idempotency_in_progress',
  'action_timeout',
  'cancelled',
])

/** What the application answered. */
interface ApplicationAnswer {
  result: Json
  error: InvocationError | null
}

interface ApplicationCall {
  client: { user_id: string; client_id: string }
  request: { action: string; parameters: Record<string, unknown>; timeout_ms: number; command_id?: string }
  signal: AbortSignal | undefined
  onError: (error: unknown) => void
}

/**
 * Calls once. What comes back after the time is up is dropped.
 *
 * @throws Refusal `connector_unavailable` and `idempotency_in_progress` when nothing was sent, `action_timeout` or `cancelled` when nobody knows.
 */
export async function callApplication(connector: ActionConnector, call: ApplicationCall): Promise<ApplicationAnswer> {
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
    // The application's own no, in its own words, is no error.
    if (!(error instanceof ActionFailure)) onError(error)
    return failed(toInvocationError(error))
  }
  const read = readResult(result)
  return read.ok ? { result: read.result, error: null } : failed(read.error)
}
