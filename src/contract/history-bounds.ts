/** What a message history keeps at most, wherever it keeps it. */
import { SPILL_STORE, type SpillStore } from './history.js'
import { RECORD_BYTES } from './limits.js'
import { boundsIn, defineBounds, FUNCTION, type Shape, TIMER_MAX_MS } from './options.js'

/** What both histories take: how much is kept, and where what is large goes. In a shared store each bound is that of one shard, and a shard holds all of a user. */
export interface HistoryOptions {
  /** Names the payloads in the spill store. @default crypto.randomUUID */
  newId?: () => string
  /** Where payloads over `inlineBytes` go; without one they are refused with `payload_too_large`. */
  spill?: SpillStore | undefined
  /** Bytes of JSON that a message carries itself, at most 65536. @default 65536 */
  inlineBytes?: number
  /** Bytes of JSON of any payload. @default 16777216 */
  maxPayloadBytes?: number
  /** Messages kept of one stream. @default 1000 */
  maxPerStream?: number
  /** Messages kept of all streams together; beyond, the oldest of whoever has most leaves. @default 100000 */
  maxMessages?: number
  /** Messages kept of one user. @default maxMessages */
  maxPerUser?: number
  /** Bytes kept of all messages, 512 for each beside its text; beyond, the oldest of whoever holds most leaves. @default 268435456 */
  maxBytes?: number
  /** Bytes kept of one user. @default a quarter of maxBytes */
  maxBytesPerUser?: number
  /** Bytes of all payloads in the spill store; beyond, the oldest of whoever holds most leaves with its message. @default 1073741824 */
  maxSpilledBytes?: number
  /** Bytes of one user's payloads in the spill store. @default a quarter of maxSpilledBytes */
  maxSpilledBytesPerUser?: number
  /** How long the spill store may take to put a payload; then nothing is retained. @default 2000 */
  spillMs?: number
  /** How long one answer waits for externalised payloads; what did not come says `error`. @default 2000 */
  hydrationMs?: number
}

/** What a message costs beside its text: its entry, its place in each index. */
export const MESSAGE_BYTES = 512

const quarter = (bytes: number) => Math.max(1, Math.floor(bytes / 4))

/** What holds unless a host says otherwise. A message of more than 64 KiB is larger than a record may be. */
export const HISTORY_BOUNDS = defineBounds({
  inlineBytes: [RECORD_BYTES, RECORD_BYTES],
  maxPayloadBytes: 16_777_216,
  maxPerStream: 1_000,
  maxMessages: 100_000,
  maxPerUser: ({ maxMessages }) => maxMessages,
  maxBytes: 268_435_456,
  maxBytesPerUser: ({ maxBytes }) => quarter(maxBytes),
  maxSpilledBytes: 1_073_741_824,
  maxSpilledBytesPerUser: ({ maxSpilledBytes }) => quarter(maxSpilledBytes),
  spillMs: [2_000, TIMER_MAX_MS],
  hydrationMs: [2_000, TIMER_MAX_MS],
})

export const HISTORY_OPTIONS: Shape<HistoryOptions> = {
  ...boundsIn(HISTORY_BOUNDS),
  newId: FUNCTION,
  spill: SPILL_STORE,
}
