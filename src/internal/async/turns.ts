/** Splits long synchronous work into slices, so that the event loop can serve other requests between them. */

/** The most that all such work together takes of one turn of the event loop, in ms. */
const SLICE_MS = 10

// Those of the runtime: a host or a test that fakes the time must not stop work that waits here.
const startTimer = globalThis.setTimeout
/** By what slices are measured. Tests set another. */
export const sliceClock: { now: () => number } = { now: performance.now.bind(performance) }

/** When such work began in this turn; `undefined` where none has. */
let startedAt: number | undefined
/** The number of the slice that began last. */
let slice = 0
/** Work that waits for a turn, the longest first, with when its timer last fired. */
const waiting = new Map<object, number>()
/** A timer this late is considered lost: some runtimes cancel a request's timers when the request ends. */
const LOST_MS = 1_000

function begin(): void {
  const own = ++slice
  startedAt = sliceClock.now()
  startTimer(() => {
    if (slice === own) startedAt = undefined
  }, 0)
}

/** Starts the slice of this event-loop turn, unless it has already started. */
export function beginSlice(): void {
  if (startedAt === undefined) begin()
}

/** Whether the slice of this turn is used up, so that work should wait for `nextTurn`. */
function isSliceOver(): boolean {
  beginSlice()
  return sliceClock.now() - (startedAt as number) >= SLICE_MS
}

/** Whether `waiter` has waited for longest, but for those whose timers are lost. */
function isNext(waiter: object): boolean {
  const now = sliceClock.now()
  waiting.set(waiter, now)
  for (const [other, seenAt] of waiting) {
    if (other === waiter) return true
    if (now - seenAt < LOST_MS) return false
    waiting.delete(other)
  }
  return true
}

/**
 * Resolves in a later event-loop turn, after earlier waiters; each turn resumes one waiter, so that their slices do not
 * add up. Each waiter has its own timer because some runtimes cancel a request's timers with the request.
 */
function nextTurn(): Promise<void> {
  const waiter = {}
  waiting.set(waiter, sliceClock.now())
  return new Promise((resolve) => {
    function wait(): void {
      const known = slice
      startTimer(() => {
        // Another slice has begun since, perhaps in this turn.
        if (!isNext(waiter) || slice !== known) return wait()
        waiting.delete(waiter)
        begin()
        resolve()
      }, 0)
    }
    wait()
  })
}

/** What ends work early. The signal is looked at only after a turn. */
interface Cancellable {
  readonly signal: AbortSignal
}

/** Waits for a turn where the slice is used up. @throws the signal's reason once it has aborted. */
export async function betweenSlices(ctx: Cancellable): Promise<void> {
  if (isSliceOver()) await nextTurn()
  ctx.signal.throwIfAborted()
}

/** As `items.map(map)`, in slices. @throws the signal's reason where it aborts meanwhile. */
export async function mapInTurns<T, U>(items: readonly T[], map: (item: T) => U, ctx: Cancellable): Promise<U[]> {
  const mapped: U[] = []
  for (const item of items) {
    if (isSliceOver()) {
      await nextTurn()
      ctx.signal.throwIfAborted()
    }
    mapped.push(map(item))
  }
  return mapped
}

/** Work that yields wherever it may be interrupted. */
export type Steps<T> = Generator<undefined, T, undefined>

/**
 * Runs `steps` to completion in slices; synchronously if they fit into one, or if the signal has already aborted: the
 * partial result is then still returned in time. @throws the signal's reason if it aborts while waiting for a turn.
 */
export function inTurns<T>(steps: Steps<T>, ctx: Cancellable): T | Promise<T> {
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value
    if (isSliceOver()) break
  }
  if (ctx.signal.aborted) return atOnce(steps)
  return nextTurn().then(() => {
    ctx.signal.throwIfAborted()
    return inTurns(steps, ctx)
  })
}

/** Runs `steps` to their end without a turn. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}
