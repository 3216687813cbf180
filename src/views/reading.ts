/** How a view asks one source: in bounded pages, under the deadline, and with an honest account of how far it came. */
import type { Completeness, SourceName } from '../contract/completeness.js'
import { PAGE_MAX, SAMPLE_PAGES_MAX } from '../contract/limits.js'
import {
  type Ask,
  type Awaitable,
  type Examined,
  examinable,
  examinedMax,
  type Page,
  type PageQuery,
  withRemaining,
} from '../contract/page.js'
import { Refusal } from '../refusal.js'

/** What a view works with: what its inspectors are told, the bound per source, the clock, and where failures go. */
export interface ViewAsk {
  /** What every call of an inspector gets, and all that it gets: the signal, and the bounds of the request. */
  readonly ask: Ask
  now(): number
  report(source: SourceName, error: unknown): void
}

/** How far one source was read. */
export interface Reading {
  source: SourceName
  /** Entries that the source looked at, those of an index too; 0 where it only read numbers that it keeps. */
  examined: number
  /** Something in range was left out: a bound, a failure, a deadline. */
  truncated: boolean
  /** Nothing at all came of it. */
  failed: boolean
  /** What ended it early, if not a bound. */
  error?: unknown
}

/** A reading that came to nothing. */
export function failed(source: SourceName, error: unknown): Reading {
  return { source, examined: 0, truncated: true, failed: true, error }
}

// Sources that answer at once would keep the event loop, and every other request with it, for as long as a walk lasts.
const TURN_MS = 10

/** What is left of what one request may take from one source. */
export interface Budget {
  entries: number
  pages: number
  /** When the event loop is to have its turn, by `performance.now()`. */
  turnAt: number
}

export function budgetOf(view: ViewAsk): Budget {
  return { entries: examinable(view.ask), pages: SAMPLE_PAGES_MAX, turnAt: performance.now() + TURN_MS }
}

/** Between two pages: lets the event loop turn when it is time to. @throws the signal's reason once it has aborted. */
export async function betweenPages(budget: Budget, ask: Ask): Promise<void> {
  if (performance.now() >= budget.turnAt) {
    await new Promise((resolve) => setTimeout(resolve, 0))
    budget.turnAt = performance.now() + TURN_MS
  }
  ask.signal.throwIfAborted()
}

/** `work`, or a rejection with the signal's reason as soon as it aborts. */
export function orAbort<T>(work: Awaitable<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', stop))
  })
}

type List<T> = (page: PageQuery, ask: Ask) => Awaitable<Page<T>>

/** Entries that a source looked at: what it says, and never less than the `shown` that it answered. */
export function examinedOf(answer: Examined, shown: number): number {
  const { examined } = answer
  return Number.isSafeInteger(examined) && (examined as number) > shown ? (examined as number) : shown
}

/** Takes one page of `list` out of the budget. @throws what the list throws, and TypeError for what is not a page. */
export async function readPage<T>(
  list: List<T>,
  cursor: string | null,
  limit: number,
  budget: Budget,
  { ask }: ViewAsk,
): Promise<Page<T>> {
  const { signal } = ask
  const query = { limit: Math.min(limit, budget.entries), cursor }
  const whole = budget.entries >= examinedMax(ask)
  const page = await orAbort(list(query, whole ? ask : withRemaining(ask, budget.entries)), signal)
  checkPage(page, query.limit)
  budget.entries -= examinedOf(page, page.items.length)
  budget.pages -= 1
  return page
}

/**
 * Walks `list` from its start and hands each page to `visit`, until the list or the budget ends.
 * Failing before the first page is a failed reading, failing later a truncated one (its error is reported).
 */
export async function walk<T>(
  source: SourceName,
  list: List<T>,
  view: ViewAsk,
  visit: (items: T[]) => void,
  budget: Budget = budgetOf(view),
): Promise<Reading> {
  const before = budget.entries
  const reading = (truncated: boolean): Reading => ({
    source,
    examined: before - budget.entries,
    truncated,
    failed: false,
  })
  let cursor: string | null = null
  let omitted = false
  const seen = new Set<string>()
  try {
    while (budget.entries > 0 && budget.pages > 0) {
      const page: Page<T> = await readPage(list, cursor, PAGE_MAX, budget, view)
      visit(page.items)
      omitted ||= (page.omitted ?? 0) > 0
      if (!page.has_more) return reading(omitted)
      cursor = page.next_cursor as string
      if (seen.has(cursor)) break
      seen.add(cursor)
      await betweenPages(budget, view.ask)
    }
    return reading(true)
  } catch (error) {
    view.report(source, error)
    return seen.size > 0 ? { ...reading(true), error } : failed(source, error)
  }
}

/** @throws TypeError for a page that breaks the promises of `Page`. */
export function checkPage(page: Page<unknown>, limit: number): void {
  if (page.items.length > limit) throw new TypeError('a page holds more items than its limit')
  if (page.has_more && typeof page.next_cursor !== 'string') throw new TypeError('a page has more, but no token')
}

/** Asks `source` once. What it throws is reported and becomes a failed reading. */
export async function readOnce<T>(
  source: SourceName,
  work: () => Awaitable<T>,
  view: ViewAsk,
): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await orAbort(work(), view.ask.signal) }
  } catch (error) {
    view.report(source, error)
    return { error }
  }
}

/**
 * The completeness of an answer made of `readings`.
 *
 * @throws the error of the one that says most when every source failed: running out of time before being unavailable
 * before anything else.
 */
export function completenessOf(readings: readonly Reading[], view: ViewAsk): Completeness {
  // Whoever comes to this point late answers with what there is, and has looked at the deadline that has passed.
  const { signal } = view.ask
  const failed = readings.filter((reading) => reading.failed)
  if (failed.length > 0 && failed.length === readings.length) {
    const errors = failed.map((reading) => reading.error)
    const unavailable = (error: unknown) => error instanceof Refusal && error.code === 'unavailable'
    throw errors.find((error) => error === signal.reason) ?? errors.find(unavailable) ?? errors[0]
  }
  const truncated = readings.filter((reading) => reading.truncated).map((reading) => reading.source)
  return {
    complete: truncated.length === 0,
    truncated_sources: [...new Set(truncated)],
    examined: Object.fromEntries(readings.map((reading) => [reading.source, reading.examined])),
    limits: Object.fromEntries(readings.map((reading) => [reading.source, examinedMax(view.ask)])),
  }
}
