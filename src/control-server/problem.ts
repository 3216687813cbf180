/** What goes wrong behind the control server's door, as the problem that its caller reads. */
import { DeadlinePassed } from '../async/deadline.js'
import { type ProblemCode, ProblemError } from '../http/problem.js'
import { RelayError } from '../publisher/relay-error.js'
import { Refusal, type RefusalCode } from '../refusal.js'

// What a registry says, here or at the relay. Anything else is the registry's own fault.
const REGISTRY_REFUSALS: Partial<Record<RefusalCode, ProblemCode>> = {
  invalid_input: 'invalid_body',
  payload_too_large: 'body_too_large',
  generic_action_name: 'generic_action_name',
  owner_mismatch: 'owner_mismatch',
  capacity_exceeded: 'share_exceeded',
  unavailable: 'unavailable',
}

/** The problem that an error is. Its message goes nowhere. */
export function toProblemError(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error
  if (error instanceof DeadlinePassed) return new ProblemError('relay_timeout', {}, { cause: error })
  if (error instanceof RelayError) {
    const named =
      error.status === 409 || error.status === 422
        ? REGISTRY_REFUSALS[error.code as RefusalCode]
        : error.status === 429 && error.code === 'share_exceeded'
          ? 'share_exceeded'
          : undefined
    return new ProblemError(named ?? (error.status === null ? 'relay_timeout' : 'relay_refused'), {}, { cause: error })
  }
  const code = error instanceof Refusal ? REGISTRY_REFUSALS[error.code] : undefined
  return new ProblemError(code ?? 'internal', {}, { cause: error })
}
