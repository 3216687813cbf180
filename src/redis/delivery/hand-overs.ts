/** Hand-overs that a node has yet to tell the store of: with what the client says next of the command, or by themselves. */
import { createAlarm } from '../../async/timer.js'

/** A client that answers at once has done so by then. */
const WAIT_MS = 100
/** At most a tenth of the patience for an attempt, which begins anew when the store is told. */
const PATIENCE_PART = 10

interface HandOver {
  attempt: number
  /** When `deliver` resolved, on the local clock. */
  endedAt: number
  shard: number
  /** Tells it by itself; resolves when that has come to something. */
  tell(): Promise<void>
}

export function createHandOvers(ackTimeoutMs: number) {
  const waitMs = Math.min(WAIT_MS, ackTimeoutMs / PATIENCE_PART)
  /** By their commands. */
  const untold = new Map<string, HandOver>()

  /** All of them, or those of a shard. */
  async function tellAll(of?: number): Promise<void> {
    const all = [...untold].filter(([, { shard }]) => of === undefined || shard === of)
    for (const [ref] of all) untold.delete(ref)
    await Promise.all(all.map(([, { tell }]) => tell()))
  }
  const alarm = createAlarm(() => void tellAll())

  return {
    add(ref: string, handOver: HandOver) {
      // Of a former attempt.
      void untold.get(ref)?.tell()
      untold.set(ref, handOver)
      alarm.advance(waitMs)
    },

    /** For whoever tells it with something else, and has it tell itself where that comes to nothing. */
    take(ref: string): HandOver | undefined {
      const handOver = untold.get(ref)
      untold.delete(ref)
      return handOver
    },

    tellAll,
  }
}
