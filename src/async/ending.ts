/** How long closing may take. Work that has not ended by then is abandoned and counted. */
import { runWithin } from './time-limit.js'

/** Maximum time that `close()` waits for pending work, in milliseconds. */
export const CLOSE_TIMEOUT_MS = 5_000

/** The result of closing: how much work had to be abandoned. */
export interface CloseResult {
  /** Number of connections that were destroyed because they did not close in time. */
  aborted: number
}

/**
 * Waits for all of `work`, at most `ms` milliseconds.
 *
 * @returns how many had not settled by then.
 */
export async function endWithin(work: Iterable<unknown>, ms: number): Promise<CloseResult> {
  let aborted = 0
  const ends = [...work].map(async (each) => {
    aborted++
    // Rejected work has ended, too.
    await Promise.allSettled([each])
    aborted--
  })
  // The settled promises never reject; only the time limit can.
  await runWithin(() => Promise.all(ends), { ms, late: () => undefined }).catch(() => {})
  return { aborted }
}

/** One ending out of several. */
export async function endTogether(ends: Iterable<CloseResult | PromiseLike<CloseResult>>): Promise<CloseResult> {
  const ended = await Promise.all(ends)
  return { aborted: ended.reduce((sum, { aborted }) => sum + aborted, 0) }
}
