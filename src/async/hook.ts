/** The guard of every hook by which a host is told something: what a hook does wrong is its own affair. */

/**
 * `hook`, which is called at once and never throws. What it throws, and what it rejects with should it be async, goes to
 * `failed` and no further: a rejection that nobody hears ends the host's process.
 *
 * @param failed must itself be guarded. Default: nobody is told.
 */
export function guardHook<Args extends unknown[]>(
  hook: ((...args: Args) => unknown) | undefined,
  failed: (error: unknown) => void = () => {},
): (...args: Args) => void {
  if (hook === undefined) return () => {}
  return (...args) => void (async () => hook(...args))().catch(failed)
}

// Whatever goes wrong with every request, or with every pass of a loop, must not fill a log by itself.
const PER_SECOND = 10

/** What is told where a host has named no hook: with its stack, where a host looks first. */
function createConsoleHook() {
  let second = 0
  let told = 0
  return (error: unknown, ...place: unknown[]): void => {
    const now = Math.floor(performance.now() / 1_000)
    if (now !== second) {
      if (told > PER_SECOND) console.error(`relayscope: ${told - PER_SECOND} more errors within a second`)
      second = now
      told = 0
    }
    if (++told <= PER_SECOND) console.error('relayscope:', ...place, error)
  }
}

/**
 * The hook for errors that nobody is shown, guarded: without one they go to the console, at most ten a second.
 *
 * @param hook is told the error, and after it where it came from; `null` for nobody.
 */
export const guardErrorHook = <Args extends unknown[]>(
  hook: ((error: unknown, ...place: Args) => unknown) | null | undefined,
): ((error: unknown, ...place: Args) => void) => (hook === null ? () => {} : guardHook(hook ?? createConsoleHook()))
