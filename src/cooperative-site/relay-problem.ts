/** What goes wrong at the relay, as the problem that its caller reads. */
import { PROBLEMS, type ProblemCode, ProblemError } from '../http/problem.js'
import { Refusal, type RefusalCode } from '../refusal.js'

// Refusals that go by another name on the wire; the others keep theirs.
const RENAMED: Partial<Record<RefusalCode, ProblemCode>> = {
  invalid_input: 'invalid_body',
  payload_too_large: 'body_too_large',
  unknown_site: 'not_found',
  capacity_exceeded: 'share_exceeded',
  closed: 'unavailable',
  timeout: 'unavailable',
  // Who cancelled has gone and reads nothing; whoever else looks at it learns the truth.
  cancelled: 'action_timeout',
}

// What belongs to the diagnostics router, or says that a facility was misused: at the relay it is nobody's answer.
const FOREIGN: ReadonlySet<RefusalCode> = new Set([
  'invalid_cursor',
  'invalid_identity',
  'identity_conflict',
  'command_conflict',
  'invalid_transition',
])

function toProblemCode(code: RefusalCode): ProblemCode {
  const renamed = RENAMED[code] ?? code
  return FOREIGN.has(code) || !Object.hasOwn(PROBLEMS, renamed) ? 'internal' : (renamed as ProblemCode)
}

/** The problem that `error` is. Its message goes nowhere. */
export function toProblemError(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error
  const code = error instanceof Refusal ? toProblemCode(error.code) : 'internal'
  return new ProblemError(code, code === 'action_timeout' ? { outcome: 'unknown' } : {}, { cause: error })
}
