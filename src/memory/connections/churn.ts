/** Connections of one process that opened and ended in each of the last minutes, counted as it happens. */

import type { ClientType } from '../../internal/contract/connections.js'
import {
  CHURN_COMBINATIONS,
  CHURN_MINUTES,
  type ChurnMinute,
  MINUTE_MS,
  minuteOf,
  OTHER,
  UNSPECIFIED,
} from '../../internal/contract/connections.js'
import { toTimestamp } from '../../internal/contract/ids.js'

/** A count; `reason` is `undefined` for opened connections. */
interface Counted {
  readonly type: ClientType
  readonly reason: string | undefined
  count: number
}

export type Churn = ReturnType<typeof createChurn>

/** Creates the counts, which start with the current minute. */
export function createChurn(now: () => number) {
  const since = minuteOf(now())
  const minutes = new Map<number, Map<string, Counted>>()

  /** Returns the counts of `minute`, or of the current minute if `minute` is not reported. */
  function countsOf(minute: number): Map<string, Counted> {
    const present = minuteOf(now())
    const oldest = Math.max(since, present - CHURN_MINUTES + 1)
    const own = minute >= oldest && minute <= present ? minute : present
    const known = minutes.get(own)
    if (known) return known
    for (const one of minutes.keys()) if (one < oldest || one > present) minutes.delete(one)
    const made = new Map<string, Counted>()
    minutes.set(own, made)
    return made
  }

  function add(type: ClientType, reason: string | undefined, at: number): void {
    const counts = countsOf(minuteOf(at))
    const key = `${type} ${reason}`
    const known = counts.get(key)
    if (known) known.count++
    else if (counts.size >= CHURN_COMBINATIONS && reason !== undefined && reason !== OTHER) add(type, OTHER, at)
    else counts.set(key, { type, reason, count: 1 })
  }

  return {
    opened: (type: ClientType, at: number) => add(type, undefined, at),
    ended: (type: ClientType, reason: string | null, at: number) => add(type, reason ?? UNSPECIFIED, at),

    /** Returns the counted minutes, with the counts of the client types that `admits` accepts. */
    read(admits: (type: ClientType) => boolean): ChurnMinute[] {
      const present = minuteOf(now())
      const first = Math.max(Math.min(since, present), present - CHURN_MINUTES + 1)
      return Array.from({ length: present - first + 1 }, (_, i) => {
        const counts = [...(minutes.get(first + i)?.values() ?? [])].filter(({ type }) => admits(type))
        const ended = new Map<string, number>()
        let opened = 0
        for (const { reason, count } of counts)
          if (reason === undefined) opened += count
          else ended.set(reason, (ended.get(reason) ?? 0) + count)
        const minute = toTimestamp((first + i) * MINUTE_MS)
        return { minute, opened, ended: Object.fromEntries([...ended].sort()) }
      })
    },
  }
}
