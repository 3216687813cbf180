/** Guards host callbacks: an error in a callback never reaches the library. */

/**
 * Wraps `hook` so that it never throws. Synchronous errors and rejections go to `failed`; an unhandled rejection would
 * end the host's process.
 *
 * @param failed must not throw itself. Default: errors are dropped.
 */
export function guardHook<Args extends unknown[]>(
  hook: ((...args: Args) => unknown) | undefined,
  failed: (error: unknown) => void = () => {},
): (...args: Args) => void {
  if (hook === undefined) return () => {}
  return (...args) => void (async () => hook(...args))().catch(failed)
}

// Limits the log when every request or every pass of a loop fails.
const PER_SECOND = 10

/** The default error hook: writes the error with its stack to the console. */
function createConsoleHook() {
  let second = 0
  let logged = 0
  return (error: unknown, ...place: unknown[]): void => {
    const now = Math.floor(performance.now() / 1_000)
    if (now !== second) {
      if (logged > PER_SECOND) console.error(`relayscope: ${logged - PER_SECOND} more errors within a second`)
      second = now
      logged = 0
    }
    if (++logged <= PER_SECOND) console.error('relayscope:', ...place, error)
  }
}

/**
 * Returns a guarded error hook. Without `hook`, errors go to the console, at most ten a second.
 *
 * @param hook is called with the error and where it occurred; `null` disables reporting.
 */
export const guardErrorHook = <Args extends unknown[]>(
  hook: ((error: unknown, ...place: Args) => unknown) | null | undefined,
): ((error: unknown, ...place: Args) => void) => (hook === null ? () => {} : guardHook(hook ?? createConsoleHook()))
