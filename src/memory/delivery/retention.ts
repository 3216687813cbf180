/** Terminal records, retained for a limited time and in a limited number; the oldest are evicted first. */
import type { Clock } from '../../async/timer.js'
import { ExpiryQueue } from '../table/expiry-queue.js'
import type { TrackedCommand } from './command.js'

/** @param onGone Called with each record that is deleted. */
export function createRetention(
  maxRecords: number,
  retentionMs: number,
  { steady }: Clock,
  onGone: (record: TrackedCommand) => void,
) {
  const records = new Map<string, TrackedCommand>()
  const queue = new ExpiryQueue<TrackedCommand>()

  function drop(record: TrackedCommand) {
    records.delete(record.key)
    onGone(record)
  }

  function forget(key: string) {
    const record = records.get(key)
    if (!record) return
    queue.remove(record)
    drop(record)
  }

  return {
    forget,

    /** Retains a command that has just ended, and replaces an older record of the same command. */
    keep(record: TrackedCommand): void {
      forget(record.key)
      records.set(record.key, record)
      queue.push(record, steady())
      if (queue.size > maxRecords && queue.oldest) forget(queue.oldest.key)
    },

    /** Returns the record under `key` until it expires, even if the loop has not run. */
    get(key: string): TrackedCommand | undefined {
      const record = records.get(key)
      return record && record.touchedAt + retentionMs > steady() ? record : undefined
    },

    /** Deletes expired records. Returns whether none remains. */
    sweep: (): boolean => queue.sweep(steady() - retentionMs, drop),

    get size() {
      return records.size
    },

    /** Returns at most `most` records, newest first. */
    newest(most: number): TrackedCommand[] {
      const found: TrackedCommand[] = []
      for (let next = queue.newest; next && found.length < most; next = next.older as TrackedCommand | null)
        found.push(next)
      return found
    },
  }
}
