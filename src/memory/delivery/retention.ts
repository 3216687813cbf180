/** Terminal records that are kept for a while, bounded in time and number, oldest out first. */
import type { Clock } from '../../async/clock.js'
import { ExpiryQueue } from '../table/expiry-queue.js'
import type { TrackedCommand } from './command.js'

/** @param onGone told of each record that is kept no longer. */
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

    /** Keeps what has just ended, in place of an older record of the same command. */
    keep(record: TrackedCommand): void {
      forget(record.key)
      records.set(record.key, record)
      queue.push(record, steady())
      if (queue.size > maxRecords && queue.oldest) forget(queue.oldest.key)
    },

    /** The record under `key` while its time is not over, whether or not the loop has come by. */
    get(key: string): TrackedCommand | undefined {
      const record = records.get(key)
      return record && record.touchedAt + retentionMs > steady() ? record : undefined
    },

    /** Drops what is over; whether none is left behind. */
    sweep: (): boolean => queue.sweep(steady() - retentionMs, drop),

    get size() {
      return records.size
    },

    /** At most `most` records, the newest first. */
    newest(most: number): TrackedCommand[] {
      const found: TrackedCommand[] = []
      for (let next = queue.newest; next && found.length < most; next = next.older as TrackedCommand | null)
        found.push(next)
      return found
    },
  }
}
