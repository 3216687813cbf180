/** A limit of concurrent slots per user: a user at the limit does not affect others. */
import { Refusal } from '../../internal/refusal.js'

export interface Shares {
  /** Places taken in all. */
  readonly size: number
  /** Takes one for `userId`. @returns how to give it back; twice is once. @throws Refusal `capacity_exceeded` */
  take(userId: string): () => void
}

/** @param what The counted thing, for the detail of the refusal. */
export function createShares(perUser: number, what: string): Shares {
  const taken = new Map<string, number>()
  let size = 0
  return {
    get size() {
      return size
    },
    take(userId) {
      const own = taken.get(userId) ?? 0
      if (own >= perUser) throw new Refusal('capacity_exceeded', `${own} ${what}`)
      taken.set(userId, own + 1)
      size++
      let isTaken = true
      return () => {
        if (!isTaken) return
        isTaken = false
        size--
        const remaining = (taken.get(userId) ?? 1) - 1
        if (remaining > 0) taken.set(userId, remaining)
        else taken.delete(userId)
      }
    },
  }
}
