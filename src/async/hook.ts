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
