/** The routers of past instants, below `/at/{epoch ms}`. */
import type { Deployment, Inspectors } from '../contract/families.js'
import type { JsonObject } from '../contract/json.js'

/** What a router is built from as of one instant. */
export interface PastComposition {
  /** What answers as of the instant. */
  inspectors: Inspectors
  /** The deployment that was recorded. */
  deployment: Deployment
  /** Entries of `capabilities.extensions`, added to those of the host. */
  extensions: JsonObject
  /** Returns the time of the reading that is shown, in epoch ms: the last one up to the instant. */
  now: () => number
}

/** What was known at past instants. `createFlightRecorder` of `relayscope/incident` records it. */
export interface PastAnswers {
  /**
   * Returns what a router reads as of `instant`, in epoch ms.
   *
   * @throws ProblemError `invalid_path` for an instant that was not recorded; any other error becomes 503.
   */
  at(instant: number): Promise<PastComposition>
}

/** The name under which `extensions.operations` advertises them. */
export const INSTANTS = 'instants'

/** The header of an answer as of a past instant, with the time of the reading that it shows: RFC 3339, UTC, milliseconds. */
export const AS_OF_HEADER = 'x-as-of'

/** Most instants whose routers are kept: more than a person compares. */
const KEPT = 4
/** For so long: what is recorded grows, and its oldest minutes leave. */
const KEPT_MS = 10_000
const INSTANT = /^\/at\/(\d{1,15})(?=\/|$)/

/** Epoch ms of the instant that `pathname` asks for; `null` for the present. */
export function instantIn(pathname: string, prefix: string): number | null {
  const instant = pathname.startsWith(prefix) ? INSTANT.exec(pathname.slice(prefix.length))?.[1] : undefined
  return instant === undefined ? null : Number(instant)
}

/** @returns a function that returns the router of an instant, built by `build` on first use. */
export function createInstants<Router>(
  past: PastAnswers,
  build: (composition: PastComposition, instant: number) => Router,
): (instant: number) => Promise<Router> {
  const routers = new Map<number, { readonly built: Promise<Router>; readonly until: number }>()
  return (instant) => {
    const known = routers.get(instant)
    if (known && performance.now() < known.until) return known.built
    routers.delete(instant)
    const built = (async () => build(await past.at(instant), instant))()
    // What failed is read again by the next request.
    built.catch(() => routers.delete(instant))
    const [oldest] = routers.keys()
    if (routers.size >= KEPT && oldest !== undefined) routers.delete(oldest)
    routers.set(instant, { built, until: performance.now() + KEPT_MS })
    return built
  }
}
