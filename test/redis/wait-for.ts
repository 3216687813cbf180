/** Waits for other processes or nodes, in real time. */
import { sleep } from '../../src/internal/async/timer.js'

/** Between two looks, in ms: soon at first, and less often the longer it takes. */
const FIRST_MS = 5
const LAST_MS = 100
/** Above all that a busy machine needs, and below what vitest gives a test. */
const PATIENCE_MS = 300_000

/** Waits until `check` passes; fails with its last error. */
export async function soon<T>(check: () => T | Promise<T>): Promise<T> {
  const end = performance.now() + PATIENCE_MS
  for (let wait = FIRST_MS; ; wait = Math.min(LAST_MS, wait * 1.5))
    try {
      return await check()
    } catch (error) {
      if (performance.now() > end) throw error
      await sleep(wait)
    }
}
