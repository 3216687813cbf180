/** Definitions of metric families, and how they are read from an inspector's result. */

import type * as z from 'zod'
import { readSummary } from '../internal/contract/answer.js'
import { BadRecord } from '../internal/contract/bad-record.js'
import type { SourceName } from '../internal/contract/capabilities.js'
import { FAMILIES, type FamilyName, type Inspectors, type Present } from '../internal/contract/families.js'
import { type CountedFields, countBy } from '../internal/contract/observation.js'
import type { Awaitable, Indexed } from '../internal/contract/page.js'
import { budgetOf, type ViewContext, type WalkedEntries, walkEntries } from '../internal/views/reading.js'

/** One number with its labels. */
export interface MetricSample {
  /** By name, in one order for all samples of the family. Never a user, a client or a command. */
  readonly labels: Readonly<Record<string, string>>
  /** Finite. */
  readonly value: number
  /** Which number of a histogram it is: a bucket, with its upper bound in the label `le`, the sum, or the count. */
  readonly part?: 'bucket' | 'sum' | 'count'
}

/** The constant part of a metric family. */
export interface MetricDescription {
  /** With its unit; without the `_total` of a counter and the `_info` of an info, which the text formats add. */
  readonly name: string
  /** `info`: always 1; the information is in its labels. */
  readonly type: 'gauge' | 'counter' | 'histogram' | 'info'
  /** Unit of the values; `null` for a count or a state. */
  readonly unit: 'seconds' | null
  /** Help text. */
  readonly help: string
  /** Names of the labels. */
  readonly labels: readonly string[]
  /** The source, by capability; `null` for metrics of the scrape itself. */
  readonly source: SourceName | null
  /** The inspector method that is called, e.g. `delivery.summary`; `null` for none. */
  readonly asked: string | null
}

/** A metric family with its samples. No samples: unknown or nothing to report; never 0 for either. */
export interface MetricFamily extends MetricDescription {
  /** Samples of this scrape. */
  readonly samples: readonly MetricSample[]
}

/** The context of one scrape. */
export interface Scrape {
  readonly view: ViewContext
  /** Scopes that may appear as labels. */
  readonly scopes: readonly string[]
}

/** The result of one read. `undefined`: the inspector does not support it. */
interface Answered<Answer> {
  readonly value: Answer
  /** Whether the source was read to its end. */
  readonly complete: boolean
}

interface Question<Name extends FamilyName, Answer> {
  readonly of: Name
  /** The methods that it calls. */
  readonly calls: string
  /** @throws errors of the inspector, and for an invalid result. */
  read(inspector: Present[Name], scrape: Scrape): Promise<Answered<Answer> | undefined>
}

/** How a family is derived from a result: one number, `null` for unknown, or a sample per label set. */
interface MetricDefinition<Answer> {
  readonly name: string
  readonly type?: 'counter' | 'histogram'
  readonly unit?: 'seconds'
  readonly help: string
  readonly labels?: readonly string[]
  read(answer: Answer): number | null | undefined | readonly MetricSample[]
}

/** The samples from one read. */
export interface Outcome {
  readonly complete: boolean
  /** By the names of their families. */
  readonly samples: ReadonlyMap<string, readonly MetricSample[]>
}

/** One read and the families derived from it. */
export interface Group {
  readonly of: FamilyName
  readonly families: readonly MetricDescription[]
  /** `undefined`: the inspector is missing or does not support the read. */
  read(inspectors: Inspectors, scrape: Scrape): Promise<Outcome | undefined>
}

const keyOf = ({ labels, part }: MetricSample) => JSON.stringify([part ?? '', ...Object.values(labels)])

/**
 * The valid samples of `read`. Invalid numbers are dropped; a duplicate label set would invalidate the whole scrape.
 */
function showable(read: number | null | undefined | readonly MetricSample[]): MetricSample[] {
  const samples = typeof read === 'object' && read !== null ? read : [{ labels: {}, value: read ?? Number.NaN }]
  const seen = new Map<string, MetricSample>()
  for (const sample of samples) if (Number.isFinite(sample.value)) seen.set(keyOf(sample), sample)
  return [...seen.values()]
}

