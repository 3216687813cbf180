/** The browser-windows family: windows that hold contexts, their capacity and their state. */
import * as z from 'zod'
import { Ownership } from './contexts.js'
import { type Family, foldUsers } from './family.js'
import { filterBy, Id, named, Timestamp } from './ids.js'
import { type FoldedPart, include, oneMore, type UserIndex } from './observation.js'
import type { Ask, Awaitable, Indexed, Page, PageQuery } from './page.js'

export const WindowStatus = z
  .enum(['open', 'stale', 'closed'])
  .describe('`open`: reported in time; `stale`: not reported in time; `closed`: reported as gone.')
export type WindowStatus = z.infer<typeof WindowStatus>

export const WindowType = z
  .enum(['normal', 'popup', 'panel', 'app', 'devtools'])
  .describe('What kind of window it is, as browsers have it.')
export type WindowType = z.infer<typeof WindowType>

export const WindowState = z
  .enum(['normal', 'minimized', 'maximized', 'fullscreen'])
  .describe('How a window is shown, as browsers have it.')
export type WindowState = z.infer<typeof WindowState>

const Count = z.int().min(0)

/**
 * A browser window in its current registry state. With a context registry present the three counts are live from
 * contexts; otherwise they are the snapshot that the client reported, and `counts_source` says which.
 */
export const BrowserWindow = z
  .object({
    window_id: named('window_id'),
    user_id: named('user_id'),
    client_id: named('client_id'),
    ownership: Ownership.describe('Whether it serves its user, or tasks as a worker.'),
    focused: z.boolean().describe('Whether it has the focus.'),
    type: WindowType.describe('What kind of window it is.'),
    state: WindowState.describe('How it is shown.'),
    incognito: z.boolean().describe('Whether it is a private window.'),
    tab_count: Count.describe('Tabs in it.'),
    capacity: Count.nullable().describe('Most worker contexts that it takes; `null` where that is not known.'),
    draining: z.boolean().describe('Whether it takes no more tasks.'),
    status: WindowStatus.describe('Where it stands.'),
    worker_count: Count.nullable().describe('Worker contexts in it, neither closed nor stale; `null` if not known.'),
    idle_count: Count.nullable().describe('Those of them that are idle and carry no task; `null` if not known.'),
    busy_count: Count.nullable().describe('Those of them that carry a task; `null` if not known.'),
    counts_source: z
      .enum(['contexts', 'snapshot'])
      .describe('Whether the three counts are live from contexts, or as the client reported them.'),
    updated_at: Timestamp.describe('When it was last reported or changed.'),
  })
  .describe('A browser window in its current registry state.')
export type BrowserWindow = z.infer<typeof BrowserWindow>

/** Filters of `/browser-windows`. */
export const BrowserWindowFilter = z.object({
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  ownership: Ownership.optional().describe('Only workers, or only what is user-owned.'),
  status: WindowStatus.optional().describe('Only with this status.'),
  type: WindowType.optional().describe('Only of this type.'),
  state: WindowState.optional().describe('Only in this state.'),
  focused: z.boolean().optional().describe('Only with the focus, or only without.'),
  incognito: z.boolean().optional().describe('Only private windows, or only others.'),
  draining: z.boolean().optional().describe('Only those that take no more tasks, or only others.'),
})
export type BrowserWindowFilter = z.infer<typeof BrowserWindowFilter>

/** How many windows there are, every enum value present. */
export interface BrowserWindowCounts extends Indexed {
  total: number
  by_status: Record<WindowStatus, number>
  by_ownership: Record<Ownership, number>
  by_type: Record<WindowType, number>
  by_state: Record<WindowState, number>
}

/** Reads a browser-window registry; `counts_source` of what it answers is `snapshot`. */
export interface BrowserWindowRegistryInspector extends UserIndex {
  listBrowserWindows(filter: BrowserWindowFilter, page: PageQuery, ask: Ask): Awaitable<Page<BrowserWindow>>
  getBrowserWindow(windowId: string, ask: Ask): Awaitable<BrowserWindow | null>
  /** Exact counts under `filter`, or `null` where no index answers; then the view samples. */
  countBrowserWindows?(filter: BrowserWindowFilter, ask: Ask): Awaitable<BrowserWindowCounts | null>
}

/** A report of a client about one of its windows, its own counts included where it keeps them. */
export const ReportBrowserWindowInput = z.object({
  window_id: Id,
  user_id: Id,
  client_id: Id,
  ownership: Ownership.default('user-owned'),
  focused: z.boolean().default(false),
  type: WindowType.default('normal'),
  state: WindowState.default('normal'),
  incognito: z.boolean().default(false),
  tab_count: Count.default(0),
  capacity: Count.nullable().default(null),
  draining: z.boolean().default(false),
  worker_count: Count.nullable().default(null),
  idle_count: Count.nullable().default(null),
  busy_count: Count.nullable().default(null),
  /** A reported window is open; `stale` and `closed` are the registry's to say. */
  status: z.literal('open').default('open'),
})
export type ReportBrowserWindowInput = z.input<typeof ReportBrowserWindowInput>

/** The live window registry; staleness, uniqueness and ownership as in the context registry. */
export interface BrowserWindowRegistry {
  /** @throws Refusal `invalid_input`, `identity_conflict`, `capacity_exceeded`. */
  report(input: ReportBrowserWindowInput): Promise<BrowserWindow>
  /** Whether the window was there and not closed. */
  close(windowId: string): Promise<boolean>
}

/** What a window says of its user. */
export function foldWindow(part: FoldedPart, entry: Pick<BrowserWindow, 'client_id' | 'status'>): void {
  part.observed_browser_windows = (part.observed_browser_windows ?? 0) + 1
  part.browser_windows_by_status = oneMore(part.browser_windows_by_status, WindowStatus.options, entry.status)
  include(part, 'observed_client_ids', [entry.client_id])
}

/** Browser windows, for the table of families. */
export const BROWSER_WINDOW_FAMILY = {
  facility: 'browserWindows',
  capability: 'browser_window_registry',
  methods: { listBrowserWindows: true, getBrowserWindow: true },
  operations: {},
  components: { BrowserWindow, WindowState, WindowStatus, WindowType },
  counted: { status: WindowStatus, ownership: Ownership, type: WindowType, state: WindowState },
  users: foldUsers('listBrowserWindows', BrowserWindow, foldWindow),
} as const satisfies Family<BrowserWindowRegistryInspector>
