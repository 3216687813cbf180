/** How long an ending may take: what does not end by itself is left behind, and said to be. */
import { runWithin } from './time-limit.js'

/** For what is under way when something of ours is closed. */
export const CLOSE_TIMEOUT_MS = 5_000

/** What had not ended by itself when the time for an ending was over. */
export interface Ending {
  cut: number
}

/**
 * Waits for all of `work`, at most `ms`.
 *
 * @returns how many had not ended by then.
 */
export async function endWithin(work: Iterable<unknown>, ms: number): Promise<Ending> {
  let cut = 0
  const ends = [...work].map(async (each) => {
    cut++
    // One that fails has ended, too.
    await Promise.allSettled([each])
    cut--
  })
  // None of them rejects: only the time can be over.
  await runWithin(() => Promise.all(ends), { ms, late: () => undefined }).catch(() => {})
  return { cut }
}

/** One ending out of several. */
export async function endTogether(ends: Iterable<Ending | PromiseLike<Ending>>): Promise<Ending> {
  const ended = await Promise.all(ends)
  return { cut: ended.reduce((sum, { cut }) => sum + cut, 0) }
}
