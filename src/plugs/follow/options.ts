/** Options shared by the plugs: write interval, limits and error reporting. */
import type { CloseResult } from '../../async/ending.js'
import { boundRules, defineBounds, HOOK, type Shape, TIMER_MAX_MS } from '../../contract/checks.js'
import type { ConnectInput } from '../../contract/connections.js'

/** The source of an error: the host's `identify`, the facility, or another hook. */
export interface PlugErrorPlace {
  /** Which step failed. */
  step: 'identify' | 'write' | 'hook'
}

/** Options of every plug. */
export interface FollowOptions {
  /**
   * Heartbeats are written at most twice in this time, and silent peers are probed after it, in milliseconds. Keep it
   * below a third of the facility's timeout. @default 30000
   */
  heartbeatMs?: number | undefined
  /** Maximum followed peers; each further one is reported to `onError` and not written. @default 100000 */
  maxFollowed?: number | undefined
  /**
   * Called with errors of `identify`, invalid identities, and store failures. Errors of the hook are ignored. `null`
   * disables it. @default console.error, with the place and the stack
   */
  onError?: ((error: unknown, place: PlugErrorPlace) => void) | null | undefined
}

/** A running follower. */
export interface Follower {
  /**
   * Removes every listener and writes queued changes, within 5 s. Open peers stay listed until their lease expires.
   * `aborted`: entries whose latest state was not written.
   */
  close(): Promise<CloseResult>
}

const HEARTBEAT_MS = 30_000

export const FOLLOW_BOUNDS = defineBounds({
  heartbeatMs: [HEARTBEAT_MS, TIMER_MAX_MS],
  maxFollowed: 100_000,
})

export const FOLLOW_OPTIONS: Shape<FollowOptions> = { ...boundRules(FOLLOW_BOUNDS), onError: HOOK }

/** The owner of a connection, as `connections.connect` takes it, with client-supplied data. `null` is not followed. */
export type Identity = ConnectInput

const NAMED = ['user_id', 'client_id', 'instance_id'] as const

/** Checks the shape of an identity; the facility validates it fully. @throws TypeError */
export function checkIdentity<I extends object>(answer: I | null, names: readonly string[] = NAMED): I | null {
  if (answer === null) return null
  const has = (name: string) => typeof (answer as Readonly<Record<string, unknown>>)[name] === 'string'
  if (typeof answer !== 'object') throw new TypeError(`identify must return null or an object with ${names.join(', ')}`)
  const missing = names.find((name) => !has(name))
  if (missing !== undefined) throw new TypeError(`identify must return null or an object with ${missing} as a string`)
  return answer
}
