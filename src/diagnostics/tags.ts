/** The entity tags of lists and counts: what their sources say of their own changes, or else what the answer says. */
import type { Deadline } from '../async/deadline.js'
import { CAPABILITIES } from '../contract/capabilities.js'
import type { FamilyName, Present } from '../contract/families.js'
import type { Ask, Awaitable, Versioned } from '../contract/page.js'
import { type Comparable, comparedOf, weakTag } from '../http/etag.js'
import type { PreparedRoute } from '../http/read-route.js'
import type { DiagnosticsRoute } from './route.js'

/** The inspectors that an answer of the route is made of. */
export function familiesOf({ needs, alsoReads = [] }: DiagnosticsRoute): FamilyName[] {
  return [...new Set([...needs.map((need) => CAPABILITIES.keyOf(need) as FamilyName), ...alsoReads])]
}

/**
 * What the sources of an answer say of themselves together; `null` where one of them does not say, or not in time. Equal
 * texts are equal answers to the same question.
 */
export function versionWithin(
  deadline: Deadline,
  families: readonly FamilyName[],
  inspectors: Present,
  ask: Ask,
): Awaitable<string | null> {
  const sources = families.flatMap((name) => (inspectors[name] ? [inspectors[name] as Versioned] : []))
  if (!sources.every(({ version }) => version)) return null
  try {
    const versions = sources.map((source) => source.version?.(ask))
    // What is at hand is not waited for: the deadline would make a signal and a timer for it.
    if (!versions.some(isPromise)) return joined(versions)
    return Promise.resolve(deadline.race(Promise.all(versions))).then(joined, () => null)
  } catch {
    // The question itself will say what is wrong.
    return null
  }
}

const isPromise = (value: unknown) => typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'

const joined = (versions: readonly unknown[]) =>
  versions.every((version) => typeof version === 'string') ? versions.join(' ') : null

/** The tag of an answer to `question`, by its version or by what it says. */
export function tagOf(question: string, version: string | null, text: string, compared: Compared): string {
  return weakTag(`${question}\n${version ?? comparedText(text, compared.route)}`)
}

/** What of an answer is compared. Where all of it is, that is the text: taking it apart costs more than the answer. */
function comparedText(text: string, { compared, response }: Compared['route']): string {
  const { shape = {} } = response as { shape?: object }
  if (!compared && !('completeness' in shape) && !('observed_at' in shape)) return text
  return JSON.stringify(comparedOf(JSON.parse(text) as Comparable, compared as never))
}

type Compared = Pick<PreparedRoute<never, never>, 'route'>
