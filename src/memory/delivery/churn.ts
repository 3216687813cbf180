/** Commands of one process that were admitted and ended in each of the last minutes, counted as it happens. */

import { CHURN_MINUTES, MINUTE_MS, minuteOf } from '../../contract/connections.js'
import type { DeliveryMinute, TerminalState } from '../../contract/delivery.js'
import { noEnds } from '../../contract/delivery-rules.js'
import { toTimestamp } from '../../contract/ids.js'

type Counts = Omit<DeliveryMinute, 'minute'>

export type DeliveryMinutes = ReturnType<typeof createDeliveryMinutes>

/** Creates the counts, which start with the current minute. `openCounts` returns the unfinished commands by state. */
export function createDeliveryMinutes(now: () => number, openCounts: () => NonNullable<DeliveryMinute['open']>) {
  const since = minuteOf(now())
  let minutes = new Map<number, Counts>()
  /** The minute of the latest change. */
  let last = since

  function countsOf(minute: number): Counts {
    const known = minutes.get(minute) ?? { admitted: 0, ended: noEnds(), open: null }
    minutes.set(minute, known)
    return known
  }

  /** Called before each change: no count has changed since the latest one, so the minutes in between had these. */
  function roll(): number {
    const present = minuteOf(now())
    if (present === last) return present
    const first = present - CHURN_MINUTES + 1
    const open = openCounts()
    for (let minute = Math.max(last, first); minute < present; minute++) countsOf(minute).open = open
    minutes = new Map([...minutes].filter(([minute]) => minute >= first && minute <= present))
    last = present
    return present
  }

  return {
    roll,
    admitted: () => void countsOf(roll()).admitted++,
    ended: (state: TerminalState) => void countsOf(roll()).ended[state]++,

    /** Returns the minutes, with the open commands unless `isFiltered`. */
    read(isFiltered: boolean): DeliveryMinute[] {
      const present = roll()
      countsOf(present).open = openCounts()
      const first = Math.max(Math.min(since, present), present - CHURN_MINUTES + 1)
      return Array.from({ length: present - first + 1 }, (_, i) => {
        const minute = toTimestamp((first + i) * MINUTE_MS)
        const { admitted, ended, open } = countsOf(first + i)
        return { minute, admitted, ended: { ...ended }, open: isFiltered ? null : open }
      })
    },
  }
}
