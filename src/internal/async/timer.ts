/** Timers: a sleep, a sleep that a signal ends, and tickers that do not keep the process alive. */
import { onAbort } from './abort.js'

type Timer = ReturnType<typeof setTimeout>

/**
 * Resolves after `ms`, or as soon as `signal` aborts. With 0 the event loop has its turn.
 *
 * @param keepsAlive Whether the timer keeps the process alive.
 */
export function sleep(ms: number, signal?: AbortSignal, keepsAlive = true): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      forget()
      resolve()
    }, ms)
    const forget = onAbort(signal, () => {
      clearTimeout(timer)
      resolve()
    })
    if (!keepsAlive) unref(timer)
  })
}

/** Resolves in another turn of the event loop. Timers of 0 ms that are late fire one after the other in the same turn. */
export function anotherTurn(): Promise<void> {
  const { setImmediate } = globalThis as { setImmediate?: (act: () => void) => unknown }
  return setImmediate ? new Promise((resolve) => setImmediate(resolve)) : sleep(0)
}

/** `timer`, which keeps no process alive any more. Runtimes without `unref` do not wait for timers either. */
export function unref(timer: Timer): Timer {
  if (typeof timer === 'object') timer.unref?.()
  return timer
}

/** One call that is due, and only ever brought forward. It keeps no process alive. @param now A clock that never goes back. */
export function createAlarm(act: () => void, now: () => number = () => performance.now()) {
  let timer: Timer | undefined
  let dueAt = Number.POSITIVE_INFINITY
  function fire() {
    dueAt = Number.POSITIVE_INFINITY
    act()
  }
  return {
    /** Calls `act` in `ms` at the latest. */
    advance(ms: number): void {
      const at = now() + ms
      if (at >= dueAt) return
      clearTimeout(timer)
      timer = unref(setTimeout(fire, ms))
      dueAt = at
    },
    clear(): void {
      clearTimeout(timer)
      dueAt = Number.POSITIVE_INFINITY
    },
  }
}

/**
 * Calls `tick` every `everyMs`. `tick` must not reject; a tick that is still running when the next is due replaces it.
 *
 * @param keepsAlive Whether the timer keeps the process alive.
 */
export function createTicker(tick: () => unknown, everyMs: number, keepsAlive = false) {
  let timer: Timer | undefined
  let isUnderWay = false
  const run = async () => {
    if (isUnderWay) return
    isUnderWay = true
    try {
      await tick()
    } finally {
      isUnderWay = false
    }
  }
  return {
    start(): void {
      timer ??= setInterval(run, everyMs)
      if (!keepsAlive) unref(timer)
    },
    stop(): void {
      clearInterval(timer)
      timer = undefined
    },
  }
}

// The clocks of a process: wall time for display, monotonic time for timers and ages.

export interface Clock {
  /** Epoch ms, whole. */
  now(): number
  /** Monotonic milliseconds: when the wall clock jumps back by ten minutes, timers must not stall. */
  steady(): number
}

export function createClock(now: () => number): Clock {
  const wall = () => Math.floor(now())
  return { now: wall, steady: monotonic(wall) }
}

/** Wraps `now` so that it never goes back: after a step back it continues from the highest value seen. */
export function monotonic(now: () => number): () => number {
  let skew = 0
  let latest = Number.NEGATIVE_INFINITY
  return () => {
    const at = now()
    if (at + skew < latest) skew = latest - at
    latest = at + skew
    return latest
  }
}
