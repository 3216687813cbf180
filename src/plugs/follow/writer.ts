/** Brings a store to the latest state of many entries, few at a time; while it is down, it is tried seldom. */
import { CLOSE_TIMEOUT_MS, type Ending, endWithin } from '../../async/ending.js'
import { createAlarm } from '../../async/timer.js'

/** Entries that are written at a time. */
const CONCURRENCY = 32
/** Between two tries of a store that is down: soon at first, then less often. */
const FIRST_RETRY_MS = 250
const LAST_RETRY_MS = 5_000

export interface WriterParts<E> {
  /** Brings the store to what the entry is now. Rejects where the store is not there: the entry then has another turn. */
  write(entry: E): Promise<void>
  /** Is told why a store is down, and why it still is, or why an entry alone cannot be written. Must be guarded. */
  failed(error: unknown, isDown: boolean): void
  /** The store answers again. */
  returned(): void
}

export interface Writer<E> {
  /** Something of `entry` is to be written. It waits once, however often it is wanted: what is written is what it is then. */
  want(entry: E): void
  /** Takes `entry` out, unless it is being written now. */
  forget(entry: E): boolean
  /** Gives another turn to what failed again while the store was there for others. */
  retryRested(): void
  /** Whether the last try failed. */
  isDown(): boolean
  /** Writes what waits, within 5 s and with no second try, and nothing from then on. `cut`: entries that were not written. */
  end(): Promise<Ending>
}

export function createWriter<E>({ write, failed, returned }: WriterParts<E>): Writer<E> {
  const waiting = new Set<E>()
  const busy = new Set<E>()
  /** Who failed, and has not been written since. */
  const suspects = new Set<E>()
  /** Suspects that failed again though others could be written: it is not the store, and they must not stop the others. */
  const resting = new Set<E>()
  let state: 'up' | 'down' | 'trying' = 'up'
  let retryMs = FIRST_RETRY_MS
  let hasEnded = false
  let idle: (() => void) | undefined
  const retry = createAlarm(tryAgain)

  function tryAgain(): void {
    if (state === 'down') state = 'trying'
    pump()
  }

  /** In their order; a store is rather tried with one that it has not refused yet. */
  function* inTurn(): Iterable<E> {
    if (state === 'trying') for (const entry of waiting) if (!suspects.has(entry)) yield entry
    yield* waiting
  }

  function pump(): void {
    for (const entry of inTurn()) {
      if (hasEnded || state === 'down' || busy.size >= CONCURRENCY) return
      if (busy.has(entry)) continue
      waiting.delete(entry)
      const isTry = state === 'trying'
      // One alone is tried: until it is answered, the store counts as down.
      if (isTry) state = 'down'
      void run(entry, isTry)
    }
  }

  async function run(entry: E, isTry: boolean): Promise<void> {
    busy.add(entry)
    try {
      await write(entry)
      suspects.delete(entry)
      if (isTry) goUp()
    } catch (error) {
      if (state === 'up' && suspects.has(entry)) rest(entry, error)
      else {
        waiting.add(entry)
        suspects.add(entry)
        // Those that were under way when it went down say nothing new.
        if (isTry || state !== 'down') goDown(error)
      }
    } finally {
      busy.delete(entry)
      pump()
      settle()
    }
  }

  function rest(entry: E, error: unknown): void {
    resting.add(entry)
    failed(error, false)
  }

  function goDown(error: unknown): void {
    state = 'down'
    failed(error, true)
    retry.advance(retryMs)
    retryMs = Math.min(2 * retryMs, LAST_RETRY_MS)
  }

  function goUp(): void {
    state = 'up'
    retryMs = FIRST_RETRY_MS
    returned()
  }

  /** Tells who waits for the end that nothing more will be written. */
  function settle(): void {
    if (busy.size === 0 && (waiting.size === 0 || state === 'down')) idle?.()
  }

  return {
    want(entry) {
      if (hasEnded) return
      resting.delete(entry)
      waiting.add(entry)
      // A store that is down with nobody waiting has nothing to be tried with.
      if (state === 'trying' || state === 'up') pump()
    },
    forget(entry) {
      if (busy.has(entry)) return false
      for (const set of [waiting, resting, suspects]) set.delete(entry)
      return true
    },
    retryRested() {
      for (const entry of resting) waiting.add(entry)
      resting.clear()
      pump()
    },
    isDown: () => state !== 'up',
    async end() {
      retry.clear()
      const isIdle = new Promise<void>((resolve) => {
        idle = resolve
      })
      tryAgain()
      settle()
      await endWithin([isIdle], CLOSE_TIMEOUT_MS)
      hasEnded = true
      retry.clear()
      const cut = new Set([...waiting, ...resting, ...busy]).size
      waiting.clear()
      return { cut }
    },
  }
}
