/** The history family: streams of retained messages, and the spill store that large payloads go to. */
import * as z from 'zod'
import { answerOf } from './answer.js'
import { type Family, foldUsers } from './family.js'
import { filterBy, Id, idField, randomUuid, Timestamp, TRACE_FIELDS, Traceparent } from './ids.js'
import { JsonValue } from './json.js'
import { RECORD_BYTES } from './limits.js'
import type { FoldedPart, UserIndex } from './observation.js'
import { count, defineOptions, derived, func, type Input, inputObject, timer, withMethods } from './options.js'
import type { Awaitable, InspectionContext, Page, PageQuery, Sample } from './page.js'

/** Kind of a message. */
export const MessageKind = z.enum(['event', 'command', 'result', 'ack', 'control']).describe('A kind of message.')
export type MessageKind = z.infer<typeof MessageKind>

/** The result of reading an externalised payload. */
export const Hydration = z.enum(['hydrated', 'not_configured', 'missing', 'too_large', 'error'])
export type Hydration = z.infer<typeof Hydration>

const CanonicalStream = z
  .string()
  .describe('The canonical name of the stream: `users/{user_id}/…`, every id one percent-encoded segment.')

/** A stream and its retained messages. */
export const HistoryStream = z
  .object({
    stream: CanonicalStream,
    user_id: idField('user_id'),
    message_count: z.int().min(0).describe('Messages that it retains.'),
    first_recorded_at: Timestamp.describe('When the oldest retained message was recorded.'),
    last_recorded_at: Timestamp.describe('When the newest retained message was recorded.'),
  })
  .describe('A stream and its retained messages.')
export type HistoryStream = z.infer<typeof HistoryStream>

/** `HistoryStream` as routes answer it. */
export const HistoryStreamAnswer = answerOf(HistoryStream, ['stream', 'user_id'])
export type HistoryStreamAnswer = z.output<typeof HistoryStreamAnswer>
/** `HistoryStream` as an inspector returns it: a field that is absent is not known. */
export type HistoryStreamInput = z.input<typeof HistoryStreamAnswer>

const isJsonless = (value: unknown) => value === undefined || typeof value === 'function' || typeof value === 'symbol'

const Externalized = z.object({
  ref: z.string().describe("The payload's reference in the spill store."),
  bytes: z.int().min(0).describe('Size of the payload as JSON, in bytes.'),
  hydration: Hydration.describe('The result of reading it for this response.'),
})

/** One retained message. */
export const HistoryMessage = z
  .object({
    message_id: idField('message_id'),
    stream: CanonicalStream,
    sequence: z.int().min(1).describe('Position in its stream, from 1, without repeats.'),
    kind: MessageKind.describe('What kind of message it is.'),
    user_id: idField('user_id'),
    client_id: idField('client_id'),
    instance_id: idField('instance_id'),
    recorded_at: Timestamp.describe('When it was retained.'),
    // What JSON cannot carry is null here: a field that is sometimes missing would be another shape.
    payload: JsonValue.overwrite((value) => (isJsonless(value) ? null : value)).describe(
      'Any JSON value as sent; `null` if externalised and not hydrated.',
    ),
    externalized: Externalized.nullable().describe('Where a large payload is stored; `null` for an inline payload.'),
    ...TRACE_FIELDS,
  })
  .describe('One retained message.')
export type HistoryMessage = z.infer<typeof HistoryMessage>

/** `HistoryMessage` as routes answer it. */
export const HistoryMessageAnswer = answerOf(HistoryMessage, ['message_id', 'stream'], {
  externalized: answerOf(Externalized, []),
})
export type HistoryMessageAnswer = z.output<typeof HistoryMessageAnswer>
/** `HistoryMessage` as an inspector returns it: a field that is absent is not known. */
export type HistoryMessageInput = z.input<typeof HistoryMessageAnswer>

/** Filters of `/history/streams`. */
export const HistoryStreamFilter = z.object({ user_id: filterBy('user_id') })
export type HistoryStreamFilter = z.infer<typeof HistoryStreamFilter>

/** Reads a message history. */
export interface HistoryInspector extends UserIndex {
  /** The newest `limit` messages of the stream, oldest first; an unknown stream is empty. */
  readMessages(query: { stream: string; limit: number }, ctx: InspectionContext): Awaitable<Sample<HistoryMessageInput>>
  /** Mirrored by the capability `history_list_streams`. */
  listStreams?(
    filter: HistoryStreamFilter,
    page: PageQuery,
    ctx: InspectionContext,
  ): Awaitable<Page<HistoryStreamInput>>
}

/** Most characters of a canonical stream name: a few encoded ids of 256 bytes. */
const STREAM_LENGTH = 2_048

/**
 * A stream name from a request: made of encoded ids, so it may be longer than one, with the characters of ids. Streams
 * with other names could not be requested.
 */
