/** How long an ending may take: what does not end by itself is left behind, and said to be. */

/** For what is under way when something of ours is closed. */
export const CLOSE_TIMEOUT_MS = 5_000

/**
 * Waits for all of `work`, at most `ms`.
 *
 * @returns how many had not ended by then.
 */
export async function endWithin(work: Iterable<unknown>, ms: number): Promise<{ cut: number }> {
  let cut = 0
  const ends = [...work].map(async (each) => {
    cut++
    await each
    cut--
  })
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    await Promise.race([Promise.all(ends), late])
    return { cut }
  } finally {
    clearTimeout(timer)
  }
}
