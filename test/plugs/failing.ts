/** Facilities that can be taken away for a while, as a store that is down takes them. */
import { Refusal } from '../../src/internal/refusal.js'

export interface Outage {
  isDown: boolean
  /** Calls that were refused since the start. */
  refused: number
}

/** `facility`, whose every call is refused while `outage.isDown`. */
export function failing<F extends object>(facility: F, outage: Outage): F {
  return new Proxy(facility, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return async (...args: unknown[]) => {
        if (!outage.isDown) return member.apply(target, args)
        outage.refused++
        throw new Refusal('unavailable', 'down, as the test has it', { outcome: 'not_run' })
      }
    },
  })
}