export const StreamName = z
  .string()
  .min(1)
  .max(STREAM_LENGTH)
  .regex(/^(?!\s*$)[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u)

/** A message as it is handed to the history. `stream` is canonical. */
export const AppendInput = inputObject({
  /** Id of the message; unique within its stream. */
  message_id: Id,
  /** Name of the stream. */
  stream: StreamName,
  /** Kind of the message. */
  kind: MessageKind,
  /** Id of the user. */
  user_id: Id,
  /** Id of the client that sent it. */
  client_id: Id,
  /** Id of the instance that sent it. */
  instance_id: Id,
  /** Payload of the message: JSON. @default none */
  payload: JsonValue.optional(),
  /** W3C `traceparent` of the host's trace, shown with the message. @default none */
  trace: Traceparent.optional(),
})
export type AppendInput = z.input<typeof AppendInput>

/** The live history that a host writes to, bounded per stream and in total; the oldest messages leave first. */
export interface MessageHistory {
  /**
   * Retains the message and assigns `sequence` and `recorded_at`. Idempotent by (stream, message_id): a repeat returns
   * the retained message, unless its own payload exceeds a bound. A payload over the inline bound goes to the spill
   * store.
   *
   * @throws Refusal `invalid_input`, `payload_too_large`, `capacity_exceeded` (more than one user may hold),
   * `unavailable` (with `outcome: 'not_run'` nothing was retained).
   */
  append(input: AppendInput): Promise<HistoryMessage>
  /** Like `append`, and tells a repeat from a new message. Without it the ingest relies on its own claims. */
  retain?(input: AppendInput): Promise<Retained>
}

/** A message that the history holds. */
export interface Retained {
  /** The retained message. */
  message: HistoryMessage
  /** Whether it was retained just now. */
  isNew: boolean
}

/** Where payloads live that are too large for their message. References are the caller's; a store keeps text. */
export interface SpillStore {
  /** The signal aborts when the write is abandoned; a payload written anyway is deleted. */
  put(ref: string, text: string, options?: { signal: AbortSignal }): Awaitable<void>
  /**
   * Returns the text, or nothing if it does not exist (like a `Map`). A store may stop reading at `maxBytes` and
   * reject.
   */
  get(ref: string, options: { signal: AbortSignal; maxBytes: number }): Awaitable<string | null | undefined>
  /** Deletes the text, if it exists. */
  delete(ref: string): Awaitable<void>
}

/** The check of an option that takes a spill store. */
export const SPILL_STORE = withMethods<SpillStore>('put', 'get', 'delete')

/** Adds a stream to its user's observation. */
export function foldStream(part: FoldedPart): void {
  part.observed_streams = (part.observed_streams ?? 0) + 1
}

/** Histories, for the table of families. */
export const HISTORY_FAMILY = {
  facility: 'history',
  capability: 'history',
  methods: { readMessages: true },
  operations: { history_list_streams: 'listStreams' },
  components: {
    HistoryMessage: HistoryMessageAnswer,
    HistoryStream: HistoryStreamAnswer,
    MessageKind,
  } as Family['components'],
  users: foldUsers('listStreams', HistoryStreamAnswer, 'stream', foldStream),
} as const satisfies Family<HistoryInspector>

// Limits of message histories.

/** The overhead of a message besides its text: its entry and index entries. */
export const MESSAGE_BYTES = 512

const quarter = (bytes: number) => Math.max(1, Math.floor(bytes / 4))

/**
 * Options of both message histories. In a shared store each limit applies per shard, and all data of a user is in one
 * shard.
 */
export const HistoryOptions = defineOptions({
  /** Names the payloads in the spill store. @default crypto.randomUUID */
  newId: func<() => string>().default(() => randomUuid),
  /** Where payloads over `inlineBytes` go; without one they are refused with `payload_too_large`. */
  spill: SPILL_STORE.optional(),
  /** Bytes of JSON that a message carries itself, at most 65536. @default 65536 */
  inlineBytes: count(RECORD_BYTES, RECORD_BYTES),
  /** Bytes of JSON of any payload. @default 16777216 */
  maxPayloadBytes: count(16_777_216),
  /** Messages kept of one stream. @default 1000 */
  maxPerStream: count(1_000),
  /**
   * Maximum messages retained in all streams; beyond it the oldest of the user with the most is evicted. @default
   * 100000
   */
  maxMessages: count(100_000),
  /** Messages kept of one user. @default maxMessages */
  maxPerUser: derived<'maxMessages'>(({ maxMessages }) => maxMessages),
  /**
   * Maximum bytes of all messages, plus 512 for each; beyond it the oldest of the largest user is evicted. @default
   * 268435456
   */
  maxBytes: count(268_435_456),
  /** Bytes kept of one user. @default a quarter of maxBytes */
  maxBytesPerUser: derived<'maxBytes'>(({ maxBytes }) => quarter(maxBytes)),
  /**
   * Maximum bytes of all payloads in the spill store; beyond it the oldest of the largest user is evicted with its
   * message. @default 1073741824
   */
  maxSpilledBytes: count(1_073_741_824),
  /** Bytes of one user's payloads in the spill store. @default a quarter of maxSpilledBytes */
  maxSpilledBytesPerUser: derived<'maxSpilledBytes'>(({ maxSpilledBytes }) => quarter(maxSpilledBytes)),
  /**
   * Time limit for storing a payload in the spill store, in milliseconds; after it nothing is retained. @default 2000
   */
  spillMs: timer(2_000),
  /**
   * Time limit for hydrating the payloads of one response, in milliseconds; late ones are marked `error`. @default 2000
   */
  hydrationMs: timer(2_000),
})
export interface HistoryOptions extends Input<typeof HistoryOptions> {}
