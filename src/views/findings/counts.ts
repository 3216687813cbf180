/** Where two sources count the same things: their numbers, each read twice. */

import type * as z from 'zod'
import type { SourceName } from '../../contract/completeness.js'
import { DeliverySummary, DeliveryTenant } from '../../contract/delivery.js'
import type { Present } from '../../contract/families.js'
import { PAGE_MAX } from '../../contract/limits.js'
import { type Ask, type Awaitable, PAGE_OF_ONE, type Page, type PageQuery } from '../../contract/page.js'
import { PendingCall, RpcSummary } from '../../contract/rpc.js'
import { betweenPages, type Entries } from '../reading.js'
import type { Detector, Looking } from './detector.js'
import { finding } from './finding.js'

/** A number that a source keeps, and the entries that it counts. */
interface Pair<T, K> {
  what: string
  needs: Detector['needs']
  source: SourceName
  kept: {
    route: string
    entry: z.ZodType<K>
    read(inspectors: Present, ask: Ask): Awaitable<unknown>
    count(kept: K): number
  }
  listed: { route: string; entries(inspectors: Present): Entries<T>; add(entry: T): number }
}

/**
 * The sum over a whole list, or `undefined` where it is longer than a request may read, or empty: a system without scopes
 * has none to count by.
 */
async function sumOf<T>({ source, listed }: Pair<T, unknown>, looking: Looking): Promise<number | undefined> {
  const budget = looking.budget(source)
  let cursor: string | null = null
  let sum = 0
  let entries = 0
  while (budget.entries > 0 && budget.pages > 0) {
    const { records, next }: { records: T[]; next: string | null } = await looking.page(
      source,
      listed.entries(looking.inspectors),
      {
        cursor,
        limit: PAGE_MAX,
      },
    )
    for (const record of records) sum += listed.add(record)
    entries += records.length
    if (next === null) return looking.cut.has(source) || entries === 0 ? undefined : sum
    cursor = next
    await betweenPages(budget, looking.view.ask)
  }
  looking.cut.add(source)
  return undefined
}

/** The number that a source keeps; `undefined` where what it says of it cannot be read. */
async function keptOf<K>({ source, kept }: Pair<unknown, K>, looking: Looking): Promise<number | undefined> {
  const list = async (_page: PageQuery, ask: Ask) => ({
    items: [await kept.read(looking.inspectors, ask)],
    next_cursor: null,
    has_more: false,
  })
  const { records } = await looking.page(source, { entry: kept.entry, list }, PAGE_OF_ONE)
  return records[0] && kept.count(records[0])
}

/** Says that the two disagree where the kept number was the same before and after the list was read. */
function compare<T, K>(pair: Pair<T, K>): Detector {
  const { what, needs, source, kept, listed } = pair
  return {
    kinds: ['counts_disagree'],
    needs,
    source,
    async look(looking) {
      const before = await keptOf(pair, looking)
      const sum = await sumOf(pair, looking)
      const after = await keptOf(pair, looking)
      if (before === undefined || sum === undefined || before !== after || before === sum)
        return { findings: [], next: null }
      const found = finding('counts_disagree', { what }, null, [
        looking.evidence(source, kept.route, { [what]: before }),
        looking.evidence(source, listed.route, { [what]: sum }),
      ])
      return { findings: [found], next: null }
    },
  }
}

export const COMMANDS_COUNTED = compare<DeliveryTenant, DeliverySummary>({
  what: 'tracked_commands',
  needs: ['delivery'],
  source: 'delivery',
  kept: {
    route: '/delivery/summary',
    entry: DeliverySummary,
    read: ({ delivery }, ask) => delivery.summary(ask),
    count: ({ tracked_commands }) => tracked_commands,
  },
  listed: {
    route: '/delivery/tenants',
    entries: ({ delivery }) => ({
      entry: DeliveryTenant,
      list: (page: PageQuery, ask: Ask): Awaitable<Page<unknown>> => delivery.listTenants(page, ask),
    }),
    add: ({ reserved_commands }) => reserved_commands,
  },
})

export const CALLS_COUNTED = compare<PendingCall, RpcSummary>({
  what: 'pending_calls',
  needs: ['rpc', 'rpc_summary'],
  source: 'rpc',
  kept: {
    route: '/rpc/summary',
    entry: RpcSummary,
    read: ({ rpc }, ask) => rpc.summary?.(ask),
    count: ({ pending }) => pending,
  },
  listed: {
    route: '/rpc/pending',
    entries: ({ rpc }) => ({
      entry: PendingCall,
      list: (page: PageQuery, ask: Ask): Awaitable<Page<unknown>> => rpc.listPending({}, page, ask),
    }),
    add: () => 1,
  },
})
