/** Terminal records that are kept for a while, bounded in time and number, oldest out first. */
import type { TrackedCommand } from './delivery-command.js'
import { ExpiryQueue } from './expiry-queue.js'

export type Retention = ReturnType<typeof createRetention>

export function createRetention(maxRecords: number, retentionMs: number) {
  const records = new Map<string, TrackedCommand>()
  const queue = new ExpiryQueue<TrackedCommand>()

  function forget(key: string) {
    const record = records.get(key)
    if (!record) return
    queue.remove(record)
    records.delete(key)
  }

  return {
    forget,

    /** Keeps what ended `at`, in place of an older record of the same command. */
    keep(record: TrackedCommand, at: number): void {
      forget(record.key)
      records.set(record.key, record)
      queue.push(record, at)
      if (queue.size > maxRecords && queue.oldest) forget(queue.oldest.key)
    },

    /** The record under `key` while its time is not over, whether or not the loop has come by. */
    get(key: string, now: number): TrackedCommand | undefined {
      const record = records.get(key)
      return record && record.touchedAt + retentionMs > now ? record : undefined
    },

    /** Drops what is over; whether none is left behind. */
    sweep: (now: number): boolean => queue.sweep(now - retentionMs, (record) => records.delete(record.key)),

    get size() {
      return records.size
    },
  }
}
