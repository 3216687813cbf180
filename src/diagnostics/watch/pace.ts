/** How often watched views are read: reader time is divided fairly between principals, and within one between its views. */

/** The shortest interval between two readings of one view. */
export const READ_MS = 1_000
/** Reader time of one principal, and of all together, in each interval. */
const PRINCIPAL_MS = 250
const TOTAL_MS = 500

/** A view that is read again and again. */
export interface Paced {
  /** What one reading costs, in ms of reader time. */
  readonly costMs: number
  /** The names of those who watch it. They share the cost in equal parts. */
  readonly principals: { readonly size: number; keys(): Iterable<string> }
}

export interface Pace {
  add(view: Paced): void
  delete(view: Paced): void
  /** Recomputes the shares before the next interval is returned: someone began or ended watching. */
  change(): void
  /** Ms from one reading of `view` to the next; at least `READ_MS`. */
  intervalOf(view: Paced): number
  /** Starts to measure a reading. Returns what ends the measurement and returns the cost in ms. */
  measure(): () => number
}

/** The most that each demand may take, so that all fit into `capacity` and the small ones are met (max-min fairness). */
function fairShare(demands: readonly number[], capacity: number): number {
  let left = capacity
  for (const [i, demand] of demands.toSorted((a, b) => a - b).entries()) {
    const share = left / (demands.length - i)
    if (demand > share) return share
    left -= demand
  }
  return Number.POSITIVE_INFINITY
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** @param now A clock that never goes back, in ms. */
export function createPace(now: () => number): Pace {
  const views = new Set<Paced>()
  /** The most reader time that one reading may cost and still be repeated each interval, by principal. */
  let shares = new Map<string, number>()
  let computedAt = Number.NEGATIVE_INFINITY
  /** Reader time so far: time that several readings have in common counts once, in equal parts. */
  let spent = 0
  let spentAt = now()
  let underWay = 0

  function spend(): number {
    const at = now()
    spent += (at - spentAt) / Math.max(1, underWay)
    spentAt = at
    return spent
  }

  function compute(): void {
    computedAt = now()
    const demands = new Map<string, number[]>()
    for (const { costMs, principals } of views)
      for (const name of principals.keys()) {
        const own = demands.get(name)
        const part = costMs / principals.size
        if (own) own.push(part)
        else demands.set(name, [part])
      }
    const totals = Array.from(demands.values(), (own) => Math.min(PRINCIPAL_MS, sum(own)))
    const most = Math.min(PRINCIPAL_MS, fairShare(totals, TOTAL_MS))
    shares = new Map(Array.from(demands, ([name, own]) => [name, fairShare(own, most)]))
  }

  return {
    add: (view) => void views.add(view),
    delete: (view) => void views.delete(view),
    change() {
      computedAt = Number.NEGATIVE_INFINITY
    },
    intervalOf({ costMs, principals }) {
      if (now() - computedAt >= READ_MS) compute()
      const share = Math.max(...Array.from(principals.keys(), (name) => shares.get(name) ?? Number.POSITIVE_INFINITY))
      return READ_MS * Math.max(1, costMs / principals.size / share)
    },
    measure() {
      const from = spend()
      underWay++
      return () => {
        const cost = spend() - from
        underWay--
        return cost
      }
    },
  }
}
