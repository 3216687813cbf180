/** Problem documents (RFC 9457): the table from code to status and title. */
import * as z from 'zod'
import { utf8Length } from '../contract/ids.js'
import { Refusal, type RefusalCode } from '../refusal.js'

/** Every code a problem body can carry, with its status and its fixed title. */
export const PROBLEMS = {
  bad_request: [400, 'The request has no single reading'],
  invalid_delivery_identity: [400, 'The identity, or the combination of identities, cannot name a command'],
  invalid_json: [400, 'The body is not valid UTF-8 JSON'],
  unauthenticated: [401, 'Authentication is required'],
  forbidden: [403, 'Not allowed'],
  admin_key_required: [
    403,
    'Without an administrator key only direct requests from this machine are answered: set SERVICE_ADMIN_KEY or the option key',
  ],
  not_narrowable: [403, 'This response covers all users and cannot be restricted to the users you may see'],
  not_loopback: [403, 'The caller is not on this machine'],
  forwarded_request: [403, 'The request was forwarded'],
  bad_host: [403, 'The Host is not this server on this machine'],
  bad_origin: [403, 'The request comes from a web page'],
  action_invocation_disabled: [403, 'The site does not let actions be invoked'],
  action_not_allowed: [403, 'The site does not allow this action'],
  approval_denied: [403, 'The action was not approved'],
  route_not_found: [404, 'No such route'],
  not_found: [404, 'No such record'],
  session_not_found: [404, 'No such session'],
  method_not_allowed: [405, 'The method is not allowed on this route'],
  owner_mismatch: [409, 'The site belongs to another owner'],
  stale_instance: [409, 'Another instance of the client has taken over'],
  session_not_active: [409, 'The session is not active'],
  site_not_cooperative: [409, 'The site is not cooperative'],
  idempotency_in_progress: [409, 'The call with this idempotency key is under way'],
  deployment_mismatch: [412, 'This is not the expected deployment'],
  body_too_large: [413, 'The body is too large'],
  uri_too_long: [414, 'The URL is too long'],
  too_many_headers: [431, 'The request has too many header lines'],
  unsupported_media_type: [415, 'The body must be application/json without content-encoding'],
  invalid_query: [422, 'A query parameter is not valid'],
  invalid_path: [422, 'A path parameter is not valid'],
  invalid_cursor: [422, 'The cursor does not belong to this list'],
  invalid_body: [422, 'The body is not valid'],
  generic_action_name: [422, 'An action must have a name of its domain'],
  event_name_not_allowed: [422, 'The site does not allow events of this name'],
  invalid_parameters: [422, 'The parameters are not valid'],
  reserved_parameter: [422, 'A parameter has a name that only the runtime may set'],
  idempotency_key_reused: [422, 'The idempotency key belongs to another call'],
  share_exceeded: [429, 'The limit per user is reached; nothing was done'],
  body_consumed: [500, 'The body was read before this handler: mount it before body parsers'],
  internal: [500, 'The request failed'],
  inspector_absent: [501, 'This deployment has no such inspector'],
  operation_absent: [501, 'The inspector does not offer this operation'],
  relay_refused: [502, 'The relay refused'],
  inspector_unavailable: [503, 'The data source cannot be reached'],
  unavailable: [503, 'A store of this relay cannot be reached'],
  connector_unavailable: [503, 'The application cannot be reached; nothing was run'],
  inspector_timeout: [504, 'The data source did not respond in time'],
  relay_timeout: [504, 'The relay did not respond'],
  approval_timeout: [504, 'The action was not approved in time; nothing was run'],
  action_timeout: [504, 'The application did not respond in time'],
  application_disconnected: [504, 'The application disconnected before it answered'],
} as const satisfies Record<string, readonly [status: number, title: string]>

/** Problems of a call that may have run. */
export const UNKNOWN_OUTCOME: readonly ProblemCode[] = ['action_timeout', 'application_disconnected']

/** A code that a problem body can carry, as a client goes by it. */
export const ProblemCode = z
  .enum(Object.keys(PROBLEMS) as (keyof typeof PROBLEMS)[])
  .describe('Machine-readable error code. It determines the status.')
export type ProblemCode = z.infer<typeof ProblemCode>

/** One thing in a request that is not valid. */
export const FieldError = z
  .object({
    in: z.enum(['query', 'path', 'header', 'body']).describe('The part of the request.'),
    name: z.string().describe('The name of the field.'),
    reason: z.string().describe('Why it is not valid, without its value.'),
  })
  .describe('One thing in a request that is not valid.')
