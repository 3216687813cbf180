/** The one watch of this tab: which lists it brings, and whether it still does. */
import { type WatchedList, type WatchRefused, watchLists } from '../../browser/watch.js'
import { keyHeaders, urlOf } from './fetch-route.js'

/** Called when a list has changed, and with an unchanged list that a subscriber requested. */
type Take = (path: string, page: unknown) => void

export interface Watching {
  /** Watches these and no others. */
  follow(paths: readonly string[]): void
  /** Whether this list is updated by the watch, so that it need not be polled. */
  brings(path: string): boolean
  isLive(): boolean
}

/** Most lists of one watch. */
const VIEWS = 8

export function createWatching(take: Take): Watching {
  let followed: readonly string[] = []
  let current: AbortController | null = null
  /** A router without it is asked, for as long as the page lives. */
  let isAbsent = false
  const live = new Set<string>()
  const seen = new Map<string, WatchedList>()

  function hear(lists: Readonly<Record<string, WatchedList>>): void {
    for (const [path, list] of Object.entries(lists)) {
      const before = seen.get(path)
      seen.set(path, list)
      if (list.stale || list.asOf === null) live.delete(path)
      else live.add(path)
      if (!list.stale && list.asOf !== before?.asOf) take(path, { items: list.items, ...list.page })
    }
  }

  async function begin(views: readonly string[], own: AbortController): Promise<void> {
    const { signal } = own
    const onChange = (lists: Readonly<Record<string, WatchedList>>) => signal.aborted || hear(lists)
    try {
      await watchLists(urlOf('/watch') as string, { views, headers: keyHeaders, signal, onChange })
    } catch (error) {
      // What else is wrong the questions themselves say when they are asked.
      isAbsent = (error as WatchRefused).status === 404
    } finally {
      if (current === own) live.clear()
    }
  }

  return {
    follow(paths) {
      const wanted = isAbsent ? [] : paths.slice(0, VIEWS)
      if (wanted.join(' ') === followed.join(' ')) return
      followed = wanted
      current?.abort()
      current = null
      live.clear()
      seen.clear()
      if (wanted.length === 0) return
      current = new AbortController()
      void begin(wanted, current)
    },
    brings: (path) => live.has(path),
    isLive: () => live.size > 0,
  }
}
