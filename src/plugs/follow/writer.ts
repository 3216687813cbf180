/** Writes the latest state of many entries to a store, a few at a time; while the store is down it is tried rarely. */
import { CLOSE_TIMEOUT_MS, type CloseResult, endWithin } from '../../internal/async/deadline.js'
import { createAlarm } from '../../internal/async/timer.js'
import {
  boundRules,
  defineBounds,
  HOOK,
  type Shape,
  TIMER_MAX_MS,
  unknownName,
} from '../../internal/contract/checks.js'
import type { ConnectInput } from '../../internal/contract/connections.js'

/** Maximum number of entries that are written at a time. */
const CONCURRENCY = 32
/** Failures in a row after which the store counts as down: fewer may be entries that cannot be written. */
const DOWN = 8
/** Time between two retries. It doubles until everything is written. */
const FIRST_RETRY_MS = 250
const LAST_RETRY_MS = 5_000

interface WriterParts<E> {
  /** Brings the store to the state that the entry has now. An entry whose write rejects is retried. */
  write(entry: E): Promise<void>
  /** Called with the first error of each series of failures. Must be guarded. */
  failed(error: unknown): void
}

export function createWriter<E>({ write, failed }: WriterParts<E>) {
  const waiting = new Set<E>()
  const busy = new Set<E>()
  const failing = new Set<E>()
  /** Failures since the last success. */
  let failures = 0
  let isReported = false
  let isPaused = false
  let outages = 0
  let hasEnded = false
  let retryMs = FIRST_RETRY_MS
  let idle = () => {}
  const alarm = createAlarm(retry)

  /** Entries that have not failed go first: if they fail too, it is the store. */
  function retry(): void {
    retryMs = Math.min(2 * retryMs, LAST_RETRY_MS)
    for (const entry of failing) waiting.add(entry)
    failing.clear()
    if (isPaused) outages++
    isPaused = false
    isReported = false
    pump()
  }

  function pump(): void {
    for (const entry of waiting) {
      if (hasEnded || isPaused || busy.size >= (failures === 0 ? CONCURRENCY : 1)) return
      if (busy.has(entry)) continue
      waiting.delete(entry)
      busy.add(entry)
      void run(entry)
    }
  }

  async function run(entry: E): Promise<void> {
    try {
      await write(entry)
      failures = 0
      isReported = false
    } catch (error) {
      waiting.delete(entry)
      failing.add(entry)
      isPaused = ++failures >= DOWN
      if (!isReported) failed(error)
      isReported = true
      if (!hasEnded) alarm.advance(retryMs)
    }
    busy.delete(entry)
    pump()
    if (busy.size === 0 && waiting.size + failing.size === 0) retryMs = FIRST_RETRY_MS
    if (busy.size === 0 && (waiting.size === 0 || isPaused)) idle()
  }

  return {
    /** Queues `entry` once, however often it is requested; a failed one waits for its retry. */
    want(entry: E): void {
      if (hasEnded || failing.has(entry)) return
      waiting.add(entry)
      pump()
    },
    /** Removes `entry`, unless it is being written. */
    forget(entry: E): boolean {
      if (busy.has(entry)) return false
      waiting.delete(entry)
      failing.delete(entry)
      return true
    },
    /** Number of times that the store was down: an entry queued before or during an outage is written late. */
    outages: () => outages,
    /** Writes queued entries, within 5 s, and stops. `aborted`: entries not written. */
    async end(): Promise<CloseResult> {
      const isIdle = new Promise<void>((resolve) => {
        idle = resolve
      })
      retry()
      if (busy.size > 0) await endWithin([isIdle], CLOSE_TIMEOUT_MS)
      hasEnded = true
      alarm.clear()
      return { aborted: new Set([...waiting, ...failing, ...busy]).size }
    },
  }
}

// Options shared by the plugs: write interval, limits and error reporting.

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

export const FOLLOW_BOUNDS = defineBounds({ heartbeatMs: [HEARTBEAT_MS, TIMER_MAX_MS], maxFollowed: 100_000 })

export const FOLLOW_OPTIONS: Shape<FollowOptions> = { ...boundRules(FOLLOW_BOUNDS), onError: HOOK }

/** The owner of a connection, as `connections.connect` takes it, with client-supplied data. `null` is not followed. */
export type Identity = ConnectInput

const NAMED = ['user_id', 'client_id', 'instance_id'] as const

/**
 * Checks the shape of an identity; the facility validates it fully.
 *
 * @param valid All its fields, where the facility does not see those that it does not know.
 * @throws TypeError
 */
export function checkIdentity<I extends object>(
  answer: I | null,
  names: readonly string[] = NAMED,
  valid?: readonly string[],
): I | null {
  if (answer === null) return null
  const has = (name: string) => typeof (answer as Readonly<Record<string, unknown>>)[name] === 'string'
  if (typeof answer !== 'object') throw new TypeError(`identify must return null or an object with ${names.join(', ')}`)
  const missing = names.find((name) => !has(name))
  if (missing !== undefined) throw new TypeError(`identify must return null or an object with ${missing} as a string`)
  const unknown = valid && Object.keys(answer).find((name) => !valid.includes(name))
  if (unknown !== undefined) throw new TypeError(`identify: ${unknownName('field', '', unknown, valid ?? [])}`)
  return answer
}
