/**
 * Fake timers that know who has set them, for tests that count timers: a worker holds what the files before have left, such as
 * connections of `fetch`, stores and nodes that were to crash, and these set timers whenever they like.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { onTestFinished, vi } from 'vitest'

type Callback = (...given: unknown[]) => void
type SetTimer = (callback: Callback, ...given: unknown[]) => object
interface Refreshable {
  refresh?(): unknown
}

/** Everything that a test does or brings about carries the timers that it has set. */
const ofTest = new AsyncLocalStorage<Map<object, string>>()

/** Where the code that runs now stands in our sources and tests, innermost first. */
const place = () =>
  new Error().stack
    ?.split('\n')
    .filter((line) => /[/\\](?:src|test)[/\\](?!fake-timers)/.test(line) && !line.includes('node_modules'))
    .join('\n') ?? ''

function watched(set: SetTimer, isOnce: boolean): SetTimer {
  return (callback, ...given) => {
    const pending = ofTest.getStore()
    // The callback is called by the code that advances the time, but belongs to the code that set the timer.
    const act = AsyncResource.bind(callback)
    const timer = set(
      (...args) => {
        if (isOnce) pending?.delete(timer)
        act(...args)
      },
      ...given,
    ) as object & Refreshable
    if (!pending) return timer
    const from = place()
    pending.set(timer, from)
    const refresh = timer.refresh?.bind(timer)
    if (refresh)
      timer.refresh = () => {
        pending.set(timer, from)
        return refresh()
      }
    return timer
  }
}

/** As `vi.useFakeTimers`, in the body of a test and not in a hook before it, until the test is over or calls `vi.useRealTimers`. */
export function useFakeTimers(...options: Parameters<typeof vi.useFakeTimers>): void {
  vi.useFakeTimers(...options)
  // A test that fails before its end must not stop the time of those behind it.
  onTestFinished(() => void vi.useRealTimers())
  ofTest.enterWith(new Map())
  const all = globalThis as unknown as Record<string, unknown>
  for (const kind of ['Timeout', 'Interval']) {
    const [set, clear] = [all[`set${kind}`], all[`clear${kind}`]] as [SetTimer & { clock?: unknown }, Callback]
    // Real ones, where the test fakes others alone.
    if (!set.clock) continue
    all[`set${kind}`] = Object.assign(watched(set, kind === 'Timeout'), set)
    all[`clear${kind}`] = Object.assign((timer: object) => {
      ofTest.getStore()?.delete(timer)
      clear(timer)
    }, clear)
  }
}

/** Where each timer was set that this test has brought about and that waits. @throws Error without fake timers of this test. */
export function ourTimers(): string[] {
  const pending = ofTest.getStore()
  if (!pending) throw new Error('useFakeTimers was called where this test does not come from')
  return [...pending.values()]
}
