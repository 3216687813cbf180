/** The live message history of a deployment in a shared store, for the hosts that write to it. */
import {
  AppendInput,
  type HistoryInspector,
  type HistoryMessage,
  type MessageHistory,
  type SpillStore,
} from '../contract/history.js'
import { parseInput } from '../contract/input.js'
import type { Inspected } from '../contract/inspectors.js'
import { deepFreeze, toJson } from '../contract/json.js'
import { Refusal } from '../refusal.js'
import { shardOf } from './keys.js'
import { createHistoryInspector, MESSAGES, messageKey } from './observe/history.js'
import { BadRow, parseRow } from './observe/rows.js'
import { type Reply, strings } from './reply.js'
import { runScript, unusable } from './script.js'
import { APPEND, RETAINED } from './scripts/history.js'
import { createStore, type Store, type StoreOptions } from './store.js'

export interface HistoryLimits {
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
  /** Messages kept of all streams of one shard together. @default 100000 */
  maxMessages?: number
  /** How long one answer waits for externalised payloads; what did not come says `error`. @default 2000 */
  hydrationMs?: number
}

export type RedisMessageHistoryOptions = StoreOptions & HistoryLimits

const INLINE_BYTES = 65_536

/**
 * A message history in Redis, with the payloads that are too large for it in a spill store.
 *
 * @example
 * const history = createRedisMessageHistory({ client, deploymentId: 'prod', spill })
 */
export function createRedisMessageHistory(
  options: RedisMessageHistoryOptions,
): Inspected<MessageHistory, HistoryInspector> {
  return messageHistoryOn(createStore(options), options)
}

export function messageHistoryOn(store: Store, options: HistoryLimits): Inspected<MessageHistory, HistoryInspector> {
  const { newId = () => crypto.randomUUID(), spill, hydrationMs } = options
  const { inlineBytes = INLINE_BYTES, maxPayloadBytes = 16_777_216 } = options
  const { maxPerStream = 1_000, maxMessages = 100_000 } = options
  if (inlineBytes > INLINE_BYTES) throw new RangeError(`inlineBytes must be at most ${INLINE_BYTES}`)

  /** Deletes a spilled payload without waiting; a store that fails to keeps an orphan, and the message is gone anyway. */
  function discard(ref: string): void {
    void (async () => spill?.delete(ref))().catch(() => {})
  }

  async function putAside(text: string): Promise<string> {
    if (!spill) throw new Refusal('payload_too_large', `over ${inlineBytes} bytes, and there is no spill store`)
    const ref = newId()
    try {
      await spill.put(ref, text)
      return ref
    } catch (cause) {
      discard(ref)
      if (cause instanceof Refusal) throw cause
      throw new Refusal('unavailable', 'the spill store failed', { cause })
    }
  }

  function toMessage(id: string, row: Reply): HistoryMessage {
    const parsed = parseRow(MESSAGES, id, String(row))
    const message = typeof parsed === 'string' ? undefined : MESSAGES.read(parsed, 0)
    if (!message) throw unusable(store, new BadRow(`the retained message ${parsed}`))
    return deepFreeze(message)
  }

  return {
    inspector: createHistoryInspector(store, { spill, ...(hydrationMs === undefined ? {} : { hydrationMs }) }),
    async append(given) {
      const { payload: body, ...input } = parseInput(AppendInput, given)
      const { text, bytes } = toJson(body, maxPayloadBytes)
      const { stream, message_id } = input
      const id = messageKey(stream, message_id)
      const shard = shardOf(input.user_id, await store.claimShards())
      const isInline = bytes <= inlineBytes
      if (!isInline) {
        const known = await runScript(store, RETAINED, shard, stream, message_id)
        if (known !== null) return toMessage(id, known)
      }
      const ref = isInline ? undefined : await putAside(text)
      const fields = JSON.stringify({ ...input, externalized: ref === undefined ? null : { ref, bytes } })
      const payload = `{"payload":${isInline ? text : 'null'}}`
      const args = [stream, message_id, fields, payload, maxPerStream, maxMessages]
      try {
        const [isNew, row, spilled] = [await runScript(store, APPEND, shard, ...args)].flat()
        if (isNew !== 1 && ref !== undefined) discard(ref)
        for (const left of strings(spilled ?? null)) discard(left)
        return toMessage(id, row ?? null)
      } catch (error) {
        // Refused for certain: nothing refers to it. A command that may still have run keeps its payload.
        if (ref !== undefined && !(error instanceof Refusal && error.code === 'unavailable')) discard(ref)
        throw error
      }
    },
  }
}
