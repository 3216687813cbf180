/** Detectors of findings: each reads one page of one list and compares it with other sources. */

import type * as z from 'zod'
import { runWithin } from '../../async/deadline.js'
import { betweenSlices } from '../../async/turns.js'
import type { Capability, SourceName } from '../../contract/capabilities.js'
import { type ClientOfUser, ConnectionAnswer } from '../../contract/connections.js'
import type { Present } from '../../contract/families.js'
import { toTimestamp } from '../../contract/ids.js'
import { type Awaitable, type InspectionContext, type Page, type PageQuery, withSignal } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { type Holders, readHolders } from '../clients.js'
import {
  type Budget,
  budgetOf,
  type Entries,
  parseRecords,
  readPage,
  type ViewContext,
  viewForSource,
} from '../reading.js'
import type { Evidence, Finding, FindingKind } from './finding.js'

/** Timeout of one read of one source, so that a source that hangs does not hide the findings of others. */
const SOURCE_MS = 1_000

/** Maximum number of clients per request whose last connect or disconnect is looked up. */
const CHANGES_MAX = 20
/** Maximum number of entries that one such lookup may examine. */
const CHANGE_ENTRIES = 100

/** Maximum number of records of each list that a summary reads, whatever their number. */
export const SUMMARY_PAGE = 200
/** Maximum number of entries of each list that it examines for them. */
const SUMMARY_ENTRIES = 500

/** Thrown when the entries that one request may examine of a source are used up. */
export class BudgetExhausted extends Error {}

/** Thrown instead of an error of a source that was already reported. */
export class SourceFailed extends Error {}

/** The state of one scan that all detectors share: inspectors, the remaining budget of each source, and failures. */
export class ScanContext {
  readonly budgets = new Map<SourceName, Budget>()
  /** Sources that were not read completely. */
  cut = new Set<SourceName>()
  readonly failed = new Map<SourceName, unknown>()
  /** Sources that were read. */
  readonly asked = new Set<SourceName>()

  private readonly changes = new Map<string, Promise<string | null>>()

  /**
   * @param share The part of the bounds of a request that this scan may use.
   * @param isSecond Whether it confirms an earlier scan, and therefore looks up since when findings hold.
   * @param isSummary Whether it reads one page of each list.
   */
  constructor(
    readonly inspectors: Present,
    readonly view: ViewContext,
    private readonly share: number,
    private readonly isSecond = false,
    readonly isSummary = false,
  ) {}

  /** Runs `work` and returns its result, and whether it cut a source. */
  async noteCut<T>(work: () => Promise<T>): Promise<{ result: T; isCut: boolean }> {
    const before = this.cut
    this.cut = new Set()
    try {
      const result = await work()
      return { result, isCut: this.cut.size > 0 }
    } finally {
      this.cut = new Set([...before, ...this.cut])
    }
  }

  budget(source: SourceName): Budget {
    const known = this.budgets.get(source)
    if (known) return known
    const budget = this.whole()
    this.budgets.set(source, budget)
    return budget
  }

  /** Entries of a source that were looked at. */
  examined(source: SourceName): number {
    return this.whole().entries - this.budget(source).entries
  }

  private whole(): Budget {
    const budget = budgetOf(this.view)
    const part = (all: number) => Math.max(1, Math.floor(all * this.share))
    return { ...budget, entries: part(budget.entries), pages: part(budget.pages) }
  }

  /** Reads `source`. @throws SourceFailed, BudgetExhausted. */
  async inspect<T>(source: SourceName, work: (view: ViewContext, budget: Budget) => Promise<T>): Promise<T> {
    const budget = this.budget(source)
    if (budget.entries <= 0 || budget.pages <= 0) throw new BudgetExhausted()
    this.asked.add(source)
    try {
      const view = viewForSource(this.view, source)
      return await runWithin((signal) => work({ ...view, ctx: withSignal(view.ctx, signal) }, budget), {
        ms: SOURCE_MS,
        late: () => new Refusal('unavailable'),
        signal: view.ctx.signal,
      })
    } catch (error) {
      // A cursor of a list that is not its own is the client's.
      if (error instanceof BudgetExhausted || (error instanceof Refusal && error.code === 'invalid_cursor')) throw error
      this.view.onError(source, error)
      this.failed.set(source, error)
      throw new SourceFailed()
    }
  }

  /** One page of a list, with the records that can be read. @throws SourceFailed, Spent. */
  page<T>(
    source: SourceName,
    { entry, list }: Entries<T>,
    { cursor, limit }: PageQuery,
  ): Promise<{ records: T[]; next: string | null }> {
    return this.inspect(source, async (view, budget) => {
      const own = { ...budget }
      if (this.isSummary) own.entries = Math.min(own.entries, SUMMARY_ENTRIES)
      const before = own.entries
      const page = await readPage(list, cursor, limit, own, view)
      budget.entries -= before - own.entries
      budget.pages -= 1
      const records = parseRecords(source, entry, page, view)
      if ((page.omitted ?? 0) > 0 || records.length < page.items.length) this.cut.add(source)
      return { records, next: page.has_more ? page.next_cursor : null }
    })
  }

