/** Tables whose rows expire unless they are reported, as their readers see them. */
import * as z from 'zod'
import { type CountedFields, countBy, type Fold } from '../../internal/contract/observation.js'
import type { Filter, InspectionContext, PageQuery } from '../../internal/contract/page.js'
import { keptMs } from '../../internal/rules/presence.js'
import type { Owner } from '../../internal/rules/records.js'
import type { Store } from '../store/store.js'
import { countAll, readPage } from '../table/pages.js'
import { getRecord, Millis, type TableReader } from '../table/rows.js'
import { listUserIds, observeUsers } from '../table/users.js'

export interface Presence extends Owner {
  status: string
  status_reason?: string | null
  updated_at: string
}

/** A family of records, and its table. */
export interface PresenceTable<R extends Presence, F = CountedFields<R>> extends TableReader<R, Stored<R>> {
  readonly fold: Fold<R>
  readonly counted: F
}
/** A stored row: the record, when it was reported, for how long that holds, and by which call. */
export type Stored<R> = R & { updated_ms: number; ttl_ms: number; sent: string }

/** Defines the table of a family. A record that is not reported is stale after one interval, and leaves after two. */
export const presenceTable = <R extends Presence, F extends CountedFields<R>>(
  name: string,
  id: keyof R & string,
  entry: z.ZodObject & z.ZodType<R>,
  indexes: readonly (keyof R & string)[],
  family: { users: { fold: Fold<NoInfer<R>> }; counted: F },
): PresenceTable<R, F> => ({
  name,
  idOf: (row) => String(row[id]),
  schema: entry.extend({ updated_ms: Millis, ttl_ms: Millis, sent: z.string() }) as never,
  indexes,
  fold: family.users.fold,
  counted: family.counted,
  read({ updated_ms, ttl_ms, sent, ...record }, now) {
    const silence = now - updated_ms
    if (silence >= keptMs(record, ttl_ms)) return undefined
    return (record.status !== 'closed' && silence >= ttl_ms ? { ...record, status: 'stale' } : record) as unknown as R
  },
})

/** The methods that every inspector of such a table has. */
export const presenceInspector = <R extends Presence, F extends CountedFields<R>>(
  store: Store,
  table: PresenceTable<R, F>,
) => ({
  list: (filter: Filter, page: PageQuery, ctx: InspectionContext) => readPage(store, table, filter, page, ctx),
  get: async (id: string, ctx: InspectionContext) => (await getRecord(store, table, id, ctx))?.record ?? null,
  async count(filter: Filter, ctx: InspectionContext) {
    const found = await countAll(store, table, filter, ctx)
    return found ? { ...found.indexed, ...countBy<R, F>(table.counted, found.records) } : {}
  },
  listUserIds: (page: Parameters<typeof listUserIds>[2], ctx: InspectionContext) =>
    listUserIds(store, table.name, page, ctx),
  observeUsers: (userIds: readonly string[], ctx: InspectionContext) =>
    observeUsers(store, table, userIds, ctx, table.fold),
})
