/** The users of a table: which users exist, their clients, and their records while some are expired but not swept. */
import { mapInTurns } from '../../internal/async/turns.js'
import { compareIds } from '../../internal/contract/ids.js'
import { OBSERVED_MAX } from '../../internal/contract/limits.js'
import type { UserIds, UserPart, UserParts } from '../../internal/contract/observation.js'
import { type IdPageQuery, type InspectionContext, scanLimit, withMetadata } from '../../internal/contract/page.js'
import type { FieldIndex, Indexed } from './field-index.js'
import { OrderedIndex } from './ordered-index.js'

/** The fields of every record: its user, and its client unless it belongs to the user only. */
export interface Owned {
  user_id: string
  client_id?: string
}

type Read<R, E> = (entry: E) => R | undefined

/** Creates the users of the records in `ofUser`, an index that the table maintains. */
export function createTableUsers<R extends Owned, E extends Indexed>(ofUser: FieldIndex<E>) {
  const userIds = new OrderedIndex<string, string>((id) => id, compareIds)
  const clientsOf = new Map<string, Map<string, number>>()

  function countClient({ user_id, client_id }: Owned, by: 1 | -1): void {
    if (client_id === undefined) return
    const clients = clientsOf.get(user_id) ?? new Map<string, number>()
    if (clients.size === 0) clientsOf.set(user_id, clients)
    const count = (clients.get(client_id) ?? 0) + by
    if (count > 0) clients.set(client_id, count)
    else clients.delete(client_id)
    if (clients.size === 0) clientsOf.delete(user_id)
  }

  /** Ids greater than `after` that begin with `prefix`. */
  function* idsAfter(after: string | null, prefix = ''): Iterable<string> {
    const isBegun = after !== null && compareIds(after, prefix) >= 0
    if (!isBegun && prefix !== '' && userIds.get(prefix) !== undefined) yield prefix
    for (const id of userIds.after(isBegun || prefix === '' ? after : prefix)) {
      if (!id.startsWith(prefix)) return
      yield id
    }
  }

  /** Whether the user has a record, examining at most `bound` entries; `null` if that was not enough. */
  function checkPresence(
    userId: string,
    read: Read<R, E>,
    bound: number,
  ): { examined: number; isPresent: boolean | null } {
    let examined = 0
    for (const entry of ofUser.after(userId, 0)) {
      if (examined === bound) return { examined, isPresent: null }
      examined++
      if (read(entry)) return { examined, isPresent: true }
    }
    return { examined, isPresent: false }
  }

  return {
    /** Called before the record is added to `ofUser`. */
    add(record: R): void {
      if (!ofUser.has(record.user_id)) userIds.insert(record.user_id)
      countClient(record, 1)
    },

    /** Called after the record was removed from `ofUser`. */
    remove(record: R): void {
      countClient(record, -1)
      if (!ofUser.has(record.user_id)) userIds.delete(record.user_id)
    },

    knowsUser: (userId: string) => ofUser.has(userId),

    /**
     * Returns users with a record, ordered by the UTF-8 bytes of their ids, examining at most `bound` entries,
     * including those of the index of users. Without `isSwept` the index may contain expired records, so every user is
     * checked with `read`.
     */
    userIds({ after, limit, prefix }: IdPageQuery, read: Read<R, E>, isSwept: boolean, bound: number): UserIds {
      const ids: string[] = []
      let examined = 0
      let reached: string | undefined
      let truncated = false
      for (const id of idsAfter(after, prefix)) {
        if (ids.length === limit) return withMetadata(ids, { examined, truncated })
        if (examined >= bound) return withMetadata(ids, { examined, truncated, reached })
        examined++
        const found = isSwept ? { examined: 0, isPresent: true } : checkPresence(id, read, bound - examined)
        examined += found.examined
        if (found.isPresent) ids.push(id)
        // More expired entries than may be examined: unknown, and the next page continues after this user.
        if (found.isPresent === null) truncated = true
        reached = id
      }
      return withMetadata(ids, { examined, truncated })
    },

    /** Returns the user's records as `read` returns them; `null` if there are more than `bound` entries. */
    recordsOf(userId: string, read: Read<R, E>, bound: number): { records: R[] | null; examined: number } {
      const examined = ofUser.size(userId)
      if (examined > bound) return { records: null, examined: 0 }
      const records = Array.from(ofUser.after(userId, 0), read)
      return { records: records.filter((record) => record !== undefined), examined }
    },

    /**
     * Returns the ids of the user's clients, sorted; if there are more than 100, any 101 of them. A response that shows
     * the list cuts it and marks it as truncated; one that does not is complete.
     */
    clientIds(userId: string): string[] {
      const ids: string[] = []
      for (const id of clientsOf.get(userId)?.keys() ?? []) if (ids.push(id) > OBSERVED_MAX) break
      return ids.sort(compareIds)
    },
  }
}

/**
 * Returns a part for each user that `isKnown`, from maintained counts. It yields to other events in between, so users
 * that come and go may be missed.
 */
export async function observeKnown(
  userIds: readonly string[],
  ctx: InspectionContext,
  isKnown: (userId: string) => boolean,
  toPart: (userId: string) => UserPart,
): Promise<UserParts> {
  const parts = await mapInTurns(userIds, (id) => (isKnown(id) ? [toPart(id)] : []), ctx)
  return withMetadata(parts.flat(), { examined: 0 })
}

/**
 * Returns a part for each user with records, within the scan limit for all users. A user that was not reached gets a
 * part that is only marked as truncated. It yields to other events in between.
 */
export async function observeEach<R>(
  userIds: readonly string[],
  ctx: InspectionContext,
  recordsOf: (userId: string, bound: number) => { records: R[] | null; examined: number },
  toPart: (userId: string, records: R[]) => UserPart,
): Promise<UserParts> {
  const bound = scanLimit(ctx)
  let spent = 0
  const observe = (user_id: string): UserPart[] => {
    const { records, examined } = recordsOf(user_id, bound - spent)
    spent += examined
    if (records === null) return [{ user_id, truncated: true }]
    return records.length > 0 ? [toPart(user_id, records)] : []
  }
  const parts = await mapInTurns(userIds, observe, ctx)
  return withMetadata(parts.flat(), { examined: spent })
}
