/** How a request's body becomes a checked value: JSON only, counted as it is read, never deep, never decompressed. */
import * as z from 'zod'
import { unknownName } from '../contract/checks.js'
import { JSON_DEPTH } from '../contract/limits.js'
import { BodyConsumedError } from './body-consumed.js'
import { type FieldError, ProblemError } from './problem.js'

// Estimates the cost of a JSON text before parsing it: one pass over its characters, no allocation per value.

/**
 * Maximum objects and arrays in one body. Each costs about a hundred bytes of memory and a microsecond per copy, for
 * three bytes on the wire; a message of 64 KiB stays below the limit.
 */
const CONTAINERS_MAX = 32_768

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d

/**
 * Returns the index of the closing quote of the string that starts after `from`, or the text's length if it is
 * unterminated.
 */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 1)) {
    let before = at
    while (text.charCodeAt(before - 1) === BACKSLASH) before--
    // Two backslashes are one character, and no escape of the quote. None lies before `from`: there is the other quote.
    if ((at - before) % 2 === 0) return at
  }
  return text.length
}

/** Returns the member name with escapes resolved; malformed strings are left to the parser. */
function spelled(text: string, from: number, to: number): string {
  const raw = text.slice(from, to)
  if (!raw.includes('\\')) return raw
  try {
    return JSON.parse(`"${raw}"`)
  } catch {
    return raw
  }
}

/** Member names of one object. A set is only created for the second name. */
type Names = string | Set<string> | undefined

/**
 * Returns why `text` is refused even if it is well-formed: too deep, too many objects and arrays, or a duplicate member
 * (parsers disagree on which one counts). Malformed text is left to the parser. `depth`: maximum levels. `containers`:
 * maximum number of objects and arrays.
 */
export function refuseJsonText(
  text: string,
  { depth, containers: most }: { depth: number; containers: number } = {
    depth: JSON_DEPTH,
    containers: CONTAINERS_MAX,
  },
): string | undefined {
  // By depth, 0 outside of everything; `null` in a list.
  const open: (Names | null)[] = [null]
  let containers = 0
  let from = 0
  let to = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) {
      from = i + 1
      to = endOfString(text, from)
      i = to
    } else if (code === OPEN_OBJECT || code === OPEN_LIST) {
      if (open.length > depth) return `must not nest deeper than ${depth} levels`
      if (++containers > most) return `must not hold more than ${most} objects and lists`
      open.push(code === OPEN_OBJECT ? undefined : null)
    } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) {
      if (open.length > 1) open.pop()
    } else if (code === COLON) {
      const names = open[open.length - 1]
      // A colon in a list is not well-formed.
      if (names === null) continue
      const name = spelled(text, from, to)
      if (names === undefined) open[open.length - 1] = name
      else if (typeof names === 'string') {
        if (names === name) return 'must not name a member twice'
        open[open.length - 1] = new Set([names, name])
      } else if (names.has(name)) return 'must not name a member twice'
      else names.add(name)
    }
  }
  return undefined
}

/** Bytes of a request's body. */
const BODY_BYTES = 262_144

// Parameters other than this charset change nothing of JSON, which is UTF-8 (RFC 8259, 8.1).
const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i
// The place of an error is shown only when it looks like one: it comes from outside and ends up in logs.
const PLAIN_PLACE = /^[a-z0-9_.]{1,128}$/
// The name of an unknown field may be one in camelCase.
const PLAIN_NAME = /^\w{1,64}$/

const consumed = (cause: BodyConsumedError) => new ProblemError('body_consumed', {}, { cause })

async function readBytes(request: Request, most: number): Promise<Uint8Array> {
  // A declared length is only used to refuse early; the actual bytes are counted.
  if (Number(request.headers.get('content-length')) > most) throw new ProblemError('body_too_large')
  if (request.bodyUsed || request.body?.locked) throw consumed(new BodyConsumedError())
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = request.body?.getReader()
  while (reader) {
    // An aborted upload is the client's doing and is not reported.
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw cause instanceof BodyConsumedError ? consumed(cause) : new ProblemError('invalid_json', {}, { cause })
    })
    if (done) break
    length += value.byteLength
    if (length > most) {
      await reader.cancel()
      throw new ProblemError('body_too_large')
    }
    chunks.push(value)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return bytes
}

/**
 * Reads the JSON body: at most 256 KiB or `most` bytes, 32 levels, and 32,768 objects and arrays. Refused text is not
 * parsed.
 *
 * @throws ProblemError `unsupported_media_type`, `body_too_large`, `invalid_json` (also for an aborted upload),
 * `invalid_body` (too deep, too many, a duplicate member), `body_consumed` (read before this handler).
 */
export async function readJson(request: Request, most: number = BODY_BYTES): Promise<unknown> {
  const type = request.headers.get('content-type')
  if (type === null || !JSON_TYPE.test(type) || request.headers.has('content-encoding'))
    throw new ProblemError('unsupported_media_type')
  const bytes = await readBytes(request, most)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new ProblemError('invalid_json', {}, { cause })
  }
  const reason = refuseJsonText(text)
  if (reason !== undefined) throw new ProblemError('invalid_body', { errors: [{ in: 'body', name: 'body', reason }] })
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ProblemError('invalid_json', {}, { cause })
  }
}

const placeOf = (path: readonly PropertyKey[]) => {
  const place = path.join('.') || 'body'
  return PLAIN_PLACE.test(place) ? place : '(unreadable)'
}

/** Names the unknown field of `issue` if it is a plain name, with the field that it may be mistyped for. */
function unknownField({ path, keys: [key = ''] }: z.core.$ZodIssueUnrecognizedKeys, schema: z.ZodType): FieldError {
  const place = placeOf(path)
  if (!PLAIN_NAME.test(key)) return { in: 'body', name: place, reason: 'must not have unknown fields' }
  if (path.length > 0 || !(schema instanceof z.ZodObject))
    return { in: 'body', name: `${place}.${key}`, reason: 'Unknown field' }
  return { in: 'body', name: key, reason: unknownName('field', '', key, Object.keys(schema.shape)) }
}

const toFieldError = (issue: z.core.$ZodIssue, schema: z.ZodType): FieldError =>
  issue.code === 'unrecognized_keys'
    ? unknownField(issue, schema)
    : { in: 'body', name: placeOf(issue.path), reason: issue.message }

/**
 * `value` as `schema` reads it.
 *
 * @throws ProblemError `invalid_body` with one reason per place; never a value, and of names only plain ones.
 */
export function parseBody<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw new ProblemError('invalid_body', { errors: read.error.issues.map((issue) => toFieldError(issue, schema)) })
}
