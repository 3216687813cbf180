/**
 * Fake timers that know who has set them, for tests that count timers: a worker holds what the files before have left, such as
 * connections of `fetch` and of stores, and these set timers whenever they like.
 */
import { vi } from 'vitest'

type Callback = (...given: unknown[]) => void
type SetTimer = (callback: Callback, ...given: unknown[]) => object
interface Refreshable {
  refresh?(): unknown
}

/** What waits, and where in our own sources or tests it was set. */
const pending = new Map<object, string>()
const OURS = /[/\\](?:src|test)[/\\](?!fake-timers)/

/** Where the code that runs now stands in ours, innermost first; `undefined` where nobody of ours is in its stack. */
function ourPlace(): string | undefined {
  const lines = new Error().stack?.split('\n').filter((line) => OURS.test(line) && !line.includes('node_modules')) ?? []
  return lines.length > 0 ? lines.join('\n') : undefined
}

function watched(set: SetTimer, isOnce: boolean): SetTimer {
  return (callback, ...given) => {
    const place = ourPlace()
    const timer = set(
      (...args) => {
        if (isOnce) pending.delete(timer)
        callback(...args)
      },
      ...given,
    ) as object & Refreshable
    if (place === undefined) return timer
    pending.set(timer, place)
    const refresh = timer.refresh?.bind(timer)
    if (refresh)
      timer.refresh = () => {
        pending.set(timer, place)
        return refresh()
      }
    return timer
  }
}

/** As `vi.useFakeTimers`, until `vi.useRealTimers`. */
export function useFakeTimers(...options: Parameters<typeof vi.useFakeTimers>): void {
  vi.useFakeTimers(...options)
  pending.clear()
  const all = globalThis as unknown as Record<string, unknown>
  for (const kind of ['Timeout', 'Interval']) {
    const [set, clear] = [all[`set${kind}`], all[`clear${kind}`]] as [SetTimer & { clock?: unknown }, Callback]
    // Real ones, where the test fakes others alone.
    if (!set.clock) continue
    all[`set${kind}`] = Object.assign(watched(set, kind === 'Timeout'), set)
    all[`clear${kind}`] = Object.assign((timer: object) => {
      pending.delete(timer)
      clear(timer)
    }, clear)
  }
}

/** Where each of our timers that wait was set. */
export const ourTimers = (): string[] => [...pending.values()]
