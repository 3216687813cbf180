/** Watches lists of a diagnostics router: keeps their rows by id, and reports how complete and how old they are. */
import { onAbort, raceAbort } from '../async/abort.js'
import { sleep } from '../async/timer.js'
import { createEventStreamDecoder, RETRY_DEFAULT_MS, reconnectDelay } from '../relay-client/event-stream.js'
import { type ClientHeaders, isObject, parseObject } from '../relay-client/wire.js'

/** A record of a list, as the router returns it. */
export type WatchedRow = Readonly<Record<string, unknown>>

/** The router refused the watch, and a retry would not change that. */
export class WatchRefused extends Error {
  override readonly name = 'WatchRefused'

  constructor(
    /**
     * 401, 403, 404, 422, 501 and the like; 200 for a response that is not a stream; for a redirect 3xx, or 0 in a
     * browser.
     */
    readonly status: number,
  ) {
    super(`refused: ${status}`)
  }
}

/** One watched list as it is known now. */
export interface WatchedList {
  /** In the order of the page. */
  readonly items: readonly WatchedRow[]
  /** The page without its items: `has_more`, `next_cursor`, and fields that the route adds. */
  readonly page: WatchedRow
  /** When the router last looked; `null` before it first did. */
  readonly asOf: string | null
  /** Milliseconds between two readings by the router; `null` before the first. More than 1,000 where watches cost too much. */
  readonly refreshMs: number | null
  /**
   * Whether the rows may be outdated: the connection is lost, or the router has not read the list for half a minute.
   */
  readonly stale: boolean
  /** Whether these are all rows, as far as the page reports it. */
  readonly complete: boolean
}

/** Options of `watch`. */
export interface WatchOptions {
  /** Paths and queries of lists below the router's prefix: `/connections?status=connected`. At most 8. */
  views: readonly string[]
  /** Request headers, including the key. A function is called before each connection attempt. */
  headers?: ClientHeaders
  /** Called with all lists by their views, after each change of any, of its age or of its staleness. */
  onChange(lists: Readonly<Record<string, WatchedList>>): void
  /** Ends the watch. */
  signal?: AbortSignal
  /** The `fetch` to use. @default globalThis.fetch */
  fetch?: typeof globalThis.fetch
}

const OPTIONS = ['views', 'headers', 'onChange', 'signal', 'fetch']

// More than twice the router's heartbeat interval.
const SILENCE_MS = 25_000
// A response of a router has at most 16 MiB, and escaping may enlarge it.
const FRAME_LENGTH = 33_554_432

/** What ends a connection: a frame of a state that is not the one here, or the last one. */
const UNRELATED = new Error()

interface State {
  version: number
  rowId: string[]
  rows: Map<string, WatchedRow>
  page: WatchedRow
  asOf: string | null
  refreshMs: number | null
  stale: boolean
}

const idOf = (row: WatchedRow, fields: string[]) =>
  fields.length === 1 ? String(row[fields[0] as string]) : JSON.stringify(fields.map((field) => row[field]))

/** Adds or replaces the rows of `upsert`, deletes those of `remove`, and applies `order`. New rows come first if `isFirst`. */
function apply(state: State, upsert: WatchedRow[], remove: string[], order?: string[] | null, isFirst = false): void {
  for (const id of remove) state.rows.delete(id)
  const before = isFirst ? state.rows : new Map<string, WatchedRow>()
  if (isFirst) state.rows = new Map()
  for (const row of upsert) {
    const id = idOf(row, state.rowId)
    ;(before.has(id) ? before : state.rows).set(id, row)
  }
  for (const [id, row] of before) state.rows.set(id, row)
  if (order)
    state.rows = new Map(order.flatMap((id) => (state.rows.has(id) ? [[id, state.rows.get(id) as WatchedRow]] : [])))
}

const isComplete = (page: WatchedRow) =>
  page.has_more !== true &&
  !page.omitted &&
  (page.completeness as { complete?: boolean } | undefined)?.complete !== false

/**
 * Watches until `signal` aborts or the router ends the watch; then it resolves. After a lost connection it reconnects
 * and starts with a snapshot.
 *
 * @throws WatchRefused if the router refuses the watch; TypeError for an unknown option.
 * @example
 * await watch('/ops/diagnostics/watch', { views: ['/connections'], headers: { 'x-admin-key': key }, onChange: draw })
 */
export async function watch(url: string, options: WatchOptions): Promise<void> {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name))
  if (unknown !== undefined) throw new TypeError(`Unknown option "${unknown}". Valid options: ${OPTIONS.join(', ')}`)
  return watchLists(url, options)
}

