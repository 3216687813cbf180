/** What a family of metrics is, and how the families that one question answers are read off its answer. */

import { BadRecord } from '../contract/bad-record.js'
import type { SourceName } from '../contract/completeness.js'
import { type CountedFields, countBy } from '../contract/counts.js'
import { FAMILIES, type FamilyName, type Inspectors, type Present } from '../contract/families.js'
import type { Awaitable, Indexed } from '../contract/page.js'
import { budgetOf, type ViewContext, type WalkedEntries, walkEntries } from '../views/reading.js'

/** One number, told apart by its labels. */
export interface MetricSample {
  /** By name, in one order for all samples of the family. Never a user, a client or a command. */
  readonly labels: Readonly<Record<string, string>>
  /** Finite. */
  readonly value: number
}

/** What does not change of a family from scrape to scrape. */
export interface MetricDescription {
  /** With its unit; without the `_total` of a counter and the `_info` of an info, which the text formats add. */
  readonly name: string
  /** `info`: always 1, and says what it says by its labels. */
  readonly type: 'gauge' | 'counter' | 'info'
  readonly unit: 'seconds' | null
  readonly help: string
  /** Names of the labels. */
  readonly labels: readonly string[]
  /** Which source it is read from, by its capability; `null` for what the scrape itself says. */
  readonly source: SourceName | null
  /** The calls of that inspector, as `delivery.summary`; `null` where there is none. */
  readonly asked: string | null
}

/** A family as it was read. Without samples: nobody knows, or there is nothing of the kind; never 0 for either. */
export interface MetricFamily extends MetricDescription {
  readonly samples: readonly MetricSample[]
}

/** What a scrape asks with. */
export interface Scrape {
  readonly view: ViewContext
  /** Scopes that may be told of by name. */
  readonly scopes: readonly string[]
}

/** What a question came to. `undefined` as a whole: the inspector does not offer it. */
interface Answered<Answer> {
  readonly value: Answer
  /** Whether the source was read to its end. */
  readonly complete: boolean
}

interface Question<Name extends FamilyName, Answer> {
  readonly of: Name
  /** The methods that it calls. */
  readonly calls: string
  /** @throws whatever the inspector throws, and for an answer that is none. */
  read(inspector: Present[Name], scrape: Scrape): Promise<Answered<Answer> | undefined>
}

/** How a family is read off an answer: one number, `null` for unknown, or a sample for each set of labels. */
interface MetricDefinition<Answer> {
  readonly name: string
  readonly type?: 'counter'
  readonly unit?: 'seconds'
  readonly help: string
  readonly labels?: readonly string[]
  read(answer: Answer): number | null | undefined | readonly MetricSample[]
}

/** What one question was worth. */
export interface Outcome {
  readonly complete: boolean
  /** By the names of their families. */
  readonly samples: ReadonlyMap<string, readonly MetricSample[]>
}

/** One question and the families that it answers. */
export interface Group {
  readonly of: FamilyName
  readonly families: readonly MetricDescription[]
  /** `undefined`: there is no such inspector, or it does not offer the question. */
  read(inspectors: Inspectors, scrape: Scrape): Promise<Outcome | undefined>
}

const keyOf = ({ labels }: MetricSample) => JSON.stringify(Object.values(labels))

/**
 * What may be shown of `read`. A number that is none says nothing; a second sample of the same labels would make the whole
 * scrape invalid.
 */
function showable(read: number | null | undefined | readonly MetricSample[]): MetricSample[] {
  const samples = typeof read === 'object' && read !== null ? read : [{ labels: {}, value: read ?? Number.NaN }]
  const seen = new Map<string, MetricSample>()
  for (const sample of samples) if (Number.isFinite(sample.value)) seen.set(keyOf(sample), sample)
  return [...seen.values()]
}

/** The families that `question` answers. */
export function defineMetrics<Name extends FamilyName, Answer>(
  question: Question<Name, Answer>,
  // What is asked says what is answered.
  told: readonly MetricDefinition<NoInfer<Answer>>[],
): Group {
  const { of, calls } = question
  return {
    of,
    families: told.map(({ name, type, unit = null, help, labels = [] }): MetricDescription => {
      return { name, type: type ?? 'gauge', unit, help, labels, source: FAMILIES[of].capability, asked: calls }
    }),
    async read(inspectors, scrape) {
      const inspector = inspectors[of] as Present[Name] | undefined
      const answered = inspector && (await question.read(inspector, scrape))
      if (answered === undefined) return undefined
      const { value, complete } = answered
      return { complete, samples: new Map(told.map(({ name, read }) => [name, showable(read(value))])) }
    },
  }
}

/** A sample for each of `counts`, by the label `name`. */
export const samplesBy = (name: string, counts: Readonly<Record<string, number>>): MetricSample[] =>
  Object.entries(counts).map(([word, value]) => ({ labels: { [name]: word }, value }))

/** Milliseconds as seconds; what is not known stays so. */
export const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1_000)

/** An instant as seconds since 1970. */
export const instant = (at: string | null): number | null => (at === null ? null : Date.parse(at) / 1_000)

// What a scrape makes of a list within its bound: entries to count, for sources that keep no number of what they hold.

/**
 * The entries of a list within the bound. `complete`: it was read to its end, and nothing of it was left out.
 *
 * @throws what the list throws, after some of its pages too: of half a list that failed nobody knows what it is half of.
 */
export async function readAllEntries<T>(source: SourceName, from: WalkedEntries<T>, { view }: Scrape, most?: number) {
  const budget = budgetOf(view)
  budget.entries = Math.min(budget.entries, most ?? budget.entries)
  // A record that was left out is told of here; what is thrown, by whoever catches it.
  const onError = (named: SourceName, error: unknown) => void (error instanceof BadRecord && view.onError(named, error))
  const add = (entries: T[], items: T[]) => void entries.push(...items)
  const reading = await walkEntries<T, T[]>(source, from, { ...view, onError }, [], add, budget)
  if ('error' in reading || reading.value === undefined) throw reading.error
  return { value: reading.value, complete: !reading.truncated }
}

/** `readAllEntries`, with how many entries a sample has; `null` where they are all. */
export async function readSample<T>(source: SourceName, from: WalkedEntries<T>, scrape: Scrape) {
  const { value: entries, complete } = await readAllEntries(source, from, scrape)
  return { value: { entries, sampleSize: complete ? null : entries.length }, complete }
}

/** Counts that a source keeps, or else those of its entries within the bound. */
export async function counted<Entry, F extends CountedFields<Entry>, Exact>(
  source: SourceName,
  fields: F,
  from: WalkedEntries<Entry> & {
    exact(): Awaitable<(Indexed & { total: number }) | null | undefined>
    /** Reads what a source says that it keeps. */
    counts: { parse(value: unknown): Exact }
  },
  scrape: Scrape,
) {
  const kept = await from.exact()
  if (kept !== null && kept !== undefined)
    return {
      // A store may count by reading, and then no further than it may look.
      value: { counts: from.counts.parse(kept), sampleSize: kept.truncated === true ? kept.total : null },
      complete: kept.truncated !== true,
    }
  const { value, complete } = await readSample(source, from, scrape)
  const counts = from.counts.parse(countBy<Entry, F>(fields, value.entries))
  return { value: { counts, sampleSize: value.sampleSize }, complete }
}
