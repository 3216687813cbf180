/**
 * Records that expire unless they are reported: stale after one interval, deleted after another. For contexts and
 * windows.
 */

import { createClock } from '../../internal/async/timer.js'
import { isLost, LOST_MAX, LOST_MS, type PresenceOptions } from '../../internal/contract/contexts.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import type { UserIds, UserPart, UserParts } from '../../internal/contract/observation.js'
import type { Read } from '../../internal/contract/options.js'
import type { Examined, IdPageQuery, InspectionContext, Page, PageQuery } from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
import { keptMs } from '../../internal/rules/presence.js'
import type { Owner, Step } from '../../internal/rules/records.js'
import { ExpiryQueue } from './expiry-queue.js'
import { createTable, type Entry, type TableOptions } from './table.js'
import { observeEach, observeKnown } from './users.js'

interface Presence {
  user_id: string
  client_id: string
  status: string
  status_reason?: string | null
}

/** The index of records that are lost, by user. */
export const LOST_OF = 'lost_of'

interface PresenceTableOptions<R> extends TableOptions<R>, Read<typeof PresenceOptions> {
  /** Returns the current time in epoch ms. Records age on a steady clock derived from it. */
  now: () => number
}

type Filter = Readonly<Record<string, unknown>>

/**
 * Creates a table whose records become `stale` after `ttlMs` without a report; `stale` and `closed` ones are deleted
 * after another `ttlMs`, lost ones after an hour.
 */
export function createPresenceTable<R extends Presence, C extends object>(options: PresenceTableOptions<R>) {
  const { ttlMs, maxEntries, maxEntriesPerUser } = options
  const { steady } = createClock(options.now)
  const table = createTable<R, undefined, C>(options)
  const live = new ExpiryQueue<Entry<R>>()
  const stale = new ExpiryQueue<Entry<R>>()
  const closed = new ExpiryQueue<Entry<R>>()
  const lost = new ExpiryQueue<Entry<R>>()
  const queueOf = ({ record }: Entry<R>) =>
    isLost(record) ? lost : record.status === 'closed' ? closed : record.status === 'stale' ? stale : live

  function goStale(entry: Entry<R>): void {
    table.replace(entry, Object.freeze({ ...entry.record, status: 'stale' }))
    stale.push(entry, entry.touchedAt + ttlMs)
  }

  /** Sweeps due entries. Returns false if there are more than one call should process. */
  function sweep(time: number): boolean {
    const isSwept = live.sweep(time - ttlMs, goStale)
    const ended = [stale.sweep(time - ttlMs, table.remove), closed.sweep(time - ttlMs, table.remove)]
    return lost.sweep(time - Math.max(ttlMs, LOST_MS), table.remove) && ended.every(Boolean) && isSwept
  }

  /** Returns the record as of `time`, even if the entry was not swept. */
  const view = (time: number) => (entry: Entry<R>) => {
    const { record, touchedAt } = entry
    const isLive = queueOf(entry) === live
    // The entry of a stale record was touched when it became stale.
    if (touchedAt + (record.status === 'stale' ? ttlMs : keptMs(record, ttlMs)) <= time) return undefined
    return isLive && touchedAt + ttlMs <= time ? { ...record, status: 'stale' } : record
  }

  /** Returns the entry with that id as of now, and sweeps it. */
  function get(id: string): Entry<R> | undefined {
    const time = steady()
    sweep(time)
    const entry = table.get(id)
    if (!entry) return undefined
    const read = view(time)(entry)
    if (read === entry.record) return entry
    queueOf(entry).remove(entry)
    if (read) goStale(entry)
    else table.remove(entry)
    return read && entry
  }

  function put(entry: Entry<R>, record: R): void {
    queueOf(entry).remove(entry)
    table.replace(entry, record)
    queueOf(entry).push(entry, steady())
    const { user_id } = record
    const first = table.sizeOf(LOST_OF, user_id) > LOST_MAX ? table.firstOf(LOST_OF, user_id) : undefined
    if (!first) return
    lost.remove(first)
    table.remove(first)
  }

  return {
    get,

    async change<A>(id: string, step: Step<R, A>, owner?: Owner): Promise<A> {
      const known = get(id)
      const { record, renews, answer } = step(known?.record, toTimestamp(options.now()))
      if (!record) return answer
      Object.freeze(record)
      if (known && renews) put(known, record)
      else if (known) table.replace(known, record)
      else {
        if (table.sizeOf('user_id', (owner as Owner).user_id) >= maxEntriesPerUser)
          throw new Refusal('capacity_exceeded', `maximum of ${maxEntriesPerUser} entries per user reached`)
        if (table.size >= maxEntries) throw new Refusal('capacity_exceeded', `maximum of ${maxEntries} entries reached`)
        live.push(table.add(id, record, undefined), steady())
      }
      return answer
    },

    /** Returns the version of the table, or `null` if more entries are due than one call should process. */
    version: () => (sweep(steady()) ? table.version() : null),

    list(filter: Filter, page: PageQuery, bound: number): Page<R> {
      const time = steady()
      sweep(time)
      return table.list(filter, page, view(time), bound)
    },

    count(filter: Filter, bound: number): (C & Examined) | null {
      const time = steady()
      const isSwept = sweep(time)
      return table.count(filter, view(time), isSwept, bound)
    },

    userIds(page: IdPageQuery, bound: number): UserIds {
      const time = steady()
      return table.users.userIds(page, view(time), sweep(time), bound)
    },

    /**
     * Returns a part for each existing user, from exact counts of all records or of those with one status. The client
     * ids of the records are added.
     */
    observe(
      userIds: readonly string[],
      ctx: InspectionContext,
      toPart: (userId: string, counts: (status?: string) => C) => UserPart,
    ): Promise<UserParts> {
      const time = steady()
      const { users } = table
      if (!sweep(time))
        return observeEach(
          userIds,
          ctx,
          (userId, remaining) => users.recordsOf(userId, view(time), remaining),
          (userId, records) => ({
            ...toPart(userId, (wanted) =>
              table.tally(records.filter(({ status }) => wanted === undefined || wanted === status)),
            ),
            observed_client_ids: new Set(records.map(({ client_id }) => client_id)),
          }),
        )
      return observeKnown(userIds, ctx, users.knowsUser, (user_id): UserPart => {
        const counts = (status?: string) => table.count({ user_id, status }, view(time), true, 0) as C
        return { ...toPart(user_id, counts), observed_client_ids: users.clientIds(user_id) }
      })
    },

    /**
     * Returns a counter for several counts as of now, which together examine at most `bound` entries: a count is `null`
     * if that is not enough.
     */
    counter(bound: number) {
      const time = steady()
      const isSwept = sweep(time)
      let examined = 0
      return {
        count(filter: Filter): C | null {
          const counts = table.count(filter, view(time), isSwept, bound - examined)
          examined += counts?.examined ?? 0
          return counts
        },
        examined: () => examined,
      }
    },
  }
}