/** Defines the families derived from one read. */
export function defineMetrics<Name extends FamilyName, Answer>(
  question: Question<Name, Answer>,
  // The type of the result is inferred from the read.
  definitions: readonly MetricDefinition<NoInfer<Answer>>[],
): Group {
  const { of, calls } = question
  return {
    of,
    families: definitions.map(({ name, type, unit = null, help, labels = [] }): MetricDescription => {
      return { name, type: type ?? 'gauge', unit, help, labels, source: FAMILIES[of].capability, asked: calls }
    }),
    async read(inspectors, scrape) {
      const inspector = inspectors[of] as Present[Name] | undefined
      const answered = inspector && (await question.read(inspector, scrape))
      if (answered === undefined) return undefined
      const { value, complete } = answered
      return { complete, samples: new Map(definitions.map(({ name, read }) => [name, showable(read(value))])) }
    },
  }
}

/** A sample for each known one of `counts`, by the label `name`. */
export const samplesBy = (
  name: string,
  counts: Readonly<Record<string, number | null>> | null | undefined,
): MetricSample[] =>
  Object.entries(counts ?? {}).flatMap(([word, value]) => (value === null ? [] : [{ labels: { [name]: word }, value }]))

/** A bound of a bucket as OpenMetrics writes numbers. */
const boundOf = (ms: number) => (ms % 1_000 === 0 ? `${ms / 1_000}.0` : String(ms / 1_000))

/** The samples of a histogram of durations in ms, in seconds; none for one without a duration. */
export function histogramSamples(
  labels: Readonly<Record<string, string>>,
  boundsMs: readonly number[],
  counts: readonly number[],
  sumMs: number,
): MetricSample[] {
  let total = 0
  const buckets = counts.map((count, i): MetricSample => {
    total += count
    const bound = boundsMs[i]
    return { part: 'bucket', labels: { ...labels, le: bound === undefined ? '+Inf' : boundOf(bound) }, value: total }
  })
  if (total === 0) return []
  return [...buckets, { part: 'count', labels, value: total }, { part: 'sum', labels, value: sumMs / 1_000 }]
}

/** Converts milliseconds to seconds; unknown stays `null`. */
export const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1_000)

/** An instant as seconds since 1970. */
export const instant = (at: string | null): number | null => (at === null ? null : Date.parse(at) / 1_000)

/** Reads the summary of a source: complete unless some of its fields cannot be shown. */
export function summaryOf<S extends z.ZodObject>(source: SourceName, schema: S, given: unknown, { view }: Scrape) {
  const value = readSummary(schema, given, (error) => view.onError(source, error))
  return { value, complete: value.omitted === undefined }
}

// Reads a list within its bound, for sources without counters.

/**
 * Reads the entries of a list within the bound. `complete`: the whole list was read and no entry was skipped.
 *
 * @throws errors of the list, even after some pages: a partially failed list is of unknown size.
 */
export async function readAllEntries<T>(source: SourceName, from: WalkedEntries<T>, { view }: Scrape, most?: number) {
  const budget = budgetOf(view)
  budget.entries = Math.min(budget.entries, most ?? budget.entries)
  // Skipped records are reported here; errors by the caller that catches them.
  const onError = (named: SourceName, error: unknown) => void (error instanceof BadRecord && view.onError(named, error))
  const add = (entries: T[], items: T[]) => void entries.push(...items)
  const reading = await walkEntries<T, T[]>(source, from, { ...view, onError }, [], add, budget)
  if ('error' in reading || reading.value === undefined) throw reading.error
  return { value: reading.value, complete: !reading.truncated }
}

/** Like `readAllEntries`, with the number of entries in a sample; `null` if complete. */
export async function readSample<T>(source: SourceName, from: WalkedEntries<T>, scrape: Scrape) {
  const { value: entries, complete } = await readAllEntries(source, from, scrape)
  return { value: { entries, sampleSize: complete ? null : entries.length }, complete }
}

/** Counts that a source keeps, or else those of its entries within the bound. */
export async function counted<Entry, F extends CountedFields<Entry>, Exact>(
  source: SourceName,
  fields: F,
  from: WalkedEntries<Entry> & {
    exact(): Awaitable<(Indexed & { total?: number }) | null | undefined>
    /** Validates the counters of a source. */
    counts: { parse(value: unknown): Exact }
  },
  scrape: Scrape,
) {
  const kept = await from.exact()
  if (kept !== null && kept !== undefined)
    return {
      // A store may count by reading, and then no further than it may look.
      value: { counts: from.counts.parse(kept), sampleSize: kept.truncated === true ? (kept.total ?? null) : null },
      complete: kept.truncated !== true,
    }
  const { value, complete } = await readSample(source, from, scrape)
  const counts = from.counts.parse(countBy<Entry, F>(fields, value.entries))
  return { value: { counts, sampleSize: value.sampleSize }, complete }
}
