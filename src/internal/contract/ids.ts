/** The strings that name things: ids, reason names, timestamps, and the order in which ids are listed. */
import * as z from 'zod'
import { TRACEPARENT } from './checks.js'
import { ID_BYTES } from './limits.js'

// Control (C0, DEL, C1) and format characters forge log lines and hide in lookalike ids, and so do the separators of
// lines and paragraphs (U+2028, U+2029); lone surrogates have no UTF-8.
const FORBIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

const { Buffer } = globalThis as { Buffer?: { byteLength(text: string): number } }

/** Returns the length of `text` in UTF-8 bytes: native where `Buffer` exists, about ten times as fast for 16 KiB. */
export const utf8Length: (text: string) => number = Buffer ? (text) => Buffer.byteLength(text) : countUtf8

/** The same without `Buffer`, for browsers and workers. */
export function countUtf8(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    // A surrogate pair is 4 bytes in 2 units, so each half counts 2.
    bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2
  }
  return bytes
}

/** Why `value` cannot be an id, or `undefined` when it can. The reason never repeats the value. */
export function checkId(value: string): string | undefined {
  if (value.trim() === '') return 'must not be blank'
  // A URL resolves both as dot segments: a record with such an id could not be requested.
  if (value === '.' || value === '..') return 'must not be "." or ".."'
  if (FORBIDDEN.test(value)) return 'must not contain control or format characters'
  if (utf8Length(value) > ID_BYTES) return `must be at most ${ID_BYTES} bytes`
  return undefined
}

/** A check of strings by `reasonOf`. `superRefine` would make a function for each value. */
const checkedBy = (reasonOf: (value: string) => string | undefined) => (payload: z.core.ParsePayload<string>) => {
  const message = reasonOf(payload.value)
  if (message) payload.issues.push({ code: 'custom', message, input: undefined, continue: true })
}

/**
 * An id from outside: 1–256 bytes of UTF-8, no control or format character, not blank, not `.` or `..`. No Unicode normalisation: two
 * spellings are two ids.
 */
export const Id = z
  .string()
  .min(1)
  .max(ID_BYTES)
  .check(checkedBy(checkId))
  .describe(
    'An id: 1 to 256 bytes of UTF-8, not blank, not `.` or `..`, without control and format characters. Compared byte by byte.',
  )

/** Why the id `value` cannot address a command or a client within delivery: it contains a slash. */
export function checkSegment(value: string): string | undefined {
  return value.includes('/') ? 'must be one path segment' : undefined
}

/** Returns why `value` cannot be an id in a path, or `undefined` if it can. */
export const checkSegmentId = (value: string): string | undefined => checkId(value) ?? checkSegment(value)

/** An id in a path: an `Id` that is one path segment. */
export const SegmentId = Id.check(checkedBy(checkSegment))

/** An instant in ISO 8601, UTC, with milliseconds. */
export const Timestamp = z.iso.datetime({ precision: 3 })

/** Descriptions of the ids in records, filters and paths. */
export const NAMES = {
  action: 'The name of the action.',
  action_name: 'The action name, one of those that the site declares.',
  client_id: 'The client of the user: one program, across its restarts.',
  command_id: 'The command, among those for its client.',
  connection_id: 'The connection.',
  context_id: 'The execution context.',
  correlation_id: 'The call; its reply refers to it.',
  deployment_id: 'The deployment, an operational routing identity; `null` where it has none.',
  instance_id: 'The instance of the client: one start of it, such as one page load.',
  message_id: 'The message, within its stream.',
  node_id: 'The node.',
  scope_id: 'The scope whose capacity the command reserves.',
  session_id: 'The session.',
  site_id: 'The site.',
  subscription_id: 'The viewer stream, as named in its `ready` frame.',
  task_id: 'The assigned task, as named by the host that assigned it.',
  user_id: 'The user whose it is.',
  window_id: 'The browser window.',
} as const
type IdName = keyof typeof NAMES

/** The field of a record that holds this id, which the record’s source has checked. */
export const idField = (name: IdName) => z.string().describe(NAMES[name])

/** The same from outside. */
export const idInput = (name: IdName) => Id.describe(NAMES[name])

/** The filter by this id. */
export const filterBy = (name: IdName) => Id.optional().describe(`Only records with this \`${name}\`.`)

const ISO = z.iso.datetime({ offset: true })

/** Returns an instant in ISO 8601 or epoch ms as a timestamp, and any other text as it is. */
function toInstant(text: string): string {
  const at = new Date(/^\d{1,15}$/.test(text) ? Number(text) : ISO.safeParse(text).success ? text : Number.NaN)
  return Number.isNaN(at.getTime()) ? text : at.toISOString()
}

const checkInstant = (text: string) =>
  Timestamp.safeParse(text).success ? undefined : 'must be ISO 8601 with Z or an offset, or epoch ms'

const Instant = z
  .string()
  .overwrite(toInstant)
  .check(checkedBy(checkInstant))
  .meta({ examples: ['2026-01-31T09:00:00Z', '1769850000000'] })

