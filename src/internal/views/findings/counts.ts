/** Where two sources count the same things: their numbers, each read twice, and once more where they disagree. */

import type * as z from 'zod'
import { betweenSlices } from '../../async/turns.js'
import type { SourceName } from '../../contract/capabilities.js'
import { DeliverySummaryAnswer, DeliveryTenantAnswer } from '../../contract/delivery.js'
import { digest64 } from '../../contract/digest.js'
import type { Present } from '../../contract/families.js'
import { PAGE_MAX } from '../../contract/limits.js'
import { type Awaitable, type InspectionContext, PAGE_OF_ONE, type Page, type PageQuery } from '../../contract/page.js'
import { PendingCallAnswer, RpcSummaryAnswer } from '../../contract/rpc.js'
import type { Entries } from '../reading.js'
import { type Detector, type ScanContext, SUMMARY_PAGE } from './detector.js'
import { finding } from './finding.js'

/** A number that a source keeps, and the entries that it counts. */
interface Pair<T, K> {
  what: string
  requires: Detector['requires']
  source: SourceName
  kept: {
    route: string
    entry: z.ZodType<K>
    read(inspectors: Present, ctx: InspectionContext): Awaitable<unknown>
    /** `null` if not known. */
    count(kept: K): number | null
    /** A value that changes when an entry is added or removed. */
    stamp(kept: K): unknown
  }
  listed: {
    route: string
    entries(inspectors: Present): Entries<T>
    /** `null` if not known. */
    add(entry: T): number | null
    /** What another entry would not have. */
    stamp(entry: T): unknown
  }
}

interface Listed {
  sum: number
  /** A digest of the listed entries. */
  digest: string
}

/**
 * The sum over a whole list; `undefined` if the list is longer than one request may read, or empty: a system without
 * scopes has nothing to count by.
 */
async function sumOf<T, K>({ source, listed }: Pair<T, K>, scan: ScanContext): Promise<Listed | undefined> {
  const budget = scan.budget(source)
  let cursor: string | null = null
  let sum = 0
  let digest = ''
  const seen = new Set<string>()
  while (budget.entries > 0 && budget.pages > 0) {
    const { records, next }: { records: T[]; next: string | null } = await scan.page(
      source,
      listed.entries(scan.inspectors),
      {
        cursor,
        limit: scan.isSummary ? SUMMARY_PAGE : PAGE_MAX,
      },
    )
    for (const record of records) {
      const stamp = JSON.stringify(listed.stamp(record))
      // A list that changes during the walk can show a record twice.
      if (seen.has(stamp)) continue
      seen.add(stamp)
      const more = listed.add(record)
      if (more === null) return undefined
      sum += more
      digest = digest64(`${digest}${stamp}`)
    }
    if (next === null) return scan.cut.has(source) || digest === '' ? undefined : { sum, digest }
    if (scan.isSummary) break
    cursor = next
    await betweenSlices(scan.view.ctx)
  }
  scan.cut.add(source)
  return undefined
}

/** The number that a source keeps; `undefined` if it cannot be read. */
async function keptOf<T, K>({ source, kept }: Pair<T, K>, scan: ScanContext): Promise<K | undefined> {
  const list = async (_page: PageQuery, ctx: InspectionContext) => ({
    items: [await kept.read(scan.inspectors, ctx)],
    next_cursor: null,
    has_more: false,
  })
  const { records } = await scan.page(source, { entry: kept.entry, list }, PAGE_OF_ONE)
  return records[0]
}

/**
 * Reports a disagreement if nothing was added or removed meanwhile. An equal number before and after does not prove
 * that: an entry that is added and removed during one reading is in the list and in neither number.
 */
function compare<T, K>(pair: Pair<T, K>): Detector {
  const { what, requires, source, kept, listed } = pair
  return {
    kinds: ['counts_disagree'],
    requires,
    source,
    async detect(scan) {
      const none = { findings: [], next: null }
      const before = await keptOf(pair, scan)
      // Its list has more pages than a summary reads.
      if (scan.isSummary && before !== undefined && (kept.count(before) ?? 0) > SUMMARY_PAGE) {
        scan.cut.add(source)
        return none
      }
      const list = await sumOf(pair, scan)
      const after = list && (await keptOf(pair, scan))
      if (before === undefined || list === undefined || after === undefined) return none
      const count = kept.count(before)
      const isStill = JSON.stringify(kept.stamp(before)) === JSON.stringify(kept.stamp(after))
      if (count === null || !isStill || count !== kept.count(after) || count === list.sum) return none
      if ((await sumOf(pair, scan))?.digest !== list.digest) return none
      const found = finding('counts_disagree', { what }, null, [
        scan.evidence(source, kept.route, { [what]: count }),
        scan.evidence(source, listed.route, { [what]: list.sum }),
      ])
      return { findings: [found], next: null }
    },
  }
}

export const COMMANDS_COUNTED = compare<DeliveryTenantAnswer, DeliverySummaryAnswer>({
  what: 'tracked_commands',
  requires: ['delivery'],
  source: 'delivery',
  kept: {
    route: '/delivery/summary',
    entry: DeliverySummaryAnswer,
    read: ({ delivery }, ctx) => delivery.summary(ctx),
    count: ({ tracked_commands }) => tracked_commands,
    stamp: ({ oldest_deadline_at }) => oldest_deadline_at,
  },
  listed: {
    route: '/delivery/tenants',
    entries: ({ delivery }) => ({
      entry: DeliveryTenantAnswer,
      list: (page: PageQuery, ctx: InspectionContext): Awaitable<Page<unknown>> => delivery.listTenants(page, ctx),
    }),
    add: ({ reserved_commands }) => reserved_commands,
    stamp: ({ scope_id, reserved_commands, oldest_deadline_at }) => [scope_id, reserved_commands, oldest_deadline_at],
  },
})

export const CALLS_COUNTED = compare<PendingCallAnswer, RpcSummaryAnswer>({
  what: 'pending_calls',
  requires: ['rpc', 'rpc_summary'],
  source: 'rpc',
  kept: {
    route: '/rpc/summary',
    entry: RpcSummaryAnswer,
    read: ({ rpc }, ctx) => rpc.summary?.(ctx),
    count: ({ pending }) => pending,
    stamp: ({ counters, counting_since }) => [counters, counting_since],
  },
  listed: {
    route: '/rpc/pending',
    entries: ({ rpc }) => ({
      entry: PendingCallAnswer,
      list: (page: PageQuery, ctx: InspectionContext): Awaitable<Page<unknown>> => rpc.listPending({}, page, ctx),
    }),
    add: () => 1,
    stamp: ({ correlation_id }) => correlation_id,
  },
})
