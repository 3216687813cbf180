/** Counts of observed calls by action and direction. Imports no schemas, so that followers can use it. */
import { bucketOf, emptyBuckets } from './latency.js'

type Direction = 'to_client' | 'to_server'

/** An `ObservedAction`. */
interface ActionCounts extends Record<(typeof COUNTERS)[number], number> {
  action: string
  direction: Direction
  counts: number[]
  sum_ms: number
}

/** Maximum number of actions that are counted by name; further ones are counted as `OTHER_ACTION`. */
export const COUNTED_ACTIONS_MAX = 100
/** The action under which all beyond the maximum are counted. */
export const OTHER_ACTION = 'other'

const COUNTERS = ['succeeded', 'failed', 'cancelled', 'unanswered', 'notifications'] as const

/** Counters of one action in one direction, all 0. */
export const emptyAction = (action: string, direction: Direction): ActionCounts => ({
  action,
  direction,
  succeeded: 0,
  failed: 0,
  cancelled: 0,
  unanswered: 0,
  notifications: 0,
  counts: emptyBuckets(),
  sum_ms: 0,
})

/** Adds the duration of an answered call. */
export function addDuration(to: ActionCounts, ms: number): void {
  const bucket = bucketOf(ms)
  to.counts[bucket] = (to.counts[bucket] as number) + 1
  to.sum_ms += ms
}

/** Counters by action and direction, of a limited number of actions. */
export function createActionCounts() {
  const names = new Set<string>()
  const all = new Map<string, ActionCounts>()

  function of(action: string, direction: Direction): ActionCounts {
    const isNamed = names.has(action) || names.size < COUNTED_ACTIONS_MAX
    if (isNamed && action !== OTHER_ACTION) names.add(action)
    const name = isNamed ? action : OTHER_ACTION
    const key = `${direction} ${name}`
    const found = all.get(key) ?? emptyAction(name, direction)
    all.set(key, found)
    return found
  }

  return {
    of,
    add(more: ActionCounts): void {
      const to = of(more.action, more.direction)
      for (const name of COUNTERS) to[name] += more[name]
      to.sum_ms += more.sum_ms
      for (const [i, count] of more.counts.entries()) to.counts[i] = (to.counts[i] ?? 0) + count
    },
    /** Returns copies, sorted. */
    list: (): ActionCounts[] =>
      [...all.keys()].sort().map((key) => {
        const action = all.get(key) as ActionCounts
        return { ...action, counts: [...action.counts] }
      }),
  }
}
