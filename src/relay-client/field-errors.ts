/** What in a request was not valid, as the problem of a relay names it. */
import { type Check, isListOf, isRecordOf, isText } from './shape.js'

/** One thing in the request that the relay could not read. */
export interface FieldError {
  /** `query`, `path`, `header` or `body`. */
  in: string
  name: string
  /** Why it is not valid, without its value. */
  reason: string
}

// A problem has the first eight, in at most 2 KiB; what is longer is not of a relay.
const ERRORS_SHOWN = 8
const PROBLEM_LENGTH = 2_048

const isShort: Check<string> = (value): value is string => isText(value) && value.length <= PROBLEM_LENGTH
const isFieldErrors = isListOf(isRecordOf<FieldError>({ in: isShort, name: isShort, reason: isShort }))

/** Those of `problem`, where it has them. */
export const fieldErrorsOf = (problem: Record<string, unknown> | undefined): readonly FieldError[] | undefined =>
  isFieldErrors(problem?.errors) ? problem.errors.slice(0, ERRORS_SHOWN) : undefined

/** A problem in one line: its code, its status where there is one, and the first of what was not valid. */
export function messageOf(code: string, status: number | null, errors: readonly FieldError[] | undefined): string {
  const said = status === null ? code : `${code} (${status})`
  return errors?.[0] ? `${said}: ${errors[0].name} ${errors[0].reason}` : said
}
