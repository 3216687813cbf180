/** The browser-windows family: windows that hold contexts, their capacity and their state. */
import * as z from 'zod'
import { answerOf } from './answer.js'
import { Ownership } from './contexts.js'
import { type Family, foldUsers } from './family.js'
import { filterBy, Id, idField, Timestamp } from './ids.js'
import { addNames, countOne, type FoldedPart, orUnknown, type UserIndex } from './observation.js'
import { inputObject } from './options.js'
import type { Awaitable, Indexed, InspectionContext, Page, PageQuery } from './page.js'

/** Whether a window is open or closed. */
export const WindowStatus = z
  .enum(['open', 'stale', 'closed'])
  .describe('`open`: reported in time; `stale`: not reported in time; `closed`: reported as closed.')
export type WindowStatus = z.infer<typeof WindowStatus>

/** Type of a browser window. */
export const WindowType = z
  .enum(['normal', 'popup', 'panel', 'app', 'devtools'])
  .describe("Window type, as in browsers' APIs.")
export type WindowType = z.infer<typeof WindowType>

/** Display state of a browser window. */
export const WindowState = z
  .enum(['normal', 'minimized', 'maximized', 'fullscreen'])
  .describe("Window state, as in browsers' APIs.")
export type WindowState = z.infer<typeof WindowState>

const Count = z.int().min(0)

/**
 * A browser window in its current registry state. With a context registry the three counts are computed from contexts;
 * otherwise they are the client's reported snapshot. `counts_source` says which.
 */
export const BrowserWindow = z
  .object({
    window_id: idField('window_id'),
    user_id: idField('user_id'),
    client_id: idField('client_id'),
    ownership: Ownership.describe('Whether it serves its user, or tasks as a worker.'),
    focused: z.boolean().nullable().describe('Whether it has the focus; `null`: not reported.'),
    type: WindowType.nullable().describe('Window type; `null` if not reported.'),
    state: WindowState.nullable().describe('Window state; `null` if not reported.'),
    incognito: z.boolean().nullable().describe('Whether it is a private window; `null`: not reported.'),
    tab_count: Count.nullable().describe('Tabs in it; `null`: not reported.'),
    capacity: Count.nullable().describe('Maximum number of worker contexts in it; `null`: not reported.'),
    draining: z.boolean().nullable().describe('Whether it takes no more tasks; `null`: not reported.'),
    status: WindowStatus.describe('Current status.'),
    worker_count: Count.nullable().describe(
      'Worker contexts of its user in it, of any client, neither closed nor stale; `null` if not known.',
    ),
    idle_count: Count.nullable().describe('Idle workers without a task; `null` if not known.'),
    busy_count: Count.nullable().describe('Workers with a task; `null` if not known.'),
    counts_source: z
      .enum(['contexts', 'snapshot'])
      .describe('Whether the three counts are live from contexts, or as the client reported them.'),
    updated_at: Timestamp.describe('When it was last reported or changed.'),
  })
  .describe('A browser window in its current registry state.')
export type BrowserWindow = z.infer<typeof BrowserWindow>

/** `BrowserWindow` as routes answer it. */
export const BrowserWindowAnswer = answerOf(BrowserWindow, ['window_id', 'user_id', 'status'])
export type BrowserWindowAnswer = z.output<typeof BrowserWindowAnswer>
/** `BrowserWindow` as an inspector returns it: a field that is absent is not known. */
export type BrowserWindowInput = z.input<typeof BrowserWindowAnswer>

/** Filters of `/browser-windows`. A filter matches known values only: `focused: false` matches no window of unknown focus. */
export const BrowserWindowFilter = z.object({
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  ownership: Ownership.optional().describe('Only workers, or only user-owned windows.'),
  status: WindowStatus.optional().describe('Only with this status.'),
  type: WindowType.optional().describe('Only of this type.'),
  state: WindowState.optional().describe('Only in this state.'),
  focused: z.boolean().optional().describe('Only with the focus, or only without.'),
  incognito: z.boolean().optional().describe('Only private windows, or only others.'),
  draining: z
    .boolean()
    .optional()
    .describe('Only windows that accept no more tasks (`true`), or only others (`false`).'),
})
export type BrowserWindowFilter = z.infer<typeof BrowserWindowFilter>

/** Window counts, every enum value present; `unknown` counts windows without the field. */
export interface BrowserWindowCounts extends Indexed {
  /** Number of windows under the filter. */
  total: number
  /** Number of windows of each status. */
  by_status: Record<WindowStatus, number>
  /** Number of windows of each ownership. */
  by_ownership: Record<Ownership, number> & { unknown?: number }
  /** Number of windows of each type. */
  by_type: Record<WindowType | 'unknown', number>
  /** Number of windows of each state. */
  by_state: Record<WindowState | 'unknown', number>
}

