/** The message history of a deployment in a shared store, for hosts. */

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
import { TRACE_BYTES, traceFields } from '../../internal/contract/ids.js'
import { deepFreeze, toJson } from '../../internal/contract/json.js'
import { parseInput, readParts } from '../../internal/contract/options.js'
import { Refusal } from '../../internal/refusal.js'
import { createSpilling } from '../../internal/spill/spilling.js'
import type { Arguments } from '../store/arguments.js'
import { shardOf } from '../store/keys.js'
import { ignoreReply, listOf, parseText, type StoreReply, strings } from '../store/reply.js'
import { defineScript, runScript, toUnavailable } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { BadRow, parseRow } from '../table/rows.js'
import { scripts } from './history.lua'
import { createHistoryInspector, MESSAGES, messageKey } from './inspector.js'

// The scripts of the message history: bounded per stream, per user and per shard, each message retained once.

/** Reply where nothing was retained, because the payload may have been deleted by now. */
const GIVEN_UP = -1
/**
 * Returns the retained row. If there is none, `ref` is registered as a reference without a message, and no other node
 * deletes its payload for `spared` ms.
 */
export const PREPARE_PAYLOAD = defineScript(
  'history.prepare',
  { args: ['stream', 'message_id', 'user', 'ref', 'spared'], answer: parseText },
  scripts.prepare,
)

/** Removes references whose payloads have been deleted. */
export const FORGET_PAYLOADS = defineScript(
  'history.forget-payloads',
  { args: [], rest: 'refs', answer: ignoreReply },
  scripts.forget_payloads,
)

// `ref`: the reference of the payload in the spill store, or ''; `handed_out`: maximum number of loose references to
// return.
const RETAIN_ARGS = [
  ...([
    'stream',
    'message_id',
    'user',
    'fields',
    'content',
    'attempt',
    'size',
    'ref',
    'ref_bytes',
    'handed_out',
  ] as const),
  ...(['max_per_stream', 'max_messages', 'max_per_user', 'max_bytes', 'max_bytes_per_user'] as const),
  ...(['max_spilled_bytes', 'max_spilled_bytes_per_user'] as const),
] as const
type RetainArguments = Arguments<(typeof RETAIN_ARGS)[number]>
/** Returns whether the message is new, its row, and references of payloads to delete; or that its own was given up. */
const readRetained = (reply: StoreReply) => {
  const [what, row = null, unreferenced = null] = listOf(reply)
  return { isGivenUp: what === GIVEN_UP, isNew: what === 1, row: parseText(row), unreferenced: strings(unreferenced) }
}

export const APPEND_MESSAGE = defineScript(
  'history.append',
  { args: RETAIN_ARGS, constants: { GIVEN_UP }, answer: readRetained },
  scripts.append,
)

/** Appends, and claims the message in the same step. `ttl` and `capacity` are those of the deduplicator. */
export const INGEST_MESSAGE = defineScript(
  'history.ingest',
  { args: [...RETAIN_ARGS, 'ttl', 'capacity'], constants: { GIVEN_UP }, answer: readRetained },
  scripts.ingest,
)

// A large payload is stored in the spill store first, then everything else in one step.

/** Limits of the deduplicator whose claims are made in the same step. */
interface ClaimBounds {
  ttlMs: number
  capacity: number
}

/** Maximum number of unreferenced payloads that one writer deletes at a time. */
const UNREFERENCED_MAX = 8
/** How long a payload may stay without its message, beyond the timeout of storing it, in ms. */
const IN_TRANSIT_MS = 60_000

/**
 * Parses the message in `row`, which may be stored under any of `ids`, because the stream may belong to another user.
 * @throws Refusal `unavailable`.
 */
function readMessage(store: Store, ids: readonly string[], row: string | null): HistoryMessage {
  const faults: string[] = []
  for (const id of ids) {
    const parsed = parseRow(MESSAGES, id, String(row))
    const message = 'row' in parsed ? MESSAGES.read(parsed.row, 0) : undefined
    if (message) return deepFreeze(message)
    faults.push('text' in parsed ? parsed.text : 'gone')
  }
  throw toUnavailable(store, new BadRow(`invalid stored message: ${faults[0]}`))
}

/**
 * Returns a function that retains a message once. @param claims If set, the message is also claimed in the same step.
 */
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

  /** Deletes payloads that no message refers to, in the background. A later writer retries what fails. */
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
      `${found}, above the maximum per user of ${maxBytesPerUser} and ${maxSpilledBytesPerUser}`,
    )
  }

  return async (given) => {
    const { payload: body, trace, ...rest } = parseInput(AppendInput, given)
    const input = { ...rest, ...traceFields(trace) }
    const { text, bytes } = toJson(body, bounds.maxPayloadBytes)
    const { stream, message_id, user_id, client_id, instance_id } = input
    const id = messageKey(stream, message_id)
    const ids = [id, messageKey(stream, message_id, user_id)]
    const isInline = bytes <= bounds.inlineBytes
    const own = MESSAGE_BYTES + id.length + client_id.length + instance_id.length
    const size = own + (trace === undefined ? 0 : TRACE_BYTES) + (isInline ? bytes : 0)
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
    // If this fails, the payload has no message: it is deleted later unless the message was retained after all.
    const { isGivenUp, isNew, row, unreferenced } = await write(shard, { ...entry, ...limits })
    if (isGivenUp) {
      // Another writer may have tried to delete it before it was stored.
      spilling.discard(ref)
      throw new Refusal('unavailable', 'storing the payload took longer than the limit', { outcome: 'not_run' })
    }
    const remaining = new Set(unreferenced)
    const message = readMessage(store, ids, row)
    if (!isInline && message.externalized?.ref !== ref) remaining.add(ref)
    clear(shard, [...remaining])
    return { message, isNew }
  }
}

/** Options of `createRedisMessageHistory`. */
export type RedisMessageHistoryOptions = StoreOptions & HistoryOptions

/**
 * Creates a message history in Redis. Payloads that are too large for it go to a spill store.
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
