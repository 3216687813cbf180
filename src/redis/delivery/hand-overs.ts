/** Hand-overs that a node has yet to tell the store of: with what the client says next of the command, or by themselves. */
import { createAlarm } from '../../async/timer.js'

/** A client that answers at once has done so by then. */
const WAIT_MS = 100
/** That much of the patience for an attempt at most. */
const PATIENCE_PART = 10

interface HandOver {
  attempt: number
  /** Tells it by itself. */
  tell(): void
}

export function createHandOvers(ackTimeoutMs: number) {
  const waitMs = Math.min(WAIT_MS, ackTimeoutMs / PATIENCE_PART)
  /** By their commands. */
  const untold = new Map<string, HandOver>()

  function tellAll() {
    const all = [...untold.values()]
    untold.clear()
    for (const { tell } of all) tell()
  }
  const alarm = createAlarm(tellAll)

  return {
    add(ref: string, handOver: HandOver) {
      // Of a former attempt.
      untold.get(ref)?.tell()
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
