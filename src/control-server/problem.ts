/** What goes wrong behind the control server's guard, as the problem that its caller reads. */
import { DeadlinePassed } from '../async/deadline.js'
import { PROBLEMS, type ProblemCode, ProblemError } from '../http/problem.js'
import { toProblemError } from '../http/refusals.js'
import { RelayError } from '../publisher/relay-error.js'

// What the relay says of the caller's own doing goes on to the caller; all else is between this process and the relay.
const FORWARDED: ReadonlySet<string> = new Set<ProblemCode>(['owner_mismatch', 'generic_action_name', 'share_exceeded'])

function relayProblem({ code, status }: RelayError): ProblemCode {
  if (status === null) return 'relay_timeout'
  const isForwarded = FORWARDED.has(code) && PROBLEMS[code as ProblemCode][0] === status
  return isForwarded ? (code as ProblemCode) : 'relay_refused'
}

/** The problem that an error is. Its message goes nowhere. */
export function toControlProblem(error: unknown): ProblemError {
  if (error instanceof DeadlinePassed) return new ProblemError('relay_timeout', {}, { cause: error })
  if (error instanceof RelayError) return new ProblemError(relayProblem(error), {}, { cause: error })
  return toProblemError(error, 'facility')
}
