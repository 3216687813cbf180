/** How long an ending may take: what does not end by itself is left behind, and said to be. */
import { runWithin } from './time-limit.js'

/** For what is under way when something of ours is closed. */
export const CLOSE_TIMEOUT_MS = 5_000

/** What had not ended by itself when the time for an ending was over. */
export interface CloseResult {
  aborted: number
}

/**
 * Waits for all of `work`, at most `ms`.
 *
 * @returns how many had not ended by then.
 */
export async function endWithin(work: Iterable<unknown>, ms: number): Promise<CloseResult> {
  let aborted = 0
  const ends = [...work].map(async (each) => {
    aborted++
    // One that fails has ended, too.
    await Promise.allSettled([each])
    aborted--
  })
  // None of them rejects: only the time can be over.
  await runWithin(() => Promise.all(ends), { ms, late: () => undefined }).catch(() => {})
  return { aborted }
}

/** One ending out of several. */
export async function endTogether(ends: Iterable<CloseResult | PromiseLike<CloseResult>>): Promise<CloseResult> {
  const ended = await Promise.all(ends)
  return { aborted: ended.reduce((sum, { aborted }) => sum + aborted, 0) }
}
