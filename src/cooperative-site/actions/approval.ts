/** The optional yes of a person or program to one exact call. */

import { withTimeout } from '../../async/time-limit.js'
import type { JsonObject } from '../../contract/json.js'
import type { Awaitable } from '../../contract/page.js'
import type { Principal } from '../../contract/sessions.js'
import { Refusal } from '../../refusal.js'

/** One call as it is put before whoever approves: frozen, and exactly what is sent if the answer is yes. */
export interface ApprovalRequest {
  invocation_id: string
  session_id: string
  site_id: string
  action: string
  parameters: JsonObject
  viewer: Principal
  /** Aborted when nobody waits for the answer any more. */
  signal: AbortSignal
}

/** Asked once per call. Anything but `true`, and a throw, is a no; a yes holds for that call alone. */
export type Approve = (request: ApprovalRequest) => Awaitable<boolean>

interface ApprovalOptions {
  approve: Approve
  ms: number
  signal: AbortSignal | undefined
  onError: (error: unknown) => void
}

/** @throws Refusal `approval_denied`, `approval_timeout`, or `cancelled` when the viewer went away. */
export async function requireApproval(
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
