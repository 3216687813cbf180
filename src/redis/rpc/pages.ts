/** Reads the lists of pending calls, the oldest first whatever the shards: those within their deadline, and those past it. */
import { PAGE_MAX } from '../../contract/limits.js'
import type { Ask, Page, PageQuery } from '../../contract/page.js'
import type { PendingCall, PendingCallFilter } from '../../contract/rpc.js'
import { strings } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { mergePage } from '../table/merged.js'
import { indexOf, type Run, reachOf, readPage, type Stretch } from '../table/pages.js'
import { readIndex, readRows, type TableReader } from '../table/rows.js'
import { readSpan, SPAN_MAX } from '../table/spans.js'
import { CALLS, OVERDUE_CALLS, type StoredCall } from './format.js'

type CallReader = TableReader<PendingCall, StoredCall>
type Filter = Omit<PendingCallFilter, 'overdue'>

/** Calls past their deadline that are put into order by themselves; where there are more, all calls are walked. */
const FEW = 500

/** A page of the calls under `filter`. @throws Refusal as `mergePage`. */
export async function listPending(
  store: Store,
  { overdue = false, ...filter }: PendingCallFilter,
  page: PageQuery,
  ask: Ask,
): Promise<Page<PendingCall>> {
  const reach = reachOf(filter.user_id, await store.shards(ask))
  // In one shard the order of the index is that of the list.
  if (!overdue && reach[0] === reach[1]) return readPage(store, CALLS, filter, page, ask)
  const now = await store.time(ask)
  const read = async (shard: number, from: string, stretch: Stretch) =>
    (overdue ? await readOverdue(store, shard, filter, from, stretch, now, ask) : null) ??
    readOn(store, overdue ? OVERDUE_CALLS : CALLS, shard, filter, from, stretch, now, ask)
  return mergePage(reach, page, ask, read)
}

const matches = (filter: Filter, call: PendingCall) =>
  Object.entries(filter).every(([name, value]) => value === undefined || call[name as keyof Filter] === value)

/** A stretch of the index of all calls, or of those of one user. */
async function readOn(
  store: Store,
  table: CallReader,
  shard: number,
  filter: Filter,
  from: string,
  { round, wanted, budget }: Stretch,
  now: number,
  ask: Ask,
): Promise<Run<PendingCall>> {
  const index = indexOf(table, filter)
  const isSparse = table === OVERDUE_CALLS || Object.keys(filter).some((name) => name !== index[0])
  const most = isSparse || round > 1 ? (round === 0 ? PAGE_MAX : SPAN_MAX) : wanted
  const { entries, isCut } = await readSpan(
    store,
    table,
    shard,
    index,
    { from, to: '+inf' },
    Math.min(most, budget),
    ask,
  )
  return {
    shard,
    isCut,
    examined: entries.length,
    entries: entries.map(({ score, row, isBad }) => {
      const call = row && table.read(row, now)
      return {
        position: { shard, sequence: score },
        record: call && matches(filter, call) ? call : undefined,
        isBad,
      }
    }),
  }
}

/** All calls of a shard that are past their deadline, by the index of deadlines; `null` where they are not few. */
async function readOverdue(
  store: Store,
  shard: number,
  filter: Filter,
  from: string,
  { budget }: Stretch,
  now: number,
  ask: Ask,
): Promise<Run<PendingCall> | null> {
  const index = filter.user_id === undefined ? ['leaves'] : ['live', filter.user_id]
  const key = store.key(shard, CALLS.name, ...index)
  const most = Math.min(FEW, budget)
  const range = ['ZRANGE', key, '-inf', String(now), 'BYSCORE', 'LIMIT', '0', String(most + 1)]
  const ids = strings(await readIndex(store, range, ask))
  if (ids.length > most) return null
  const found = await readRows(store, OVERDUE_CALLS, shard, ids, ask)
  const isBehind = (sequence: number) =>
    from.startsWith('(') ? sequence > Number(from.slice(1)) : sequence >= Number(from)
  const entries = found.flatMap(({ row, isBad }) => {
    // Of what cannot be read nobody knows its place: it is told of where the list begins.
    const sequence = row?.seq ?? 0
    const call = row && OVERDUE_CALLS.read(row, now)
    const isShown = row ? isBehind(sequence) : isBad && isBehind(1)
    if (!isShown) return []
    return [{ position: { shard, sequence }, record: call && matches(filter, call) ? call : undefined, isBad }]
  })
  entries.sort((a, b) => a.position.sequence - b.position.sequence)
  return { shard, entries, examined: ids.length, isCut: false }
}