export type FieldError = z.infer<typeof FieldError>

/** The body of every error (RFC 9457), at most 2 KiB. It never repeats a value, a thrown message or a stack. */
export const Problem = z
  .object({
    type: z.string().describe('`urn:relayscope:problem:` and the code, with hyphens.'),
    title: z.string().describe('Human-readable summary; always the same text for the same code.'),
    status: z.int().describe('HTTP status code.'),
    code: ProblemCode.describe('Machine-readable error code.'),
    help: z.string().describe('Where the documentation of the package explains this code.'),
    detail: z.string().optional().describe('Never set by this library.'),
    capability: z.string().optional().describe('The missing capability, with status 501.'),
    errors: z.array(FieldError).optional().describe('Invalid fields of the request, at most eight.'),
    outcome: z.enum(['unknown']).optional().describe('`unknown`: the request may or may not have taken effect.'),
  })
  .describe('The body of every error (RFC 9457), at most 2 KiB. Go by `code`.')
export type Problem = z.infer<typeof Problem>

/** The extra members of a problem. */
export interface ProblemExtra {
  capability?: string
  errors?: FieldError[]
  outcome?: 'unknown'
  headers?: Record<string, string>
}

/** Ends a request with a problem; thrown inside the pipeline, never shown to a host. */
export class ProblemError extends Error {
  readonly code: ProblemCode
  readonly extra: ProblemExtra

  constructor(code: ProblemCode, extra: ProblemExtra = {}, options?: ErrorOptions) {
    super(code, options)
    this.code = code
    this.extra = extra
  }
}

// More than a person fixes in one attempt.
const ERRORS_SHOWN = 8
/** Maximum size of a problem document, in bytes: with the longest names fewer errors fit. */
const PROBLEM_BYTES = 2_048

/** Creates the problem document for `code`. */
export function toProblem(code: ProblemCode, extra: ProblemExtra = {}): Problem {
  const [status, title] = PROBLEMS[code]
  const problem: Problem = {
    type: `urn:relayscope:problem:${code.replaceAll('_', '-')}`,
    title,
    status,
    code,
    help: `docs/problems.md#${code}`,
  }
  if (extra.capability !== undefined) problem.capability = extra.capability
  if (extra.outcome !== undefined) problem.outcome = extra.outcome
  if (extra.errors !== undefined) {
    const errors = extra.errors.slice(0, ERRORS_SHOWN)
    problem.errors = errors
    while (errors.length > 1 && utf8Length(JSON.stringify(problem)) > PROBLEM_BYTES) errors.pop()
  }
  return problem
}

/** Describes an error response in one line. It quotes the body: the caller must escape it for display. */
export function problemText(status: number, body: unknown): string {
  const { code, title, errors } = (body ?? {}) as Record<string, unknown>
  if (typeof code !== 'string') return `${status}: not a response of this router`
  const reasons = (Array.isArray(errors) ? errors : []).map((error) => `; ${error?.name} ${error?.reason}`)
  return `${status} ${code}: ${title}${reasons.join('')}`
}

// Maps refusals of the library to problems of its routers.

/** The source of a refusal: an inspector that was read, or a facility, registry or gate that was asked to act. */
type Refuser = 'inspector' | 'facility'

/** A refusal without an entry is a fault of its source: `internal`. */
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
  // The caller that cancelled has disconnected; other readers see the actual outcome.
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
  application_disconnected: { facility: 'application_disconnected' },
  idempotency_key_reused: { facility: 'idempotency_key_reused' },
  idempotency_in_progress: { facility: 'idempotency_in_progress' },
}

/**
 * Converts an error to a problem. Its message is never sent; `cause` is for the host's error hook, which is not called
 * for refusals caused by the client.
 *
 * @param own Overrides of the mapping for one route.
 */
export function toProblemError(
  error: unknown,
  refuser: Refuser,
  own: Partial<Record<RefusalCode, ProblemCode>> = {},
): ProblemError {
  if (error instanceof ProblemError) return error
  const code = (error instanceof Refusal && (own[error.code] ?? REFUSALS[error.code]?.[refuser])) || 'internal'
  const cause = PROBLEMS[code][0] < 500 ? undefined : error
  return new ProblemError(code, UNKNOWN_OUTCOME.includes(code) ? { outcome: 'unknown' } : {}, { cause })
}
