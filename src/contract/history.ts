/** The history family: streams of retained messages, and the spill store that large payloads go to. */
import * as z from 'zod'
import { type Family, foldUsers } from './family.js'
import { filterBy, Id, idField, randomUuid, Timestamp } from './ids.js'
import { JsonValue } from './json.js'
import { RECORD_BYTES } from './limits.js'
import type { FoldedPart, UserIndex } from './observation.js'
import { count, defineOptions, derived, func, having, type Input, timer } from './options.js'
import type { Awaitable, InspectionContext, Page, PageQuery, Sample } from './page.js'

export const MessageKind = z.enum(['event', 'command', 'result', 'ack', 'control']).describe('A kind of message.')
export type MessageKind = z.infer<typeof MessageKind>

/** What became of the payload that lives outside its message. */
export const Hydration = z.enum(['hydrated', 'not_configured', 'missing', 'too_large', 'error'])
export type Hydration = z.infer<typeof Hydration>

const CanonicalStream = z
  .string()
  .describe('The canonical name of the stream: `users/{user_id}/…`, every id one percent-encoded segment.')

/** A stream and what it retains. */
export const HistoryStream = z
  .object({
    stream: CanonicalStream,
    user_id: idField('user_id'),
    message_count: z.int().min(0).describe('Messages that it retains.'),
    first_recorded_at: Timestamp.describe('When the oldest retained message was recorded.'),
    last_recorded_at: Timestamp.describe('When the newest retained message was recorded.'),
  })
  .describe('A stream and what it retains.')
export type HistoryStream = z.infer<typeof HistoryStream>

const isJsonless = (value: unknown) => value === undefined || typeof value === 'function' || typeof value === 'symbol'

const Externalized = z.object({
  ref: z.string().describe('What the spill store knows the payload by.'),
  bytes: z.int().min(0).describe('Size of the payload as JSON, in bytes.'),
  hydration: Hydration.describe('What became of reading it back for this answer.'),
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
      'Any JSON value, as it was sent; `null` where it is externalised and was not hydrated.',
    ),
    externalized: Externalized.nullable().describe('Where a large payload is kept; `null` for one that is inline.'),
  })
  .describe('One retained message.')
export type HistoryMessage = z.infer<typeof HistoryMessage>

/** Filters of `/history/streams`. */
export const HistoryStreamFilter = z.object({ user_id: filterBy('user_id') })
export type HistoryStreamFilter = z.infer<typeof HistoryStreamFilter>

/** Reads a message history. */
export interface HistoryInspector extends UserIndex {
  /** The newest `limit` messages of the stream, oldest first; an unknown stream is empty. */
  readMessages(query: { stream: string; limit: number }, ctx: InspectionContext): Awaitable<Sample<HistoryMessage>>
  /** Mirrored by the capability `history_list_streams`. */
  listStreams?(filter: HistoryStreamFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<HistoryStream>>
}

/** Most characters of a canonical stream name: a few encoded ids of 256 bytes. */
const STREAM_LENGTH = 2_048

/**
 * A stream as somebody names it: made of encoded ids, so longer than one of them, with the characters that ids may hold.
 * What is retained under another name, nobody could ask for.
 */
export const StreamName = z
  .string()
  .min(1)
  .max(STREAM_LENGTH)
  .regex(/^(?!\s*$)[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u)

/** A message as it is handed to the history. `stream` is canonical. */
export const AppendInput = z.object({
  message_id: Id,
  stream: StreamName,
  kind: MessageKind,
  user_id: Id,
  client_id: Id,
  instance_id: Id,
  payload: JsonValue.optional(),
})
export type AppendInput = z.input<typeof AppendInput>

/** The live history that a host writes to, bounded per stream and in total; the oldest messages leave first. */
export interface MessageHistory {
  /**
   * Retains the message and assigns `sequence` and `recorded_at`. Idempotent by (stream, message_id): a repeat answers
   * the retained message, unless its own payload is over a bound. A payload over the inline bound goes to the spill store.
   *
   * @throws Refusal `invalid_input`, `payload_too_large`, `capacity_exceeded` (more than one user may hold at all),
   * `unavailable` (where its `outcome` is `not_run`, nothing was retained).
   */
  append(input: AppendInput): Promise<HistoryMessage>
  /** `append` that tells a repeat from the first. Without it whoever takes messages in goes by its own claims. */
  retain?(input: AppendInput): Promise<Retained>
}

/** A message that the history holds. */
export interface Retained {
  message: HistoryMessage
  /** Whether it was retained just now. */
  isNew: boolean
}

/** Where payloads live that are too large for their message. References are the caller's; a store keeps text. */
export interface SpillStore {
  /** The signal aborts when nobody waits for it any more; what is put all the same is deleted. */
  put(ref: string, text: string, options?: { signal: AbortSignal }): Awaitable<void>
  /** The text, or nothing when it is not there (as a `Map` answers). A store that can may stop reading at `maxBytes` and reject. */
  get(ref: string, options: { signal: AbortSignal; maxBytes: number }): Awaitable<string | null | undefined>
  delete(ref: string): Awaitable<void>
}

/** What an option must be that takes one. */
export const SPILL_STORE = having<SpillStore>('put', 'get', 'delete')

/** What a stream says of its user. */
export function foldStream(part: FoldedPart): void {
  part.observed_streams = (part.observed_streams ?? 0) + 1
}

/** Histories, for the table of families. */
export const HISTORY_FAMILY = {
  facility: 'history',
  capability: 'history',
  methods: { readMessages: true },
  operations: { history_list_streams: 'listStreams' },
  components: { HistoryMessage, HistoryStream, MessageKind },
  users: foldUsers('listStreams', HistoryStream, 'stream', foldStream),
} as const satisfies Family<HistoryInspector>

// What a message history keeps at most, wherever it keeps it.

/** What a message costs beside its text: its entry, its place in each index. */
export const MESSAGE_BYTES = 512

const quarter = (bytes: number) => Math.max(1, Math.floor(bytes / 4))

/** What both histories take: how much is kept, and where what is large goes. In a shared store each bound is that of one shard, and a shard holds all of a user. */
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
  /** Messages kept of all streams together; beyond, the oldest of whoever has most leaves. @default 100000 */
  maxMessages: count(100_000),
  /** Messages kept of one user. @default maxMessages */
  maxPerUser: derived<'maxMessages'>(({ maxMessages }) => maxMessages),
  /** Bytes kept of all messages, 512 for each beside its text; beyond, the oldest of whoever holds most leaves. @default 268435456 */
  maxBytes: count(268_435_456),
  /** Bytes kept of one user. @default a quarter of maxBytes */
  maxBytesPerUser: derived<'maxBytes'>(({ maxBytes }) => quarter(maxBytes)),
  /** Bytes of all payloads in the spill store; beyond, the oldest of whoever holds most leaves with its message. @default 1073741824 */
  maxSpilledBytes: count(1_073_741_824),
  /** Bytes of one user's payloads in the spill store. @default a quarter of maxSpilledBytes */
  maxSpilledBytesPerUser: derived<'maxSpilledBytes'>(({ maxSpilledBytes }) => quarter(maxSpilledBytes)),
  /** How long the spill store may take to put a payload; then nothing is retained. @default 2000 */
  spillMs: timer(2_000),
  /** How long one answer waits for externalised payloads; what did not come says `error`. @default 2000 */
  hydrationMs: timer(2_000),
})
export interface HistoryOptions extends Input<typeof HistoryOptions> {}
