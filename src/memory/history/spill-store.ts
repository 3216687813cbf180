/** A spill store in the memory of one process: large payloads by reference, limited in bytes. */
import type { SpillStore } from '../../internal/contract/history.js'
import { utf8Length } from '../../internal/contract/ids.js'
import { count, defineOptions, type Input, readOptions } from '../../internal/contract/options.js'
import { Refusal } from '../../internal/refusal.js'
import { ExpiryQueue, type Queued, unqueued } from '../table/expiry-queue.js'

/** Options of `createMemorySpillStore`. */
export const MemorySpillStoreOptions = defineOptions({
  /** Maximum size of all texts together, in bytes of UTF-8. Above it, the oldest are evicted. @default 134217728 */
  maxBytes: count(134_217_728),
})
/** Options of `createMemorySpillStore`. */
export interface MemorySpillStoreOptions extends Input<typeof MemorySpillStoreOptions> {}

interface Text extends Queued {
  readonly ref: string
  readonly text: string
  readonly bytes: number
}

/**
 * Creates a spill store in memory. An evicted text is `null` when read, and its message shows `missing`.
 *
 * @example
 * const history = createMessageHistory({ spill: createMemorySpillStore() })
 */
export function createMemorySpillStore(options: MemorySpillStoreOptions = {}): SpillStore {
  const { maxBytes } = readOptions(MemorySpillStoreOptions, options)
  const texts = new Map<string, Text>()
  const queue = new ExpiryQueue<Text>()
  let total = 0

  function drop(entry: Text): void {
    queue.remove(entry)
    texts.delete(entry.ref)
    total -= entry.bytes
  }

  return {
    async put(ref, text) {
      const bytes = utf8Length(text)
      if (bytes > maxBytes) throw new Refusal('payload_too_large', `${bytes} bytes exceed the maximum of ${maxBytes}`)
      const known = texts.get(ref)
      if (known) drop(known)
      while (total + bytes > maxBytes && queue.oldest) drop(queue.oldest)
      const entry: Text = { ref, text, bytes, ...unqueued() }
      texts.set(ref, entry)
      queue.push(entry, 0)
      total += bytes
    },
    async get(ref) {
      return texts.get(ref)?.text ?? null
    },
    async delete(ref) {
      const known = texts.get(ref)
      if (known) drop(known)
    },
  }
}
