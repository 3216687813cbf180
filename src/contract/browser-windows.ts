/** The browser-windows family: windows that hold contexts, their capacity and their state. */
import * as z from 'zod'
import { Ownership } from './contexts.js'
import { type Family, foldUsers } from './family.js'
import { Id, Timestamp } from './ids.js'
import { type FoldedPart, include, oneMore, type UserIndex } from './observation.js'
import type { Ask, Awaitable, Indexed, Page, PageQuery } from './page.js'

export const WindowStatus = z.enum(['open', 'stale', 'closed'])
export type WindowStatus = z.infer<typeof WindowStatus>

export const WindowType = z.enum(['normal', 'popup', 'panel', 'app', 'devtools'])
export type WindowType = z.infer<typeof WindowType>

export const WindowState = z.enum(['normal', 'minimized', 'maximized', 'fullscreen'])
export type WindowState = z.infer<typeof WindowState>

const Count = z.int().min(0)

/**
 * A browser window in its current registry state. With a context registry present the three counts are live from
 * contexts; otherwise they are the snapshot that the client reported, and `counts_source` says which.
 */
export const BrowserWindow = z.object({
  window_id: z.string(),
  user_id: z.string(),
  client_id: z.string(),
  ownership: Ownership,
  focused: z.boolean(),
  type: WindowType,
  state: WindowState,
  incognito: z.boolean(),
  tab_count: Count,
  capacity: Count.nullable(),
  draining: z.boolean(),
  status: WindowStatus,
  worker_count: Count.nullable(),
  idle_count: Count.nullable(),
  busy_count: Count.nullable(),
  counts_source: z.enum(['contexts', 'snapshot']),
  updated_at: Timestamp,
})
export type BrowserWindow = z.infer<typeof BrowserWindow>

/** Filters of `/browser-windows`. */
export const BrowserWindowFilter = z.object({
  user_id: Id.optional(),
  client_id: Id.optional(),
  ownership: Ownership.optional(),
  status: WindowStatus.optional(),
  type: WindowType.optional(),
  state: WindowState.optional(),
  focused: z.boolean().optional(),
  incognito: z.boolean().optional(),
  draining: z.boolean().optional(),
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
