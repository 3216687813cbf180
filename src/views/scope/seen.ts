/** Which users are visible, and how inspectors of any family are read for them. */
import { invalidOption, unknownOption } from '../../contract/checks.js'
import { checkId, compareIds } from '../../contract/ids.js'
import type { UserIndex } from '../../contract/observation.js'
import { type Awaitable, type Indexed, type InspectionContext, scanLimit, withMetadata } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'

/** Maximum number of users of one scope, and per call to an index of users. */
const SCOPE_MAX = 500

/** The users that a caller may see. */
export interface UserScope {
  /** At most 500. */
  readonly user_ids: readonly string[]
}

/** Who is in sight. */
export interface VisibleUsers {
  /** Each once, in the order of their ids. */
  readonly users: readonly string[]
  has(userId: string): boolean
}

/** @throws TypeError for users that are no list of ids, RangeError for more than 500. */
export function parseVisibleUsers(scope: UserScope): VisibleUsers {
  const ids: unknown = scope?.user_ids
  const unknown = Object.keys(scope ?? {}).find((name) => name !== 'user_ids')
  if (unknown !== undefined) throw unknownOption('', unknown, ['user_ids'])
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string' && checkId(id) === undefined))
    throw new TypeError(invalidOption('user_ids', 'an array of ids', ids))
  const known = new Set<string>(ids)
  if (known.size > SCOPE_MAX) throw new RangeError(invalidOption('user_ids', `at most ${SCOPE_MAX} ids`, known.size))
  return { users: [...known].sort(compareIds), has: (userId) => known.has(userId) }
}

/** Refuses operations that cover all users. */
export function refuseUnscopable(): never {
  throw new Refusal('not_narrowable')
}

/** Returns `record` if its user is visible, otherwise `null`. */
export const ifVisible = <T extends { user_id: string | null }>(record: T | null, { has }: VisibleUsers): T | null =>
  record && record.user_id !== null && has(record.user_id) ? record : null

/** Copies the metadata of an indexed response, without its data. */
export const indexMetadata = ({ examined, truncated }: Indexed): Indexed => ({
  ...(examined === undefined ? {} : { examined }),
  ...(truncated === undefined ? {} : { truncated }),
})

/** The one visible user that is requested. */
export function onlyUser({ users, has }: VisibleUsers, asked: string | undefined): string | null {
  if (asked !== undefined) return has(asked) ? asked : null
  return users.length === 1 ? (users[0] as string) : null
}

/**
 * The numbers that an index keeps of one whole user; `null` for any other filter. With other filters, the number of
 * examined entries would reveal records of other users.
 */
export function countOfOne<Counts>(
  seen: VisibleUsers,
  count: (filter: { user_id: string }, ctx: InspectionContext) => Awaitable<Counts | null>,
) {
  return (
    { user_id, ...others }: { user_id?: string | undefined },
    ctx: InspectionContext,
  ): Awaitable<Counts | null> => {
    const user = onlyUser(seen, user_id)
    if (user === null || Object.values(others).some((value) => value !== undefined)) return null
    return count({ user_id: user }, ctx)
  }
}

/** The index of a source over those in sight. */
export function scopeUsers(index: UserIndex, { users, has }: VisibleUsers): UserIndex {
  const { observeUsers } = index
  if (!observeUsers) return {}

  const observe: typeof observeUsers = async (userIds, ctx) => {
    const asked = userIds.filter(has)
    if (asked.length === 0) return []
    const parts = await observeUsers.call(index, asked, ctx)
    return (
      parts &&
      withMetadata(
        parts.filter(({ user_id }) => has(user_id)),
        indexMetadata(parts),
      )
    )
  }

  return {
    observeUsers: observe,
    async listUserIds({ after, limit, prefix = '' }, ctx) {
      const left = users.filter((user) => user.startsWith(prefix) && (after === null || compareIds(user, after) > 0))
      const asked = left.slice(0, Math.min(limit, scanLimit(ctx)))
      const parts = await observe(asked, ctx)
      if (parts === null) return null
      const known = new Set(parts.map(({ user_id }) => user_id))
      const reached = asked.length < left.length ? { reached: asked.at(-1) as string } : {}
      return withMetadata(
        asked.filter((user) => known.has(user)),
        { ...indexMetadata(parts), ...reached },
      )
    },
  }
}

/** Reads a value for each of `keys` of visible users; it is unknown for others. */
export function eachVisibleUser<Key, Answer>(
  { has }: VisibleUsers,
  userOf: (key: Key) => string,
  answerFor: (keys: readonly Key[], ctx: InspectionContext) => Awaitable<readonly (Answer | null)[]>,
) {
  return async (keys: readonly Key[], ctx: InspectionContext): Promise<(Answer | null)[]> => {
    const own = keys.filter((key) => has(userOf(key)))
    const answers = own.length === 0 ? [] : await answerFor(own, ctx)
    const answerByKey = new Map(own.map((key, i) => [key, answers[i] ?? null]))
    return keys.map((key) => answerByKey.get(key) ?? null)
  }
}
