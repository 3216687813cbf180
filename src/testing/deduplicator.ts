/** Contract suite of the deduplicator's inspector. */

import {
  type DeduplicatorInspector,
  DeduplicatorSummaryAnswer,
  type DeduplicatorSummaryInput,
  DeduplicatorUserSummaryAnswer,
  type DeduplicatorUserSummaryInput,
} from '../internal/contract/deduplicator.js'
import { answering } from './answering.js'
import {
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEqual,
  checkKnown,
  checkSchema,
  fill,
  find,
  type Make,
  notTested,
  type Partly,
  toCases,
} from './expect.js'
import { type MakeInspector, UNKNOWN_ID } from './lists.js'

/**
 * Returns the contract suite of a deduplicator's inspector. `users`: users with entries, because it cannot list them.
 */
export function deduplicatorContract(
  given: MakeInspector<DeduplicatorInspector>,
  { users = [] }: { users?: readonly string[] } = {},
): ContractCase[] {
  const make = answering(given, DeduplicatorSummaryAnswer)
  return toCases([
    {
      name: 'summary has no more entries than its capacity',
      async run() {
        const deduplicator = await make()
        if (!deduplicator) return notTested('the deduplicator is not implemented')
        const summary = await deduplicator.summary(CONTEXT)
        checkSchema(DeduplicatorSummaryAnswer, summary, 'summary')
        const { entries, capacity } = summary
        check(
          (entries ?? 0) <= (capacity ?? Number.POSITIVE_INFINITY),
          `summary has ${entries} entries, more than its capacity of ${capacity}`,
        )
        await checkEnds((ctx) => deduplicator.summary(ctx), 'summary')
        checkKnown({ entries })
      },
    },
    {
      name: 'userSummary returns the requested user, and null for an unknown one',
      async run() {
        const deduplicator = await make()
        if (!deduplicator?.userSummary) return notTested('userSummary is not implemented')
        const { entries } = await deduplicator.summary(CONTEXT)
        for (const userId of users) {
          const summary = await deduplicator.userSummary(userId, CONTEXT)
          checkSchema(DeduplicatorUserSummaryAnswer, summary, `userSummary of ${userId}`)
          checkEqual(summary?.user_id, userId, 'userSummary returned')
          check(
            (summary?.entries ?? 0) <= (entries ?? Number.POSITIVE_INFINITY),
            `userSummary of ${userId} has ${summary?.entries} entries, but summary only ${entries} in total`,
          )
        }
        for (const unknown of [UNKNOWN_ID, '__proto__'].filter((user) => !users.includes(user)))
          check(
            (await deduplicator.userSummary(unknown, CONTEXT)) === null,
            `userSummary of ${unknown}, which does not exist, must be null`,
          )
        await checkEnds((ctx) => deduplicator.userSummary?.(UNKNOWN_ID, ctx), 'userSummary')
      },
    },
  ])
}

/** Data of the fake deduplicator. */
export interface DeduplicatorWorld {
  /** The deduplicator: its summary, and users with entries. */
  deduplicator?: { summary?: Partly<DeduplicatorSummaryInput>; users?: Partly<DeduplicatorUserSummaryInput>[] }
}

const toDeduplicatorSummary = (given: Partly<DeduplicatorSummaryInput> = {}): DeduplicatorSummaryInput =>
  fill({ entries: 0, capacity: null, ttl_ms: null, accepted: 0, duplicates: 0, evicted: 0 }, given)

const toDeduplicatorUser: Make<DeduplicatorUserSummaryInput> = (given, place) =>
  fill({ user_id: `user-${place}`, entries: 0, accepted: 0, duplicates: 0, oldest_at: null }, given)

export function fakeDeduplicator({ deduplicator }: DeduplicatorWorld): DeduplicatorInspector | undefined {
  if (!deduplicator) return undefined
  return {
    summary: () => toDeduplicatorSummary(deduplicator.summary),
    ...(deduplicator.users && { userSummary: (user_id) => find(toDeduplicatorUser, deduplicator.users, { user_id }) }),
  }
}
