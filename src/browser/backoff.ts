/** When the subscription comes back: never before the relay said, never all viewers at once. */

/** The wait before the relay has named one with `retry`. */
export const RETRY_DEFAULT_MS = 1_000
// A relay that says 0 would be met by a loop, and a timer beyond this overflows into one.
const RETRY_MIN_MS = 100
const RETRY_MAX_MS = 600_000
// Doubling ends here: a host that was away for an hour is found again within half a minute.
const BACKOFF_MAX_MS = 30_000
// Viewers that lost one host at one moment come back over half as much time again.
const JITTER = 0.5

/**
 * Milliseconds until the next attempt: `retryMs` doubled per attempt that failed since the stream last lived, plus up
 * to half of it.
 *
 * @param random from 0 to below 1.
 */
export function reconnectDelay(retryMs: number, failures: number, random: number): number {
  const base = Math.min(RETRY_MAX_MS, Math.max(RETRY_MIN_MS, retryMs))
  const wait = Math.max(base, Math.min(BACKOFF_MAX_MS, base * 2 ** failures))
  return wait * (1 + JITTER * random)
}
