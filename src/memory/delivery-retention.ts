/** Terminal records that are kept for a while, bounded in time and number, oldest out first. */
import type { TrackedCommand } from './delivery-command.js'

export type Retention = ReturnType<typeof createRetention>

export function createRetention(maxRecords: number, retentionMs: number) {
  const records = new Map<string, TrackedCommand>()
  // A queue with a moving head: deleting the first key of a large Map again and again walks over its holes.
  let queue: TrackedCommand[] = []
  let head = 0

  const isOver = (record: TrackedCommand, now: number) => (record.terminal?.at ?? 0) + retentionMs <= now

  function dropOldest() {
    const oldest = queue[head++] as TrackedCommand
    if (records.get(oldest.key) === oldest) records.delete(oldest.key)
    if (head * 2 < queue.length) return
    queue = queue.slice(head)
    head = 0
  }

  return {
    keep(record: TrackedCommand): void {
      records.set(record.key, record)
      queue.push(record)
      while (queue.length - head > maxRecords) dropOldest()
    },

    get(key: string, now: number): TrackedCommand | undefined {
      const record = records.get(key)
      return record && !isOver(record, now) ? record : undefined
    },

    forget: (key: string) => records.delete(key),

    /** Drops what is over, at most `limit`; how many it dropped. */
    sweep(now: number, limit: number): number {
      let dropped = 0
      while (dropped < limit && head < queue.length && isOver(queue[head] as TrackedCommand, now)) {
        dropOldest()
        dropped++
      }
      return dropped
    },

    get size() {
      return queue.length - head
    },
  }
}