/** Filters by a span of time, both ends included: records that existed in it, as far as is known. */
export const SPAN_FILTERS = {
  from: Instant.optional().describe('Only records not known to have ended before this instant (ISO 8601, epoch ms).'),
  to: Instant.optional().describe('Only records not known to have begun after this instant (ISO 8601, epoch ms).'),
}

/** A filter by the time of the last heartbeat or report. */
export const lastAtOrBefore = Timestamp.optional().describe('Only records last updated at or before this time.')

const YEAR_MS = 31_536_000_000

/** The query parameter that a router turns into that filter. */
export const SilentForMs = z
  .int()
  .min(1)
  .max(YEAR_MS)
  .optional()
  .describe('Only records without an update for at least this long, in milliseconds; at most a year.')

let lastTimestamp = { epochMs: 0, text: new Date(0).toISOString() }

/** `epochMs` as written on the wire. Many things happen in one millisecond, so the last text is kept. */
export function toTimestamp(epochMs: number): string {
  if (lastTimestamp.epochMs !== epochMs) lastTimestamp = { epochMs, text: new Date(epochMs).toISOString() }
  return lastTimestamp.text
}

/**
 * A random UUID as a flat string. Node returns a rope of twenty strings, which takes half a kilobyte as a map key and
 * slows down every comparison; reading a character flattens it.
 */
export function randomUuid(): string {
  const id = crypto.randomUUID()
  return id.charCodeAt(0) > 0 ? id : randomUuid()
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Random bytes of the next ids: drawing them for one id at a time costs as much as the rest of a call in memory. */
let drawn = new Uint8Array(0)
let used = 0

/** Returns an id of 128 random bits in hexadecimal, as a flat string; a UUID has 122. */
export function randomId(): string {
  if (used === drawn.length) {
    drawn = crypto.getRandomValues(new Uint8Array(2_048))
    used = 0
  }
  let id = ''
  for (const end = used + 16; used < end; used++) id += HEX[drawn[used] as number]
  // Reading a character makes V8 flatten the string, which would else keep each of its parts. None is empty.
  return id.charCodeAt(0) > 0 ? id : randomId()
}

/** A key of one client. Ids contain no line break, so the key is unambiguous, as is that of a command. */
export const clientKey = (client: { user_id: string; client_id: string }) => `${client.user_id}\n${client.client_id}`

export const commandKey = (command: { user_id: string; client_id: string; command_id: string }) =>
  `${clientKey(command)}\n${command.command_id}`

const REASON = /^[a-z][a-z0-9_]{0,63}$/

/** A low-cardinality name (a reason, an outcome, a counter); anything that is not one becomes `other`. */
export function toReason(value: string | null | undefined): string | null {
  return value === null || value === undefined ? null : REASON.test(value) ? value : 'other'
}

/** A reason as an inspector hands it over: text that is not a low-cardinality name leaves as `other`, never as itself. */
export const Reason = z
  .string()
  .overwrite((value) => (REASON.test(value) ? value : 'other'))
  .regex(REASON)

/** A reason as a filter: text of another form matches nothing, so it is refused. */
export const byReason = z.string().regex(REASON, 'must be a reason: lower-case letters, digits and _')

/**
 * Compares ids by their UTF-8 bytes, which is code point order: negative, zero or positive. JavaScript's `<` compares
 * UTF-16 units and puts U+1F600 before U+FFFD.
 */
export function compareIds(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x === y) continue
    const highX = x >= 0xd800 && x <= 0xdfff
    const highY = y >= 0xd800 && y <= 0xdfff
    return highX === highY ? x - y : highX ? 1 : -1
  }
  return a.length - b.length
}

const PLAIN = /^[A-Za-z0-9_-]*$/

/**
 * `part` as one part of a key or of an object's name. Injective, and only `A-Z a-z 0-9 _ - %` come out, so no id can end a
 * part or a hash tag.
 */
export function encodePart(part: string): string {
  if (PLAIN.test(part)) return part
  return encodeURIComponent(part).replace(
    /[*!'()~.]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )
}

// Trace context of a record: a link to the trace of the host in which it came to be.

/** A W3C `traceparent` of version 00. */
export const Traceparent = z.string().regex(TRACEPARENT, 'must be a W3C traceparent of version 00')

const TraceId = z.string().regex(/^(?!0{32})[0-9a-f]{32}$/, 'must be 32 hexadecimal digits in lower case, not all 0')

/** The fields of a record that was given a trace. */
export const TRACE_FIELDS = {
  trace: Traceparent.optional().describe('The W3C `traceparent` that was given for it; absent without one.'),
  trace_id: TraceId.optional().describe('The trace id of `trace`; absent without one.'),
}

/** The filter by a trace. */
export const byTraceId = TraceId.optional().describe('Only records of this trace.')

/** Returns the fields of a record with this trace. */
export const traceFields = (trace: string | undefined): { trace?: string; trace_id?: string } =>
  trace === undefined ? {} : { trace, trace_id: trace.slice(3, 35) }

/** Bytes that a history counts for the trace of a message. */
export const TRACE_BYTES = 128
