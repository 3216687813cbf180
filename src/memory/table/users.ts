/** The users of a table: who there is, of which clients, and with which records while some of these have died. */
import { mapInTurns } from '../../async/turns.js'
import { compareIds } from '../../contract/ids.js'
import { OBSERVED_MAX } from '../../contract/limits.js'
import type { UserIds, UserPart, UserParts } from '../../contract/observation.js'
import { type IdPageQuery, type InspectionContext, scanLimit, withMetadata } from '../../contract/page.js'
import type { FieldIndex, Indexed } from './field-index.js'
import { OrderedIndex } from './ordered-index.js'

/** What every record says: whose it is, and of which client unless it is the user's alone. */
export interface Owned {
  user_id: string
  client_id?: string
}

type Read<R, E> = (entry: E) => R | undefined

/** The users in `ofUser`, which the table keeps: what is added here is in it, what is removed has left it. */
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

  /** Whether the user has a record, looking at no more than its first `bound` entries; `null` where that did not tell. */
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
    /** Called before the record is in `ofUser`. */
    add(record: R): void {
      if (!ofUser.has(record.user_id)) userIds.insert(record.user_id)
      countClient(record, 1)
    },

    /** Called after the record has left `ofUser`. */
    remove(record: R): void {
      countClient(record, -1)
      if (!ofUser.has(record.user_id)) userIds.delete(record.user_id)
    },

    knowsUser: (userId: string) => ofUser.has(userId),

    /**
     * Users with a record, in the order of the UTF-8 bytes of their ids; at most `bound` entries are examined, those of
     * the index of users among them. Without `isSwept`, records have died that are still in the index, and every user
     * is looked at by `read`.
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
        // More dead entries than may be looked at: nobody knows, and the next page goes on behind this user.
        if (found.isPresent === null) truncated = true
        reached = id
      }
      return withMetadata(ids, { examined, truncated })
    },

    /** The user's records as `read` shows them; `null` where there are more than `bound` entries. */
    recordsOf(userId: string, read: Read<R, E>, bound: number): { records: R[] | null; examined: number } {
      const examined = ofUser.size(userId)
      if (examined > bound) return { records: null, examined: 0 }
      const records = Array.from(ofUser.after(userId, 0), read)
      return { records: records.filter((record) => record !== undefined), examined }
    },

    /**
     * Clients that the user's records name, sorted; of more than 100, any 101. An answer that shows the list cuts it and
     * says so; one that does not show it is complete.
     */
    clientIds(userId: string): string[] {
      const ids: string[] = []
      for (const id of clientsOf.get(userId)?.keys() ?? []) if (ids.push(id) > OBSERVED_MAX) break
      return ids.sort(compareIds)
    },
  }
}

/** A part of each user that `isKnown`, from numbers that are kept. In slices: users who come and go meanwhile may be missed. */
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
 * A part of each user who has records, of as many entries in all as may be examined: of a user who was not reached nothing
 * is known but that more entries would have to be looked at. In slices.
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
