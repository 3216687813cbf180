/** How a request's body becomes a checked value: JSON only, counted as it is read, never deep, never decompressed. */
import type * as z from 'zod'
import { refuseJsonText } from './json-scan.js'
import { type FieldError, ProblemError } from './problem.js'

/** Bytes of a request's body. */
const BODY_BYTES = 262_144

// Parameters other than this charset change nothing of JSON, which is UTF-8 (RFC 8259, 8.1).
const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i
// The place of an error is shown only when it looks like one: it comes from outside and ends up in logs.
const PLAIN_PLACE = /^[a-z0-9_.]{1,128}$/

async function readBytes(request: Request): Promise<Uint8Array> {
  // What a length claims is believed only when it claims too much: the count is of what is read.
  if (Number(request.headers.get('content-length')) > BODY_BYTES) throw new ProblemError('body_too_large')
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = request.body?.getReader()
  while (reader) {
    // A body that is cut short is its sender's doing, and no fault of ours that anybody should be told of.
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw new ProblemError('invalid_json', {}, { cause })
    })
    if (done) break
    length += value.byteLength
    if (length > BODY_BYTES) {
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
 * The JSON value that `request` carries, at most 256 KiB, 32 levels and 32,768 objects and lists. Nothing is built of a
 * text that is refused for what it holds.
 *
 * @throws ProblemError `unsupported_media_type`, `body_too_large`, `invalid_json`, `invalid_body` (too deep, too many, a
 * member twice); `invalid_json` too where the client goes away in the middle of it.
 */
export async function readJson(request: Request): Promise<unknown> {
  const type = request.headers.get('content-type')
  if (type === null || !JSON_TYPE.test(type) || request.headers.has('content-encoding'))
    throw new ProblemError('unsupported_media_type')
  const bytes = await readBytes(request)
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

function toFieldError(issue: z.core.$ZodIssue): FieldError {
  const place = issue.path.join('.') || 'body'
  const reason = issue.code === 'unrecognized_keys' ? 'must not have unknown fields' : issue.message
  return { in: 'body', name: PLAIN_PLACE.test(place) ? place : '(unreadable)', reason }
}

/**
 * `value` as `schema` reads it.
 *
 * @throws ProblemError `invalid_body` with one reason per place; never a value or a name from outside.
 */
export function parseBody<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw new ProblemError('invalid_body', { errors: read.error.issues.map(toFieldError) })
}
