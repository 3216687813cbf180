/** What every plug that feeds a facility takes: how often it writes, how many it follows, and whom it tells of errors. */
import type { CloseResult } from '../../async/ending.js'
import { boundsIn, defineBounds, HOOK, type Shape, TIMER_MAX_MS } from '../../contract/checks.js'
import type { ConnectInput } from '../../contract/connections.js'

/** Where an error that a plug tells of came from: the host's `identify`, the facility that is written to, or another hook. */
export interface PlugErrorPlace {
  step: 'identify' | 'write' | 'hook'
}

export interface FollowOptions {
  /**
   * A sign of life is written at most twice in this time, and what gave none for so long is asked for one. Keep it below a
   * third of the time after which the facility gives up who is silent. @default 30000
   */
  heartbeatMs?: number | undefined
  /** How many are followed at a time; of one beyond, `onError` is told and nothing is written. @default 100000 */
  maxFollowed?: number | undefined
  /**
   * Called with what `identify` threw, what it answered that cannot be written, and why a store is down. What it throws changes
   * nothing. `null` for nobody. @default console.error, with the place and the stack
   */
  onError?: ((error: unknown, place: PlugErrorPlace) => void) | null | undefined
}

/** What follows a peer. */
export interface Follower {
  /**
   * Takes every listener away and writes what still waits, within 5 s. What is there then reads as there until its silence is
   * noticed. `aborted`: entries whose latest state was not written.
   */
  close(): Promise<CloseResult>
}

const HEARTBEAT_MS = 30_000

export const FOLLOW_BOUNDS = defineBounds({
  heartbeatMs: [HEARTBEAT_MS, TIMER_MAX_MS],
  maxFollowed: 100_000,
})

export const FOLLOW_OPTIONS: Shape<FollowOptions> = { ...boundsIn(FOLLOW_BOUNDS), onError: HOOK }

/** Whose connection it is, as `connections.connect` takes it, with what it says of itself. `null` is not followed. */
export type Identity = ConnectInput

const NAMED = ['user_id', 'client_id', 'instance_id'] as const

/** What `identify` answered, where it is one. The facility looks at it closely. @throws TypeError */
export function checkIdentity<I extends object>(answer: I | null, names: readonly string[] = NAMED): I | null {
  if (answer === null) return null
  const has = (name: string) => typeof (answer as Readonly<Record<string, unknown>>)[name] === 'string'
  if (typeof answer !== 'object') throw new TypeError(`identify must return null or an object with ${names.join(', ')}`)
  const missing = names.find((name) => !has(name))
  if (missing !== undefined) throw new TypeError(`identify must return null or an object with ${missing} as a string`)
  return answer
}
