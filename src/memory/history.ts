/** The live message history of one process, and the inspector that looks through at it. */
import {
  AppendInput,
  type HistoryInspector,
  type HistoryMessage,
  type HistoryStream,
  type MessageHistory,
  type SpillStore,
} from '../contract/history.js'
import { hydrate } from '../contract/hydration.js'
import { toTimestamp } from '../contract/ids.js'
import { parseInput } from '../contract/input.js'
import type { Inspected } from '../contract/inspectors.js'
import { deepFreeze, toJson } from '../contract/json.js'
import { Refusal } from '../refusal.js'
import { ExpiryQueue, type Queued, unqueued } from './expiry-queue.js'
import { byNumber, OrderedIndex } from './ordered-index.js'
import { createTable, type Entry } from './table.js'

export interface MessageHistoryOptions {
  /** Epoch ms. @default Date.now */
  now?: () => number
  /** Names the payloads in the spill store. @default crypto.randomUUID */
  newId?: () => string
  /** Where payloads over `inlineBytes` go; without one they are refused with `payload_too_large`. */
  spill?: SpillStore
  /** Bytes of JSON that a message carries itself. @default 65536 */
  inlineBytes?: number
  /** Bytes of JSON of any payload. @default 16777216 */
  maxPayloadBytes?: number
  /** Messages kept of one stream. @default 1000 */
  maxPerStream?: number
  /** Messages kept of all streams together. @default 100000 */
  maxMessages?: number
  /** How long one answer waits for externalised payloads; what did not come says `error`. @default 2000 */
  hydrationMs?: number
}

interface Kept extends Queued {
  readonly message: HistoryMessage
  readonly stream: Stream
}

/** What is kept of a stream that has messages. Its sequence numbers have no holes: the oldest always leave first. */
interface StreamState {
  readonly messages: OrderedIndex<number, Kept>
  lastSequence: number
  shown: HistoryStream | undefined
}

type StreamName = Pick<HistoryStream, 'stream' | 'user_id'>
type Stream = Entry<StreamName, StreamState>

/** The memory of a stream whose messages have all left: its sequence goes on. */
interface Emptied extends Queued {
  readonly stream: string
  readonly lastSequence: number
}

/**
 * A message history in memory. A stream belongs to the user of its first message. The message that `append` answers is
 * the one retained: an externalised payload is `null` in it and is only brought back on reading.
 *
 * @example
 * const history = createMessageHistory({ spill: createMemorySpillStore() })
 */
export function createMessageHistory(options: MessageHistoryOptions = {}): Inspected<MessageHistory, HistoryInspector> {
  const { now = Date.now, newId = () => crypto.randomUUID(), spill, hydrationMs = 2_000 } = options
  const { inlineBytes = 65_536, maxPayloadBytes = 16_777_216 } = options
  const { maxPerStream = 1_000, maxMessages = 100_000 } = options
  const table = createTable<StreamName, StreamState>({ fields: [] })
  const queue = new ExpiryQueue<Kept>()
  const known = new Map<string, Kept>()
  const emptied = new Map<string, Emptied>()
  const emptiedQueue = new ExpiryQueue<Emptied>()

  // Unmistakable, because a message id holds no line break.
  const keyOf = ({ message_id, stream }: { message_id: string; stream: string }) => `${message_id}\n${stream}`

  function evict(kept: Kept): void {
    const { message, stream } = kept
    queue.remove(kept)
    known.delete(keyOf(message))
    stream.state.messages.delete(message.sequence)
    stream.state.shown = undefined
    if (message.externalized) discard(message.externalized.ref)
    if (stream.state.messages.size > 0) return
    table.remove(stream)
    const left: Emptied = { stream: stream.id, lastSequence: stream.state.lastSequence, ...unqueued() }
    emptied.set(stream.id, left)
    emptiedQueue.push(left, 0)
    // As many as there can be streams with messages, so that what is remembered stays in proportion to what is kept.
    if (emptied.size > maxMessages && emptiedQueue.oldest) recall(emptiedQueue.oldest.stream)
  }

  /** Takes the last sequence number of a stream out of the memory of emptied ones. */
  function recall(stream: string): number {
    const left = emptied.get(stream)
    if (!left) return 0
    emptied.delete(stream)
    emptiedQueue.remove(left)
    return left.lastSequence
  }

  /** Deletes a spilled payload without waiting; a store that fails to keeps an orphan, and the message is gone anyway. */
  function discard(ref: string): void {
    void (async () => spill?.delete(ref))().catch(() => {})
  }

  async function putAside(text: string): Promise<string> {
    if (!spill) throw new Refusal('payload_too_large', `over ${inlineBytes} bytes, and there is no spill store`)
    const ref = newId()
    try {
      await spill.put(ref, text)
    } catch (cause) {
      discard(ref)
      if (cause instanceof Refusal) throw cause
      throw new Refusal('unavailable', 'the spill store failed', { cause })
    }
    return ref
  }

  function retain(message: Omit<HistoryMessage, 'sequence' | 'recorded_at'>): HistoryMessage {
    const { stream: name, user_id } = message
    const stream =
      table.get(name) ??
      table.add(name, Object.freeze({ stream: name, user_id }), {
        messages: new OrderedIndex((kept) => kept.message.sequence, byNumber),
        lastSequence: recall(name),
        shown: undefined,
      })
    const { state } = stream
    const retained = deepFreeze({ ...message, sequence: ++state.lastSequence, recorded_at: toTimestamp(now()) })
    const kept: Kept = { message: retained, stream, ...unqueued() }
    state.messages.insert(kept)
    state.shown = undefined
    known.set(keyOf(retained), kept)
    queue.push(kept, 0)
    if (state.messages.size > maxPerStream) evict(state.messages.first() as Kept)
    if (queue.size > maxMessages && queue.oldest) evict(queue.oldest)
    return retained
  }

  /** The stream as it stands, the same object until a message comes or goes. */
  function show({ record, state }: Stream): HistoryStream {
    state.shown ??= Object.freeze({
      ...record,
      message_count: state.messages.size,
      first_recorded_at: (state.messages.first() as Kept).message.recorded_at,
      last_recorded_at: (state.messages.last() as Kept).message.recorded_at,
    })
    return state.shown
  }

  return {
    inspector: {
      async readMessages({ stream: name, limit }, { signal }) {
        const stream = table.get(name)
        if (!stream) return { items: [], truncated: emptied.has(name) }
        const { messages, lastSequence } = stream.state
        const newest = Array.from(messages.after(lastSequence - limit), (kept) => kept.message)
        const items = spill ? await hydrate(newest, spill, { signal, withinMs: hydrationMs }) : newest
        return { items, truncated: items.length < lastSequence }
      },
      listStreams: (filter, page) => table.list(filter, page, show),
      listUserIds: (page) => table.userIds(page),
      observeUsers: (userIds) =>
        userIds
          .filter(table.knowsUser)
          .map((user_id) => ({ user_id, observed_streams: table.sizeOf('user_id', user_id) })),
    },
    async append(given) {
      const { payload: body, ...input } = parseInput(AppendInput, given)
      const retained = () => known.get(keyOf(input))?.message
      const before = retained()
      if (before) return before
      const { text, bytes } = toJson(body, maxPayloadBytes)
      if (bytes <= inlineBytes) return retain({ ...input, payload: JSON.parse(text), externalized: null })
      const ref = await putAside(text)
      const meanwhile = retained()
      if (meanwhile) discard(ref)
      return meanwhile ?? retain({ ...input, payload: null, externalized: { ref, bytes, hydration: 'not_configured' } })
    },
  }
}
