/** One reading of all sources: each asked at once, within one bound, and told of as far as it has come. */

import { raceAbort } from '../async/abort.js'
import { DeadlinePassed } from '../async/deadline.js'
import { limitTime } from '../async/time-limit.js'
import type { SourceName } from '../contract/completeness.js'
import {
  FAMILIES,
  type FamilyName,
  familyEntries,
  type Inspectors,
  PROBES,
  type Present,
} from '../contract/families.js'
import { shown } from '../contract/options.js'
import type { Ask } from '../contract/page.js'
import type { MetricSample, Outcome, Scrape } from './family.js'
import { GROUPS } from './table.js'

/** What one source came to, once it has. */
interface SourceState {
  readonly source: SourceName
  up: boolean
  complete: boolean
  /** `null` while it is under way. */
  seconds: number | null
}

/** A reading, under way or over. */
export interface Reading {
  /** Resolves when every source has answered, failed, or run out of time; never rejects. */
  readonly done: Promise<void>
  /** The sources of this deployment, as they stand. */
  readonly sources: readonly Readonly<SourceState>[]
  /** What was read up to now, by the names of the families. */
  readonly samples: ReadonlyMap<string, readonly MetricSample[]>
}

interface ReadingOptions {
  inspectors: Inspectors
  scopes: readonly string[]
  /** Entries that each source may look at. */
  examined: number
  ms: number
  now(): number
  onError(error: unknown, source: SourceName): void
}

// Errors of one reading that a host is told of one by one; a list may have a thousand bad records.
const ERRORS_TOLD = 100

/** Of a source that keeps no number: whether it answers at all. */
async function probe<Name extends FamilyName>(name: Name, inspector: Present[Name], ask: Ask): Promise<Outcome> {
  const answer = await PROBES[name](inspector, ask)
  if (answer === null || typeof answer !== 'object') throw new TypeError(`${name} answered ${shown(answer)}`)
  return { complete: true, samples: new Map() }
}

/** Begins to ask all sources. */
export function beginReading({ inspectors, scopes, examined, ms, now, onError }: ReadingOptions): Reading {
  const { signal, clear } = limitTime({ ms, late: () => new DeadlinePassed() })
  const samples = new Map<string, readonly MetricSample[]>()
  let told = 0
  const tell = (source: SourceName, error: unknown) => void (told++ < ERRORS_TOLD && onError(error, source))

  /** `undefined`: not offered; `null`: nobody knows. What was read is told at once, whatever becomes of the others. */
  async function outcomeOf(source: SourceName, ask: () => Promise<Outcome | undefined>) {
    try {
      const outcome = await raceAbort(ask(), signal)
      for (const [name, read] of outcome?.samples ?? []) samples.set(name, read)
      return outcome
    } catch (error) {
      tell(source, error)
      return null
    }
  }

  async function askSource<Name extends FamilyName>(name: Name, inspector: Present[Name], state: SourceState) {
    const startedAt = performance.now()
    const { source } = state
    const ask: Ask = { signal, limits: { examined }, onError: (error) => tell(source, error) }
    const scrape: Scrape = { view: { ask, now, onError: tell }, scopes }
    const groups = GROUPS.filter(({ of }) => of === name)
    const asked = await Promise.all(groups.map((group) => outcomeOf(source, () => group.ask(inspectors, scrape))))
    const outcomes = asked.filter((outcome) => outcome !== undefined)
    // An inspector that offers none of it is asked whether it is there.
    if (outcomes.length === 0) outcomes.push((await outcomeOf(source, () => probe(name, inspector, ask))) ?? null)
    state.up = outcomes.every((outcome) => outcome !== null)
    state.complete = outcomes.every((outcome) => outcome?.complete)
    state.seconds = (performance.now() - startedAt) / 1_000
  }

  const present = familyEntries().flatMap(([name]) => {
    const inspector = inspectors[name]
    const state: SourceState = { source: FAMILIES[name].capability, up: false, complete: false, seconds: null }
    return inspector ? [{ state, asked: () => askSource(name, inspector, state) }] : []
  })
  const done = Promise.all(present.map(({ asked }) => asked())).then(clear)
  return { done, sources: present.map(({ state }) => state), samples }
}