/** Reads a browser-window registry; its records have `counts_source: 'snapshot'`. */
export interface BrowserWindowRegistryInspector extends UserIndex {
  /** Lists retained windows under `filter`, one page at a time. */
  listBrowserWindows(
    filter: BrowserWindowFilter,
    page: PageQuery,
    ctx: InspectionContext,
  ): Awaitable<Page<BrowserWindowInput>>
  /** Returns a retained window, or `null` if it is unknown. */
  getBrowserWindow(windowId: string, ctx: InspectionContext): Awaitable<BrowserWindowInput | null>
  /** Exact counts under `filter`, or `null` if no index covers it; the view then samples. */
  countBrowserWindows?(
    filter: BrowserWindowFilter,
    ctx: InspectionContext,
  ): Awaitable<Partial<BrowserWindowCounts> | null>
}

/**
 * A report of a client about one of its windows, its own counts included where it keeps them. A field from `focused` to
 * `busy_count` that is omitted keeps the value reported before; an explicit `null` makes it unknown.
 */
export const ReportBrowserWindowInput = inputObject({
  /** Id of the window. */
  window_id: Id,
  /** Id of the user. */
  user_id: Id,
  /** Id of the client; unique among the clients of the user. */
  client_id: Id,
  /** Who opened the window. @default 'user-owned' */
  ownership: Ownership.default('user-owned'),
  /** Whether the window has the focus; `null` if unknown. */
  focused: z.boolean().nullish(),
  /** Type of the window; `null` if unknown. */
  type: WindowType.nullish(),
  /** Display state of the window; `null` if unknown. */
  state: WindowState.nullish(),
  /** Whether the window is private; `null` if unknown. */
  incognito: z.boolean().nullish(),
  /** Number of tabs; `null` if unknown. */
  tab_count: Count.nullish(),
  /** Maximum number of workers in the window; `null` if unknown. */
  capacity: Count.nullish(),
  /** Whether the window takes no new workers; `null` if unknown. */
  draining: z.boolean().nullish(),
  /** Number of workers in the window; `null` if unknown. */
  worker_count: Count.nullish(),
  /** Number of idle workers in the window; `null` if unknown. */
  idle_count: Count.nullish(),
  /** Number of busy workers in the window; `null` if unknown. */
  busy_count: Count.nullish(),
  /** A reported window is open; the registry alone sets `stale` and `closed`. */
  status: z.literal('open').default('open'),
})
export type ReportBrowserWindowInput = z.input<typeof ReportBrowserWindowInput>

/** The live window registry; staleness, uniqueness and ownership as in the context registry. */
export interface BrowserWindowRegistry {
  /**
   * Inserts or updates a window; the times are the registry's.
   *
   * @throws Refusal `invalid_input`, `identity_conflict`, `capacity_exceeded`.
   */
  report(input: ReportBrowserWindowInput): Promise<BrowserWindow>
  /**
   * Whether the window was there and not closed. A closed window reads `focused: false`; if it is reported again
   * without `focused`, its focus is unknown.
   */
  close(windowId: string): Promise<boolean>
}

/** The attributes of a window that a report can omit. */
const ATTRIBUTES = {
  focused: true,
  type: true,
  state: true,
  incognito: true,
  tab_count: true,
  capacity: true,
  draining: true,
  worker_count: true,
  idle_count: true,
  busy_count: true,
} as const
type Attributes = Pick<BrowserWindow, keyof typeof ATTRIBUTES>

/** Returns the attributes of a window after `input`, given the record `known` before; never reported ones are `null`. */
export function reportedAttributes(
  input: z.output<typeof ReportBrowserWindowInput>,
  known: BrowserWindow | undefined,
): Attributes {
  const names = Object.keys(ATTRIBUTES) as (keyof Attributes)[]
  return Object.fromEntries(
    names.map((name) => [name, input[name] === undefined ? (known?.[name] ?? null) : input[name]]),
  ) as unknown as Attributes
}

/** Adds a window to its user's observation: `observed_browser_windows` counts open windows. */
function foldWindow(part: FoldedPart, entry: Pick<BrowserWindowAnswer, 'client_id' | 'status'>): void {
  part.observed_browser_windows = (part.observed_browser_windows ?? 0) + Number(entry.status === 'open')
  part.browser_windows_by_status = countOne(part.browser_windows_by_status, WindowStatus.options, entry.status)
  addNames(part, 'observed_client_ids', [entry.client_id])
}

/** Browser windows, for the table of families. */
export const BROWSER_WINDOW_FAMILY = {
  facility: 'browserWindows',
  capability: 'browser_window_registry',
  methods: { listBrowserWindows: true, getBrowserWindow: true },
  operations: {},
  components: { BrowserWindow: BrowserWindowAnswer, WindowState, WindowStatus, WindowType } as Family['components'],
  counted: {
    status: WindowStatus,
    ownership: orUnknown(Ownership),
    type: orUnknown(WindowType),
    state: orUnknown(WindowState),
  },
  users: foldUsers('listBrowserWindows', BrowserWindowAnswer, 'window_id', foldWindow),
} as const satisfies Family<BrowserWindowRegistryInspector>
