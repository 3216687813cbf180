/** The message history of one process. */

import type { Inspected } from '../../internal/contract/families.js'
import {
  AppendInput,
  type HistoryInspector,
  type HistoryMessage,
  HistoryOptions,
  MESSAGE_BYTES,
  type MessageHistory,
  type Retained,
} from '../../internal/contract/history.js'
import { TRACE_BYTES, toTimestamp, traceFields } from '../../internal/contract/ids.js'
import { toJson } from '../../internal/contract/json.js'
import { type Clocked, parseInput, readOptions, withClock } from '../../internal/contract/options.js'
import { FairShare, type Place } from '../../internal/fair-share/fair-share.js'
import { Refusal } from '../../internal/refusal.js'
import { createSpilling } from '../../internal/spill/spilling.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createTable } from '../table/table.js'
import {
  createHistoryInspector,
  EmptiedStreams,
  type Kept,
  type StreamName,
  type StreamState,
  toMessage,
} from './inspector.js'

// Unambiguous, because ids contain no line break.
const keyOf = ({ message_id, stream, user_id }: Pick<HistoryMessage, 'message_id' | 'stream' | 'user_id'>) =>
  `${message_id}\n${user_id}\n${stream}`

/** Returns the counted size of a message with a payload of `bytes` in memory. */
const weigh = (input: Omit<HistoryMessage, 'sequence' | 'recorded_at' | 'payload'>, bytes: number) =>
  MESSAGE_BYTES +
  input.message_id.length +
  1 +
  input.stream.length +
  input.client_id.length +
  input.instance_id.length +
  (input.trace === undefined ? 0 : TRACE_BYTES) +
  bytes

/** Options of `createMessageHistory`. */
export const MessageHistoryOptions = withClock(HistoryOptions)
/** Options of `createMessageHistory`. */
export interface MessageHistoryOptions extends HistoryOptions, Clocked {}

/**
 * Creates a message history in memory. A stream belongs to the user of its first message; messages that others append
 * to it are separate messages. `append` returns the retained message: an externalised payload is `null` in it, and is
 * loaded only when messages are read.
 *
 * @example
 * const history = createMessageHistory({ spill: createMemorySpillStore() })
 */
export function createMessageHistory(
  options: MessageHistoryOptions = {},
): Inspected<Required<MessageHistory>, HistoryInspector> {
  const bounds = readOptions(MessageHistoryOptions, options)
  const { now, newId, spill, inlineBytes, maxMessages } = bounds
  const spilling = createSpilling(bounds)
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

  function evict({ message, stream, place, spilled: aside }: Kept): void {
    table.raise()
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
    for (let evicted = shares.excess(place); evicted; evicted = shares.excess(place)) evict(evicted)
  }

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
    table.raise()
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
    return toMessage(kept)
  }

  async function take(given: AppendInput): Promise<Retained> {
    const { payload: body, trace, ...rest } = parseInput(AppendInput, given)
    const input = { ...rest, ...traceFields(trace) }
    const { text, bytes } = toJson(body, bounds.maxPayloadBytes)
    const isInline = bytes <= inlineBytes
    const ref = isInline ? undefined : newId()
    const message = {
      ...input,
      externalized: ref === undefined ? null : { ref, bytes, hydration: 'not_configured' as const },
    }
    const size = weigh(message, isInline ? bytes : 0)
    if (!held.fits(size) || (!isInline && !spilled.fits(bytes)))
      throw new Refusal(
        'capacity_exceeded',
        `${size} bytes and ${isInline ? 0 : bytes} spilled exceed the maximum per user`,
      )
    // After the size checks, as in a shared store: a message that is too large is refused even if it is known.
    const before = known.get(keyOf(input))
    if (before) return { message: toMessage(before), isNew: false }
    if (ref === undefined) return { message: retain(message, text, size), isNew: true }
    await spilling.put(ref, text)
    const duplicate = known.get(keyOf(input))
    if (duplicate) spilling.discard(ref)
    return duplicate
      ? { message: toMessage(duplicate), isNew: false }
      : { message: retain(message, 'null', size), isNew: true }
  }

  return {
    inspector: createHistoryInspector(table, emptied, { spill, hydrationMs: bounds.hydrationMs }),
    retain: take,
    append: async (given) => (await take(given)).message,
  }
}
