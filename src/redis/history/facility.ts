/** The live message history of a deployment in a shared store, for the hosts that write to it. */
import {
  AppendInput,
  type HistoryInspector,
  type HistoryMessage,
  HistoryOptions,
  MESSAGE_BYTES,
  type MessageHistory,
  type Retained,
} from '../../contract/history.js'
import { parseInput } from '../../contract/input.js'
import type { Inspected } from '../../contract/inspectors.js'
import { deepFreeze, toJson } from '../../contract/json.js'
import { readParts } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'
import { createSpilling } from '../../spill/spilling.js'
import { shardOf } from '../store/keys.js'
import { runScript, toUnavailable } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { BadRow, parseRow } from '../table/rows.js'
import { createHistoryInspector, MESSAGES, messageKey } from './inspector.js'
import { APPEND_MESSAGE, FORGET_PAYLOADS, INGEST_MESSAGE, PREPARE_PAYLOAD, type RetainArguments } from './scripts.js'

// How a message gets into the history of a shared store: its large payload aside first, then everything in one step.

/** The bounds of the deduplicator whose claims are made in the same step. */
interface ClaimBounds {
  ttlMs: number
  capacity: number
}

/** Unreferenced payloads that one writer is asked to delete at a time. */
const UNREFERENCED_MAX = 8
/** Beyond the time that putting may take: how long a payload may be on its way into its message. */
const IN_TRANSIT_MS = 60_000

/** The message in `row`, which is known by one of `ids`: the stream may be another user's. @throws Refusal `unavailable`. */
function readMessage(store: Store, ids: readonly string[], row: string | null): HistoryMessage {
  const faults: string[] = []
  for (const id of ids) {
    const parsed = parseRow(MESSAGES, id, String(row))
    const message = 'row' in parsed ? MESSAGES.read(parsed.row, 0) : undefined
    if (message) return deepFreeze(message)
    faults.push('text' in parsed ? parsed.text : 'gone')
  }
  throw toUnavailable(store, new BadRow(`the retained message: ${faults[0]}`))
}

/** Retains a message once. @param claims Where given, the message is claimed in the same step. */
export function retainOn(
  store: Store,
  options: HistoryOptions,
  claims?: ClaimBounds,
): (given: AppendInput) => Promise<Retained> {
  const bounds = readParts(HistoryOptions, options)
  const { newId, spill } = bounds
  const spilling = createSpilling(bounds)
  const limits = {
    handed_out: spill ? UNREFERENCED_MAX : 0,
    max_per_stream: bounds.maxPerStream,
    max_messages: bounds.maxMessages,
    max_per_user: bounds.maxPerUser,
    max_bytes: bounds.maxBytes,
    max_bytes_per_user: bounds.maxBytesPerUser,
    max_spilled_bytes: bounds.maxSpilledBytes,
    max_spilled_bytes_per_user: bounds.maxSpilledBytesPerUser,
  }

  const write = (shard: number, entry: RetainArguments) =>
    claims
      ? runScript(store, INGEST_MESSAGE, shard, { ...entry, ttl: claims.ttlMs, capacity: claims.capacity })
      : runScript(store, APPEND_MESSAGE, shard, entry)

  /** Deletes payloads that no message refers to, without waiting. What fails is handed to a later writer. */
  function clear(shard: number, refs: readonly string[]): void {
    if (refs.length === 0) return
    const removing = refs.map(async (ref) => {
      await spilling.remove(ref)
      return ref
    })
    void (async () => {
      const removed = (await Promise.allSettled(removing)).flatMap((one) =>
        one.status === 'fulfilled' ? one.value : [],
      )
      if (removed.length > 0) await runScript(store, FORGET_PAYLOADS, shard, { refs: removed })
    })().catch(() => {})
  }

  function checkSize(size: number, spilled: number): void {
    const fits = size <= Math.min(bounds.maxBytes, bounds.maxBytesPerUser)
    if (fits && spilled <= Math.min(bounds.maxSpilledBytes, bounds.maxSpilledBytesPerUser)) return
    const { maxBytesPerUser, maxSpilledBytesPerUser } = bounds
    const found = `${size} bytes and ${spilled} spilled`
    throw new Refusal(
      'capacity_exceeded',
      `${found}, at most ${maxBytesPerUser} and ${maxSpilledBytesPerUser} of one user`,
    )
  }

  return async (given) => {
    const { payload: body, ...input } = parseInput(AppendInput, given)
    const { text, bytes } = toJson(body, bounds.maxPayloadBytes)
    const { stream, message_id, user_id, client_id, instance_id } = input
    const id = messageKey(stream, message_id)
    const ids = [id, messageKey(stream, message_id, user_id)]
    const isInline = bytes <= bounds.inlineBytes
    const size = MESSAGE_BYTES + id.length + client_id.length + instance_id.length + (isInline ? bytes : 0)
    checkSize(size, isInline ? 0 : bytes)
    const shard = shardOf(user_id, await store.claimShards())
    const ref = isInline ? '' : newId()
    if (!isInline) {
      const about = { stream, message_id, user: user_id, ref, spared: IN_TRANSIT_MS + bounds.spillMs }
      const known = await runScript(store, PREPARE_PAYLOAD, shard, about)
      if (known !== null) return { message: readMessage(store, ids, known), isNew: false }
      await spilling.put(ref, text)
    }
    const fields = JSON.stringify({ ...input, externalized: isInline ? null : { ref, bytes } })
    const content = `{"payload":${isInline ? text : 'null'}}`
    const attempt = crypto.randomUUID()
    const entry = {
      stream,
      message_id,
      user: user_id,
      fields,
      content,
      attempt,
      size,
      ref,
      ref_bytes: isInline ? 0 : bytes,
    }
    // Where it fails, its payload is loose: it is deleted after a while unless the message has been retained after all.
    const { isGivenUp, isNew, row, unreferenced } = await write(shard, { ...entry, ...limits })
    if (isGivenUp) {
      // Whoever was to delete it may have come before it did.
      spilling.discard(ref)
      throw new Refusal('unavailable', 'the payload was put later than its message may wait', { outcome: 'not_run' })
    }
    const left = new Set(unreferenced)
    const message = readMessage(store, ids, row)
    if (!isInline && message.externalized?.ref !== ref) left.add(ref)
    clear(shard, [...left])
    return { message, isNew }
  }
}

export type RedisMessageHistoryOptions = StoreOptions & HistoryOptions

/**
 * A message history in Redis, with the payloads that are too large for it in a spill store.
 *
 * @example
 * const history = createRedisMessageHistory({ client, deploymentId: 'prod', spill })
 */
export function createRedisMessageHistory(
  options: RedisMessageHistoryOptions,
): Inspected<Required<MessageHistory>, HistoryInspector> {
  return messageHistoryOn(createStore(options, inStore(HistoryOptions)), options)
}

export function messageHistoryOn(
  store: Store,
  options: HistoryOptions,
): Inspected<Required<MessageHistory>, HistoryInspector> {
  const { spill, hydrationMs } = options
  const retain = retainOn(store, options)
  return {
    inspector: createHistoryInspector(store, { spill, hydrationMs }),
    retain,
    append: async (given) => (await retain(given)).message,
  }
}
