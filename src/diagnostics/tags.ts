/** The entity tags of lists and counts: from the versions of their sources, or else from the content. */
import type { Deadline } from '../async/deadline.js'
import { CAPABILITIES } from '../contract/capabilities.js'
import type { FamilyName, Present } from '../contract/families.js'
import type { Awaitable, InspectionContext, Versioned } from '../contract/page.js'
import type { Encoded } from '../http/encode.js'
import { comparedText, weakTag } from '../http/etag.js'
import type { DiagnosticsRoute } from './route.js'

/** The inspectors that a response of the route is read from. */
export function familiesOf({ needs, alsoReads = [] }: DiagnosticsRoute): FamilyName[] {
  return [...new Set([...needs.map((need) => CAPABILITIES.keyOf(need) as FamilyName), ...alsoReads])]
}

/**
 * The combined version of the sources; `null` if one has none, or not in time. The same version means the same response
 * to the same request.
 *
 * @param isWatched Whether a remote store may be read for it.
 */
export function versionWithin(
  deadline: Deadline,
  families: readonly FamilyName[],
  inspectors: Present,
  ctx: InspectionContext,
  isWatched: boolean,
): Awaitable<string | null> {
  const sources = families.flatMap((name) => (inspectors[name] ? [inspectors[name] as Versioned] : []))
  if (sources.length === 0) return null
  if (!sources.every(({ version, remoteVersion }) => version && (isWatched || !remoteVersion))) return null
  const versions = sources.map((source) => versionOf(source, ctx))
  // Synchronous versions are not awaited: the deadline would create a signal and a timer.
  if (!versions.some(isPromise)) return joined(versions)
  return Promise.resolve(deadline.race(Promise.all(versions))).then(joined, () => null)
}

/**
 * An error means no version: the request itself reports the error, and versions of other inspectors are still awaited.
 */
function versionOf(source: Versioned, ctx: InspectionContext): unknown {
  try {
    return source.version?.(ctx)
  } catch {
    return null
  }
}

const isPromise = (value: unknown) => typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'

const joined = (versions: readonly unknown[]) =>
  versions.every((version) => typeof version === 'string') ? versions.join(' ') : null

/** The tag of a response to `question`, from the version of its sources. */
export const tagOfVersion = (question: string, version: string): string => weakTag(question, version)

/** The tag of a response to `question`, from its content. */
export const tagOfAnswer = (question: string, encoded: Encoded, { compared }: DiagnosticsRoute): string =>
  weakTag(question, comparedText(encoded, compared))
