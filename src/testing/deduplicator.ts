/** The contract suite of a deduplicator's inspector. */
import { type DeduplicatorInspector, DeduplicatorSummary, DeduplicatorUserSummary } from '../contract/deduplicator.js'
import { ASK, type ContractCase, check, checkEqual, checkSchema, checkSettles } from './expect.js'
import { type MakeInspector, NOBODY } from './lists.js'

/** Holds a deduplicator's inspector to its contract. `users`: users with entries, for they cannot be listed. */
export function deduplicatorContract(
  make: MakeInspector<DeduplicatorInspector>,
  { users = [] }: { users?: readonly string[] } = {},
): ContractCase[] {
  return [
    {
      name: 'summary is within its capacity',
      async run() {
        const deduplicator = await make()
        if (!deduplicator) return
        const summary = await deduplicator.summary(ASK)
        checkSchema(DeduplicatorSummary, summary, 'summary')
        check(summary.entries <= (summary.capacity ?? summary.entries), 'more entries than the capacity')
        await checkSettles((ask) => deduplicator.summary(ask), 'summary')
      },
    },
    {
      name: 'userSummary speaks of the user asked for, and is null for an unknown one',
      async run() {
        const deduplicator = await make()
        if (!deduplicator?.userSummary) return
        const { entries } = await deduplicator.summary(ASK)
        for (const userId of users) {
          const summary = await deduplicator.userSummary(userId, ASK)
          checkSchema(DeduplicatorUserSummary, summary, `userSummary of ${userId}`)
          checkEqual(summary?.user_id, userId, 'userSummary speaks of')
          check((summary?.entries ?? 0) <= entries, `${userId} has more entries than there are`)
        }
        for (const unknown of [NOBODY, '__proto__'].filter((user) => !users.includes(user)))
          check(
            (await deduplicator.userSummary(unknown, ASK)) === null,
            `${unknown} does not exist, and its answer is not null`,
          )
        await checkSettles((ask) => deduplicator.userSummary?.(NOBODY, ask), 'userSummary')
      },
    },
  ]
}
