/** The live message history of one process, and the inspector that looks through at it. */

import {
  AppendInput,
  type HistoryInspector,
  type HistoryMessage,
  type HistoryStream,
  type MessageHistory,
  type Retained,
} from '../../contract/history.js'
import { HISTORY_BOUNDS, type HistoryOptions, MESSAGE_BYTES } from '../../contract/history-bounds.js'
import { toTimestamp } from '../../contract/ids.js'
import { parseInput } from '../../contract/input.js'
import type { Inspected } from '../../contract/inspectors.js'
import { deepFreeze, type Json, toJson } from '../../contract/json.js'
import { HISTORY_BYTES } from '../../contract/limits.js'
import { resolveBounds } from '../../contract/options.js'
import { examinable, saying } from '../../contract/page.js'
import { FairShare, type Place } from '../../fair-share/fair-share.js'
import { Refusal } from '../../refusal.js'
import { hydrate } from '../../spill/hydration.js'
import { createSpilling } from '../../spill/spilling.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createTable, type Entry } from '../table/table.js'
import { EmptiedStreams } from './emptied-streams.js'

export interface MessageHistoryOptions extends HistoryOptions {
  /** Epoch ms. @default Date.now */
  now?: () => number
}

/** A message as it is kept. Its payload is text, because what that text stands for can take forty times its room. */
interface Kept {
  readonly message: HistoryMessage
  readonly text: string
  readonly stream: Stream
  place?: Place<Kept>
  spilled?: Place<Kept>
}

/** What is kept of a stream that has messages. Its sequence numbers have no holes: the oldest always leave first. */
interface StreamState {
  readonly messages: OrderedIndex<number, Kept>
  lastSequence: number
  shown: HistoryStream | undefined
}

type StreamName = Pick<HistoryStream, 'stream' | 'user_id'>
type Stream = Entry<StreamName, StreamState>

/** The message with its payload, made anew each time. */
const show = ({ message, text }: Kept): HistoryMessage => deepFreeze({ ...message, payload: JSON.parse(text) as Json })

/**
 * A message history in memory. A stream belongs to the user of its first message. The message that `append` answers is
 * the one retained: an externalised payload is `null` in it and is only brought back on reading.
 *
 * @example
 * const history = createMessageHistory({ spill: createMemorySpillStore() })
 */