  /**
   * Returns the first page with a record that satisfies `meant`, or the last page: a page without one may have a next
   * page, so an absent record is not proof. @throws SourceFailed, and BudgetExhausted if it is unknown within the
   * bounds.
   */
  async pageWith<T>(
    source: SourceName,
    entries: Entries<T>,
    limit: number,
    meant: (record: T) => boolean = () => true,
  ) {
    let cursor: string | null = null
    while (true) {
      const page: { records: T[]; next: string | null } = await this.page(source, entries, { cursor, limit })
      if (page.next === null || page.records.some(meant)) return page
      cursor = page.next
      await betweenSlices(this.view.ctx)
    }
  }

  /** Who holds the clients of `records` now. @throws SourceFailed, Spent. */
  holders(records: readonly ClientOfUser[]): Promise<Holders> {
    return this.inspect('registry', (view, budget) =>
      readHolders(this.inspectors.registry, records, budget, view, () => new BudgetExhausted()),
    )
  }

  /**
   * When a client was connected last if `holder` holds it, or when it was disconnected if `holder` is `null`; `null` if
   * unknown. It is looked up only for some clients, and only in a second scan.
   */
  async changedAt(client: ClientOfUser, holder: string | null): Promise<string | null> {
    if (!this.isSecond || !this.inspectors.registry) return null
    const key = JSON.stringify([client.user_id, client.client_id, holder])
    const known = this.changes.get(key)
    if (known || this.changes.size >= CHANGES_MAX) return known ?? null
    const read = this.inspect('registry', (view, budget) => readChange(this.inspectors, client, holder, budget, view))
    const change = read.catch((error) => {
      if (!(error instanceof BudgetExhausted || error instanceof SourceFailed)) throw error
      return null
    })
    this.changes.set(key, change)
    return change
  }

  evidence(source: SourceName, route: string, fields: Evidence['fields']): Evidence {
    return { source, route, fields, observed_at: toTimestamp(this.view.now()) }
  }
}

/** Reads when the connection that decides who holds a client began or ended, within a small part of the budget. */
async function readChange(
  { registry }: Present,
  { user_id, client_id }: ClientOfUser,
  holder: string | null,
  budget: Budget,
  view: ViewContext,
): Promise<string | null> {
  const status = holder === null ? 'disconnected' : 'connected'
  const filter = { user_id, client_id, status } as const
  const list = (page: PageQuery, ctx: InspectionContext) =>
    registry.listConnections(filter, { ...page, order: 'newest' }, ctx)
  const own = { entries: Math.min(CHANGE_ENTRIES, budget.entries), pages: 1 }
  const before = own.entries
  const page = await readPage(list, null, 1, own, view)
  budget.entries -= before - own.entries
  const [found] = parseRecords('registry', ConnectionAnswer, page, view)
  if (found?.user_id !== user_id || found.client_id !== client_id || found.status !== status) return null
  return holder === null ? found.disconnected_at : found.instance_id === holder ? found.connected_at : null
}

/** The result of scanning one page of a list. */
export interface ScannedPage {
  findings: Finding[]
  /** The cursor of the next page; `null` for the last one. */
  next: string | null
}

/** Looks for findings of some kinds along one list. */
export interface Detector {
  kinds: readonly FindingKind[]
  /** The capabilities that the detector needs, all of them. */
  requires: readonly Capability[]
  /** Whose list it goes along. */
  source: SourceName
  detect(scan: ScanContext, page: PageQuery): Promise<ScannedPage>
}

/** Creates a detector that reads `list` page by page and returns the findings of each page. */
export function createListDetector<T>(
  definition: Pick<Detector, 'kinds' | 'requires' | 'source'> & {
    entry: z.ZodType<T>
    list(inspectors: Present, page: PageQuery, ctx: InspectionContext): Awaitable<Page<unknown> | undefined>
    find(records: T[], scan: ScanContext): Awaitable<Finding[]>
  },
): Detector {
  const { kinds, requires, source, entry, list, find } = definition
  return {
    kinds,
    requires,
    source,
    async detect(scan, page) {
      // The method exists: the capabilities of a detector are checked first.
      const listed = (query: PageQuery, ctx: InspectionContext) =>
        list(scan.inspectors, query, ctx) as Awaitable<Page<unknown>>
      const { records, next } = await scan.page(source, { entry, list: listed }, page)
      return { findings: records.length === 0 ? [] : await find(records, scan), next }
    },
  }
}
