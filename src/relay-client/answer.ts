/** How an answer of a relay is read at the other end: bounded, never followed elsewhere, its problem by its code. */
import { isObject, isText } from './shape.js'

/** The code of whatever is not what a relay sends. */
export const UNEXPECTED = 'unexpected_answer'

/** Whether it leads elsewhere. Where a browser hides that, the status is 0. */
export const isRedirect = ({ status }: { status: number }): boolean => status === 0 || (status >= 300 && status < 400)

/**
 * The JSON object that `response` carries, or `undefined` when it carries anything else or more than `maxBytes`.
 *
 * Rejects where the connection is lost in the middle of it.
 */
export async function readObject(response: Response, maxBytes: number): Promise<Record<string, unknown> | undefined> {
  const text = new TextDecoder()
  const reader = response.body?.getReader()
  let json = ''
  for (let bytes = 0; reader; ) {
    const { done, value } = await reader.read()
    if (done) break
    bytes += value.byteLength
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
    throw new TypeError(`${name} must be one segment of a path: not empty, "." or ".."`)
  return encodeURIComponent(value)
}

/** Where a relay's routes begin, without the slash that a path brings along. */
export const toBase = (url: string): string => url.replace(/\/+$/, '')