/** `watch` with options that were checked. */
export async function watchLists(url: string, options: WatchOptions): Promise<void> {
  const { views, headers, onChange, signal, fetch = globalThis.fetch } = options
  const states = new Map<string, State>(
    views.map((view) => [
      view,
      { version: -1, rowId: [], rows: new Map(), page: {}, asOf: null, refreshMs: null, stale: true },
    ]),
  )
  /** One timer per list, since lists are updated separately, and one for the connection. */
  const silences = new Map<unknown, ReturnType<typeof setTimeout>>()
  let failures = 0
  let isOver = false

  function tell(): void {
    const lists = [...states].map(([view, { rows, page, asOf, refreshMs, stale }]): [string, WatchedList] => [
      view,
      { items: [...rows.values()], page, asOf, refreshMs, stale, complete: asOf !== null && isComplete(page) },
    ])
    try {
      onChange(Object.fromEntries(lists))
    } catch (error) {
      // Reports an uncaught error where the platform supports it.
      ;(globalThis.reportError ?? console.error)(error)
    }
  }

  /** Restarts the silence timer of `of`: `act` is called when nothing arrives for too long. */
  function hear(of: unknown, act: () => void): void {
    clearTimeout(silences.get(of))
    silences.set(of, setTimeout(act, SILENCE_MS))
  }

  function lose(lost: Iterable<State>): void {
    for (const state of lost) state.stale = true
    tell()
  }

  /** Applies one frame. @throws if it does not follow from the current state. */
  function take(type: string, data: string): void {
    const frame = parseObject(data)
    if (type === 'end') {
      isOver = frame?.retry === null
      throw UNRELATED
    }
    const state = states.get(frame?.view as string)
    if (!frame || !state || type === 'reset') return
    const {
      version,
      observed_at: asOf,
      refresh_ms: refreshMs,
      // A `sync` confirms the version that it names.
      from = version,
      row_id,
      page,
    } = frame as {
      version: number
      observed_at: string
      refresh_ms: number
      from?: number
      row_id: string[]
      page: WatchedRow
    }
    if (type === 'snapshot') Object.assign(state, { rowId: row_id, rows: new Map() })
    else if (from !== state.version) throw UNRELATED
    if (isObject(page)) {
      const { items, ...rest } = page
      const { upsert = items, remove = [], order, new_rows } = frame
      state.page = rest
      apply(
        state,
        upsert as WatchedRow[],
        remove as string[],
        order as string[] | null | undefined,
        new_rows === 'first',
      )
    }
    // A `sync` with an unchanged time means that the router has not read the list again.
    const isRead = type !== 'sync' || refreshMs === 1_000 || asOf !== state.asOf
    Object.assign(state, { version, asOf, refreshMs })
    if (isRead) {
      state.stale = false
      hear(state, () => lose([state]))
    }
    failures = 0
    tell()
  }

  async function connect(): Promise<void> {
    const connection = new AbortController()
    const end = () => connection.abort()
    const forget = onAbort(signal, end)
    let reader: ReadableStreamDefaultReader<string> | undefined
    try {
      hear(states, end)
      // The host's headers function or its `fetch` may never settle.
      const fields = await raceAbort(typeof headers === 'function' ? headers() : headers, connection.signal)
      const search = new URLSearchParams(views.map((view) => ['view', view]))
      const asked = {
        headers: new Headers(fields),
        redirect: 'manual',
        cache: 'no-store',
        signal: connection.signal,
      } as const
      const response = await raceAbort(fetch(`${url}?${search}`, asked), connection.signal)
      const { status } = response
      if (!response.ok || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
        // Retry as for a subscription; 501 means that the route is not part of the deployment.
        isOver = !/^(4(08|29)|5(?!01))/.test(`${status}`)
        throw new WatchRefused(status)
      }
      reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
      const decode = createEventStreamDecoder(
        { onEvent: ({ type, data }) => take(type, data), onRetry: () => {} },
        FRAME_LENGTH,
      )
      while (reader) {
        const { done, value } = await raceAbort(reader.read(), connection.signal)
        if (done) return
        // A large snapshot arrives in pieces, and each piece counts as a sign of life.
        hear(states, end)
        decode(value)
      }
    } finally {
      for (const timer of silences.values()) clearTimeout(timer)
      forget()
      end()
      reader?.cancel().catch(() => {})
    }
  }

  while (!signal?.aborted) {
    try {
      await connect()
    } catch (error) {
      if (isOver && error instanceof WatchRefused && !signal?.aborted) throw error
    }
    if (signal?.aborted) return
    lose(states.values())
    if (isOver) return
    await sleep(reconnectDelay(RETRY_DEFAULT_MS, failures++, Math.random()), signal)
  }
}
