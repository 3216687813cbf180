/** The watches of one router: which views a request names, who shares a reader, and whether they may still look. */
import { createTicker } from '../../async/timer.js'
import { checkId } from '../../contract/ids.js'
import { createTable, type Match } from '../../http/match.js'
import { type FieldError, ProblemError } from '../../http/problem.js'
import type { readQuery } from '../../http/read.js'
import { eventStreamReply, type HttpReply } from '../../http/respond.js'
import { parsePrefix } from '../../http/target.js'
import { createFeed, type Feed, type FeedEnd } from './feed.js'
import { createPace, type View, ViewReader } from './reader.js'
import { ROWS } from './rows.js'

/** Views of one watch. */
const VIEWS_MAX = 8
const VIEW_LENGTH = 2_048
/** Watches of one principal, and of all together. */
const WATCHES_PER_PRINCIPAL = 32
const WATCHES_MAX = 1_000
/** Between two looks at whether a watcher may still look. */
const RECHECK_MS = 60_000

type Given = ReturnType<typeof readQuery>

/** A requested view: its route, and its parsed query. */
export interface FoundView<R> {
  /** As the watcher spells it. */
  name: string
  /** Equal for all spellings of the same view: the order of parameters, encodings and defaults do not count. */
  canonical: string
  route: R
  params: Record<string, string>
  given: Given
}

/** A view that a principal may look at, and who may share its reader. */
export interface OpenView extends Omit<View, 'fields'> {
  /** Identifies the visible users: equal for callers that may see the same ones. */
  scope: string
}

export interface Watcher<P> {
  principal: P
  request: Request
}

export interface WatchesOptions<R, P> {
  routes: readonly R[]
  /** Parses the query of a view. Throws if it is invalid or no inspector can answer it. */
  givenOf(route: R, search: string): Given
  /** Opens a view for a watcher. Throws if the watcher has no access. */
  open(view: FoundView<R>, watcher: Watcher<P>): Promise<OpenView>
  /** The clock by which readings are measured. It never goes back. @default performance.now */
  steady?: () => number
}

interface Watch {
  principal: string
  feed: Feed
  /** Why it must end; `null` while it need not. */
  recheck(): Promise<FeedEnd | null>
}

const invalid = (reason: string) =>
  new ProblemError('invalid_query', { errors: [{ in: 'query', name: 'view', reason } satisfies FieldError] })

const notAList = () => invalid('must be the path and query of a list below the prefix')

/** The values of the query's one parameter, which may be repeated. */
function namesIn(search: string): string[] {
  const views = search.split('&').map((pair) => {
    const [name, value = ''] = pair.split(/=(.*)/s)
    if (name !== 'view') throw invalid('this route takes view, and nothing else')
    try {
      return decodeURIComponent(value.replaceAll('+', ' '))
    } catch {
      throw invalid('is not valid percent-encoded UTF-8')
    }
  })
  if (views.length > VIEWS_MAX) throw invalid(`must be repeated at most ${VIEWS_MAX} times`)
  return views
}

/** @returns what finds the view that a name is of. */
function createFinder<R extends { path: string }>(routes: readonly R[], givenOf: (route: R, search: string) => Given) {
  const table = createTable(parsePrefix(''), routes, {
    serve(found: Match<R> | undefined, name: string, search: string): FoundView<R> {
      if (!found || !ROWS[found.route.path]) throw notAList()
      const { route, params } = found
      for (const [param, value] of Object.entries(params))
        if (value === null || checkId(value) !== undefined) throw invalid(`${param}: is not an id`)
      const given = givenOf(route, search)
      const { limit, cursor, order, filters } = given
      const sorted = Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))
      const canonical = JSON.stringify([route.path, params, limit, cursor, order, sorted])
      return { name, canonical, route, params: params as Record<string, string>, given }
    },
  })
  return async (name: string): Promise<FoundView<R>> => {
    const [path = '', search = ''] = name.split(/\?(.*)/s)
    if (name.length > VIEW_LENGTH || !path.startsWith('/')) throw notAList()
    return table.fetch(path, name, search)
  }
}

