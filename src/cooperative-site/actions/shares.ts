/** Places under way, so many for each user: whoever takes all of its own takes nothing from others. */
import { Refusal } from '../../refusal.js'

export interface Shares {
  /** Places taken in all. */
  readonly size: number
  /** Takes one for `userId`. @returns how to give it back, once. @throws Refusal `capacity_exceeded` */
  take(userId: string): () => void
}

export function createShares(perUser: number): Shares {
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
