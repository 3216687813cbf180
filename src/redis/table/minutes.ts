/** Reads what was counted in each of the last minutes: a sorted set per minute, entries by how often. */
import { CHURN_MINUTES, minuteOf } from '../../contract/connections.js'
import type { InspectionContext } from '../../contract/page.js'
import { count, listOf, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import minutesLua from './read-minutes.lua'
import { defineReadScript, readShard } from './read-script.js'

/** Returns a reader of the minutes of `table`, at most `entries` of each, in one shard up to the time `now`. */
export function minutesReader(table: string, entries: number) {
  const script = defineReadScript(
    {
      args: ['first', 'last'],
      constants: { TABLE: table, ENTRIES: entries },
      answer: ([minutes]) =>
        listOf(minutes).map((one) => {
          const [minute = null, members = null] = listOf(one)
          return { minute: count(minute), entries: scored(members) }
        }),
    },
    minutesLua,
  )
  return (store: Store, shard: number, now: number, ctx: InspectionContext) => {
    const last = minuteOf(now)
    return readShard(store, script, shard, { first: last - CHURN_MINUTES + 1, last }, ctx)
  }
}