export function createWatches<R extends { path: string }, P extends { name: string }>({
  routes,
  givenOf,
  open,
  steady = () => performance.now(),
}: WatchesOptions<R, P>) {
  const find = createFinder(routes, givenOf)
  const pace = createPace(steady)
  const readers = new Map<string, ViewReader>()
  const watches = new Set<Watch>()
  /** Principals of watches that are being started: they count towards the limit too. */
  const beginning: string[] = []
  const ticker = createTicker(recheckAll, RECHECK_MS)

  async function recheckAll(): Promise<void> {
    await Promise.all(
      [...watches].map(async ({ feed, recheck }) => {
        const why = await recheck()
        if (why) feed.end(why)
      }),
    )
  }

  function readerOf({ canonical, route }: FoundView<R>, { scope, ...view }: OpenView): ViewReader {
    const key = JSON.stringify([canonical, scope])
    const known = readers.get(key)
    if (known) return known
    const fields = ROWS[route.path] as readonly string[]
    const reader = new ViewReader({ ...view, fields }, pace, () => {
      if (readers.get(key) === reader) readers.delete(key)
    })
    readers.set(key, reader)
    return reader
  }

  return {
    /** Watches that are open. */
    get size() {
      return watches.size
    },
    /** The views that a query names. Throws if one is invalid. */
    async viewsIn(search: string): Promise<FoundView<R>[]> {
      const found = await Promise.all(namesIn(search).map(find))
      if (new Set(found.map(({ canonical }) => canonical)).size < found.length)
        throw invalid('must not name the same view twice')
      return found
    },
    /**
     * Begins a watch. Every view is read first, so that a failure is a problem document and not a stream.
     *
     * @param whoNow Authenticates the caller again; its access is evaluated again too.
     */
    async begin(found: FoundView<R>[], watcher: Watcher<P>, whoNow: () => Promise<P>): Promise<HttpReply> {
      const { principal, request } = watcher
      const held = [...[...watches].map((watch) => watch.principal), ...beginning]
      const own = held.filter((name) => name === principal.name).length
      if (own >= WATCHES_PER_PRINCIPAL || held.length >= WATCHES_MAX) throw new ProblemError('share_exceeded')
      let opened: OpenView[]
      let shared: ViewReader[] = []
      beginning.push(principal.name)
      try {
        opened = await Promise.all(found.map((view) => open(view, watcher)))
        shared = found.map((view, i) => readerOf(view, opened[i] as OpenView))
        await Promise.all(shared.map((reader) => reader.begin()))
        // The client has disconnected: its `abort` event would never arrive.
        if (request.signal.aborted) throw new ProblemError('inspector_timeout')
      } catch (error) {
        for (const reader of shared) reader.leaveIdle()
        throw error
      } finally {
        beginning.splice(beginning.indexOf(principal.name), 1)
      }
      const names = new Map(shared.map((reader, i) => [reader, (found[i] as FoundView<R>).name]))
      const feed = createFeed(names, principal.name, () => {
        watches.delete(watch)
        if (watches.size === 0) ticker.stop()
      })
      const watch: Watch = {
        principal: principal.name,
        feed,
        async recheck() {
          try {
            const now = await whoNow()
            if (now.name !== principal.name) return { reason: 'forbidden', retry: null }
            const again = await Promise.all(found.map((view) => open(view, { principal: now, request })))
            const isSame = again.every(({ scope }, i) => scope === opened[i]?.scope)
            return isSame ? null : { reason: 'scope_changed', retry: 0 }
          } catch {
            return { reason: 'forbidden', retry: null }
          }
        },
      }
      watches.add(watch)
      ticker.start()
      request.signal.addEventListener('abort', () => void feed.return?.(), { once: true })
      return eventStreamReply(feed)
    },
  }
}
