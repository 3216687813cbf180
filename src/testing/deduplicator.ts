/** The contract suite of a deduplicator's inspector. */
import { type DeduplicatorInspector, DeduplicatorSummary, DeduplicatorUserSummary } from '../contract/deduplicator.js'
import {
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEqual,
  checkSchema,
  fill,
  find,
  type Make,
  notTested,
  type Partly,
  toCases,
} from './expect.js'
import type { MakeInspector } from './lists.js'
import { UNKNOWN_ID } from './lists.js'

/** Holds a deduplicator's inspector to its contract. `users`: users with entries, for they cannot be listed. */
export function deduplicatorContract(
  make: MakeInspector<DeduplicatorInspector>,
  { users = [] }: { users?: readonly string[] } = {},
): ContractCase[] {
  return toCases([
    {
      name: 'summary is within its capacity',
      async run() {
        const deduplicator = await make()
        if (!deduplicator) return notTested('there is no deduplicator')
        const summary = await deduplicator.summary(CONTEXT)
        checkSchema(DeduplicatorSummary, summary, 'summary')
        check(
          summary.entries <= (summary.capacity ?? summary.entries),
          `summary has ${summary.entries} entries and a capacity of ${summary.capacity}`,
        )
        await checkEnds((ctx) => deduplicator.summary(ctx), 'summary')
      },
    },
    {
      name: 'userSummary speaks of the user asked for, and is null for an unknown one',
      async run() {
        const deduplicator = await make()
        if (!deduplicator?.userSummary) return notTested('there is no userSummary')
        const { entries } = await deduplicator.summary(CONTEXT)
        for (const userId of users) {
          const summary = await deduplicator.userSummary(userId, CONTEXT)
          checkSchema(DeduplicatorUserSummary, summary, `userSummary of ${userId}`)
          checkEqual(summary?.user_id, userId, 'userSummary speaks of')
          check(
            (summary?.entries ?? 0) <= entries,
            `userSummary of ${userId} has ${summary?.entries} entries, and summary ${entries} in all`,
          )
        }
        for (const unknown of [UNKNOWN_ID, '__proto__'].filter((user) => !users.includes(user)))
          check(
            (await deduplicator.userSummary(unknown, CONTEXT)) === null,
            `${unknown} does not exist, and its answer is not null`,
          )
        await checkEnds((ctx) => deduplicator.userSummary?.(UNKNOWN_ID, ctx), 'userSummary')
      },
    },
  ])
}

/** What the fakes know of a deduplicator. */
export interface DeduplicatorWorld {
  deduplicator?: { summary?: Partly<DeduplicatorSummary>; users?: Partly<DeduplicatorUserSummary>[] }
}

const toDeduplicatorSummary = (given: Partly<DeduplicatorSummary> = {}): DeduplicatorSummary =>
  fill({ entries: 0, capacity: null, ttl_ms: null, accepted: 0, duplicates: 0, evicted: 0 }, given)

const toDeduplicatorUser: Make<DeduplicatorUserSummary> = (given, place) =>
  fill({ user_id: `user-${place}`, entries: 0, accepted: 0, duplicates: 0, oldest_at: null }, given)

export function fakeDeduplicator({ deduplicator }: DeduplicatorWorld): DeduplicatorInspector | undefined {
  if (!deduplicator) return undefined
  return {
    summary: () => toDeduplicatorSummary(deduplicator.summary),
    ...(deduplicator.users && { userSummary: (user_id) => find(toDeduplicatorUser, deduplicator.users, { user_id }) }),
  }
}
