/** Places under way, so many for each user: whoever takes all of its own takes nothing from others. */
import { Refusal } from '../../refusal.js'

export interface Shares {
  /** Places taken in all. */
  readonly size: number
  /** Takes one for `userId`. @returns how to give it back, once. @throws Refusal `capacity_exceeded` */
  take(userId: string): () => void
}

/** @throws RangeError for a `perUser` that is no whole number from 1. */
export function createShares(perUser: number): Shares {
  if (!Number.isSafeInteger(perUser) || perUser < 1) throw new RangeError('a share must be a whole number from 1')
  const taken = new Map<string, number>()
  let size = 0
  return {
    get size() {
      return size
    },
    take(userId) {
      const own = taken.get(userId) ?? 0
      if (own >= perUser) throw new Refusal('capacity_exceeded', `${own} calls are under way`)
      taken.set(userId, own + 1)
      size++
      return () => {
        size--
        const left = (taken.get(userId) ?? 1) - 1
        if (left > 0) taken.set(userId, left)
        else taken.delete(userId)
      }
    },
  }
}