export function createMessageHistory(
  options: MessageHistoryOptions = {},
): Inspected<Required<MessageHistory>, HistoryInspector> {
  const { now = Date.now, newId = () => crypto.randomUUID(), spill } = options
  const bounds = resolveBounds(options, HISTORY_BOUNDS)
  const { inlineBytes, maxMessages } = bounds
  const spilling = createSpilling({ ...bounds, spill })
  const table = createTable<StreamName, StreamState>({ fields: [] })
  const known = new Map<string, Kept>()
  const emptied = new EmptiedStreams(maxMessages)
  const held = new FairShare<Kept>({
    entries: maxMessages,
    entriesPerUser: bounds.maxPerUser,
    bytes: bounds.maxBytes,
    bytesPerUser: bounds.maxBytesPerUser,
  })
  const spilled = new FairShare<Kept>({ bytes: bounds.maxSpilledBytes, bytesPerUser: bounds.maxSpilledBytesPerUser })

  // Unmistakable, because a message id holds no line break.
  const keyOf = ({ message_id, stream }: { message_id: string; stream: string }) => `${message_id}\n${stream}`

  function evict({ message, stream, place, spilled: aside }: Kept): void {
    if (place) held.remove(place)
    if (aside) spilled.remove(aside)
    known.delete(keyOf(message))
    stream.state.messages.delete(message.sequence)
    stream.state.shown = undefined
    if (message.externalized) spilling.discard(message.externalized.ref)
    if (stream.state.messages.size > 0) return
    table.remove(stream)
    emptied.remember(stream.record.user_id, stream.id, stream.state.lastSequence)
  }

  function makeRoom(shares: FairShare<Kept>, place: Place<Kept>): void {
    for (let left = shares.excess(place); left; left = shares.excess(place)) evict(left)
  }

  const weigh = (input: Omit<HistoryMessage, 'sequence' | 'recorded_at' | 'payload'>, bytes: number) =>
    MESSAGE_BYTES + keyOf(input).length + input.client_id.length + input.instance_id.length + bytes

  function retain(
    message: Omit<HistoryMessage, 'sequence' | 'recorded_at' | 'payload'>,
    text: string,
    size: number,
  ): HistoryMessage {
    const { stream: name, user_id } = message
    const stream =
      table.get(name) ??
      table.add(name, Object.freeze({ stream: name, user_id }), {
        messages: new OrderedIndex((kept) => kept.message.sequence, byNumber),
        lastSequence: emptied.recall(name),
        shown: undefined,
      })
    const { state } = stream
    const recorded_at = toTimestamp(now())
    const retained = { ...message, payload: null, sequence: ++state.lastSequence, recorded_at }
    const kept: Kept = { message: retained, text, stream }
    state.messages.insert(kept)
    state.shown = undefined
    known.set(keyOf(retained), kept)
    kept.place = held.add(user_id, kept, size)
    if (message.externalized) kept.spilled = spilled.add(user_id, kept, message.externalized.bytes)
    if (state.messages.size > bounds.maxPerStream) evict(state.messages.first() as Kept)
    makeRoom(held, kept.place)
    if (kept.spilled) makeRoom(spilled, kept.spilled)
    return show(kept)
  }

  /** The newest messages of a stream, oldest first: at most `limit`, and no more text than one answer carries. */
  function newestOf({ messages, lastSequence }: StreamState, limit: number): HistoryMessage[] {
    const newest = [...messages.after(lastSequence - limit)]
    let first = newest.length
    for (let bytes = 0; first > 0; first--) {
      bytes += (newest[first - 1] as Kept).text.length
      if (bytes > HISTORY_BYTES && first < newest.length) break
    }
    return newest.slice(first).map(show)
  }

  /** The stream as it is now, the same object until a message comes or goes. */
  function showStream({ record, state }: Stream): HistoryStream {
    state.shown ??= Object.freeze({
      ...record,
      message_count: state.messages.size,
      first_recorded_at: (state.messages.first() as Kept).message.recorded_at,
      last_recorded_at: (state.messages.last() as Kept).message.recorded_at,
    })
    return state.shown
  }

  async function take(given: AppendInput): Promise<Retained> {
    const { payload: body, ...input } = parseInput(AppendInput, given)
    const before = known.get(keyOf(input))
    if (before) return { message: show(before), isNew: false }
    const { text, bytes } = toJson(body, bounds.maxPayloadBytes)
    const isInline = bytes <= inlineBytes
    const ref = isInline ? undefined : newId()
    const message = {
      ...input,
      externalized: ref === undefined ? null : { ref, bytes, hydration: 'not_configured' as const },
    }
    const size = weigh(message, isInline ? bytes : 0)
    if (!held.fits(size) || (!isInline && !spilled.fits(bytes)))
      throw new Refusal('capacity_exceeded', 'larger than all that one user may hold')
    if (ref === undefined) return { message: retain(message, text, size), isNew: true }
    await spilling.put(ref, text)
    const meanwhile = known.get(keyOf(input))
    if (meanwhile) spilling.discard(ref)
    return meanwhile
      ? { message: show(meanwhile), isNew: false }
      : { message: retain(message, 'null', size), isNew: true }
  }

  return {
    inspector: {
      async readMessages({ stream: name, limit }, { signal }) {
        const stream = table.get(name)
        if (!stream) return { items: [], truncated: emptied.has(name) }
        const newest = newestOf(stream.state, limit)
        const items = spill ? await hydrate(newest, spill, { signal, withinMs: bounds.hydrationMs }) : newest
        return { items, truncated: items.length < stream.state.lastSequence }
      },
      listStreams: (filter, page, ask) => table.list(filter, page, showStream, examinable(ask)),
      listUserIds: (page, ask) => table.users.userIds(page, ({ record }) => record, true, examinable(ask)),
      observeUsers(userIds) {
        const parts = userIds
          .filter(table.users.knowsUser)
          .map((user_id) => ({ user_id, observed_streams: table.sizeOf('user_id', user_id) }))
        return saying(parts, { examined: 0 })
      },
    },
    retain: take,
    append: async (given) => (await take(given)).message,
  }
}
