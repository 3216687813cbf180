/** What a refusal is over HTTP: the one table from the library's vocabulary of "no" to the problems of its routers. */
import { Refusal, type RefusalCode } from '../refusal.js'
import { PROBLEMS, type ProblemCode, ProblemError } from './problem.js'

/** Who refuses: an inspector that is asked for a diagnosis, or a facility, registry or gate that is asked to act. */
type Refuser = 'inspector' | 'facility'

/** Where nothing is said, the refusal is a fault of whoever said it: `internal`. */
const REFUSALS: Record<RefusalCode, Partial<Record<Refuser, ProblemCode>>> = {
  invalid_identity: {},
  invalid_cursor: { inspector: 'invalid_cursor' },
  unavailable: { inspector: 'inspector_unavailable', facility: 'unavailable' },
  not_narrowable: { inspector: 'not_narrowable' },
  invalid_input: { facility: 'invalid_body' },
  stale_instance: { facility: 'stale_instance' },
  identity_conflict: {},
  command_conflict: {},
  capacity_exceeded: { facility: 'share_exceeded' },
  payload_too_large: { facility: 'body_too_large' },
  timeout: { facility: 'unavailable' },
  // Who cancelled has gone and reads nothing; whoever else looks at it learns the truth.
  cancelled: { facility: 'action_timeout' },
  closed: { facility: 'unavailable' },
  forbidden: { facility: 'forbidden' },
  unknown_site: { facility: 'not_found' },
  owner_mismatch: { facility: 'owner_mismatch' },
  invalid_transition: {},
  generic_action_name: { facility: 'generic_action_name' },
  event_name_not_allowed: { facility: 'event_name_not_allowed' },
  session_not_found: { facility: 'session_not_found' },
  session_not_active: { facility: 'session_not_active' },
  site_not_cooperative: { facility: 'site_not_cooperative' },
  action_invocation_disabled: { facility: 'action_invocation_disabled' },
  action_not_allowed: { facility: 'action_not_allowed' },
  reserved_parameter: { facility: 'reserved_parameter' },
  invalid_parameters: { facility: 'invalid_parameters' },
  approval_denied: { facility: 'approval_denied' },
  approval_timeout: { facility: 'approval_timeout' },
  connector_unavailable: { facility: 'connector_unavailable' },
  action_timeout: { facility: 'action_timeout' },
  idempotency_key_reused: { facility: 'idempotency_key_reused' },
  idempotency_in_progress: { facility: 'idempotency_in_progress' },
}

/**
 * The problem that `error` is. Its message goes nowhere: `cause` is for a host's hook, which hears no refusal of what a
 * client asked.
 *
 * @param own What refusals mean on one route, where that differs.
 */
export function toProblemError(
  error: unknown,
  refuser: Refuser,
  own: Partial<Record<RefusalCode, ProblemCode>> = {},
): ProblemError {
  if (error instanceof ProblemError) return error
  const code = (error instanceof Refusal && (own[error.code] ?? REFUSALS[error.code]?.[refuser])) || 'internal'
  const cause = PROBLEMS[code][0] < 500 ? undefined : error
  return new ProblemError(code, code === 'action_timeout' ? { outcome: 'unknown' } : {}, { cause })
}
