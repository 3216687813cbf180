/** Reads responses of a relay: bounded in size, redirects never followed, errors mapped to their problem code. */

// Small type checks for clients that do not bundle a schema library.

export type Check<T> = (value: unknown) => value is T

export const isText: Check<string> = (value) => typeof value === 'string'
export const isFlag: Check<boolean> = (value) => typeof value === 'boolean'
export const isNumber: Check<number> = (value) => typeof value === 'number'
export const isObject: Check<Record<string, unknown>> = (value): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

export const isOneOf =
  <const T>(...values: T[]): Check<T> =>
  (value): value is T =>
    values.some((each) => each === value)

/** A value of an enumeration that a newer relay may have extended: rejecting it would lose the whole response. */
export const isName = <T extends string>(value: unknown): value is T => isText(value)

export const isListOf =
  <T>(is: Check<T>): Check<T[]> =>
  (value): value is T[] =>
    Array.isArray(value) && value.every((each) => is(each))

export const nullable =
  <T>(is: Check<T>): Check<T | null> =>
  (value): value is T | null =>
    value === null || is(value)

/** A record with all of `fields` (the compiler checks that they are those of `T`); extra fields are allowed. */
export const isRecordOf =
  <T>(fields: { [Name in keyof Required<T>]: Check<T[Name]> }): Check<T> =>
  (value): value is T =>
    isObject(value) && Object.entries<Check<unknown>>(fields).every(([name, is]) => is(value[name]))

/** The error code for a response that no relay sends. */
export const UNEXPECTED = 'unexpected_answer'

/** Whether it leads elsewhere. Where a browser hides that, the status is 0. */
export const isRedirect = ({ status }: { status: number }): boolean => status === 0 || (status >= 300 && status < 400)

/** Maximum bytes of one answer that a program of this package reads from a router, after decompression: 16 MiB. */
export const ANSWER_BYTES = 16_777_216

/**
 * Returns the JSON object in `response`, or `undefined` for anything else or more than `maxBytes`.
 *
 * Rejects if the connection is lost while reading.
 *
 * @param onBytes Called with the number of bytes of each chunk.
 */
export async function readObject(
  response: Response,
  maxBytes: number,
  onBytes: (bytes: number) => void = () => {},
): Promise<Record<string, unknown> | undefined> {
  const text = new TextDecoder()
  const reader = response.body?.getReader()
  let json = ''
  for (let bytes = 0; reader; ) {
    const { done, value } = await reader.read()
    if (done) break
    bytes += value.byteLength
    onBytes(value.byteLength)
    if (bytes > maxBytes) return void (await reader.cancel())
    json += text.decode(value, { stream: true })
  }
  return parseObject(json)
}

/** The JSON object that `json` is, or `undefined`. */
export function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The code of a problem. */
export const codeOf = (problem: Record<string, unknown> | undefined, fallback: string = UNEXPECTED): string =>
  isText(problem?.code) ? problem.code : fallback

/** `value` as one URL segment. `.` and `..` survive every escaping and would leave the route. */
export function toSegment(name: string, value: string): string {
  if (value === '' || value === '.' || value === '..')
    throw new TypeError(`Invalid ${name}: expected a path segment that is not empty, "." or ".."`)
  return encodeURIComponent(value)
}

/** Where a relay's routes begin, without the slash that a path brings along. */
export const toBase = (url: string): string => url.replace(/\/+$/, '')

// Validation of the base URL option.

/** Whether paths can be appended to it to form an HTTP URL. Relative values are resolved against `page`. */
function isBaseUrl(value: unknown, page?: string): boolean {
  if (typeof value !== 'string' || /[?#]/.test(value)) return false
  try {
    const { protocol, username, password } = new URL(value, page)
    return /^https?:$/.test(protocol) && username === '' && password === ''
  } catch {
    return false
  }
}

/** A rule for an option, as `contract/checks.ts` tests them. */
const baseUrl = (expected: string, page?: string) => ({
  expected: `${expected} without credentials, query and fragment`,
  test: (value: unknown) => isBaseUrl(value, page),
  isPrivate: true as const,
})

// Marked as pure, so that a bundle of `watch` alone leaves them out.

/** Where routes begin. */
export const BASE_URL = /* @__PURE__ */ baseUrl('an http(s) URL')
/** The same for a browser page, where a relative path is allowed. */
export const BASE_URL_OR_PATH = /* @__PURE__ */ baseUrl('a path or an http(s) URL', 'http://page')

// An invalid field of a request, as the relay's problem document names it.

/** One thing in the request that the relay could not read. */
export interface FieldError {
  /** `query`, `path`, `header` or `body`. */
  in: string
  /** Name of the parameter or header, or path of the field in the body. */
  name: string
  /** Why it is not valid, without its value. */
  reason: string
}

// A problem document has at most eight errors in 2 KiB; anything longer is not from a relay.
const ERRORS_SHOWN = 8
const PROBLEM_LENGTH = 2_048

const isShort: Check<string> = (value): value is string => isText(value) && value.length <= PROBLEM_LENGTH
const isFieldErrors = /* @__PURE__ */ isListOf(
  /* @__PURE__ */ isRecordOf<FieldError>({ in: isShort, name: isShort, reason: isShort }),
)

/** Those of `problem`, where it has them. */
export const fieldErrorsOf = (problem: Record<string, unknown> | undefined): readonly FieldError[] | undefined =>
  isFieldErrors(problem?.errors) ? problem.errors.slice(0, ERRORS_SHOWN) : undefined

/** A problem in one line: code, status if known, and the first invalid field. */
export function messageOf(code: string, status: number | null, errors: readonly FieldError[] | undefined): string {
  const summary = status === null ? code : `${code} (${status})`
  return errors?.[0] ? `${summary}: ${errors[0].name} ${errors[0].reason}` : summary
}

/** Headers accepted by relay clients. Spelled out because only the DOM library names the input type of `fetch`. */
export type HeaderFields = Headers | Record<string, string> | [name: string, value: string][]

/** Headers for every request, or a function called before each request, e.g. to renew a token. */
export type ClientHeaders = HeaderFields | (() => HeaderFields | Promise<HeaderFields>)
