/** The worker counts of browser windows: live from the context registry if there is one, otherwise the snapshot. */
import { raceAbort } from '../async/abort.js'
import { BadRecord, readRecord } from '../contract/bad-record.js'
import { BrowserWindow } from '../contract/browser-windows.js'
import {
  Context,
  type ContextRegistryInspector,
  countWorker,
  type WindowCounts,
  type WindowKey,
} from '../contract/contexts.js'
import type { InspectionContext, PageQuery } from '../contract/page.js'
import { budgetOf, type ViewContext, viewForSource, walkEntries } from './reading.js'

const SOURCE = 'context_registry'

const keyOf = ({ window_id, user_id }: BrowserWindow): WindowKey => ({ window_id, user_id })

const NONE = { worker_count: 0, idle_count: 0, busy_count: 0 }
const UNKNOWN = { worker_count: null, idle_count: null, busy_count: null }

/**
 * Replaces the counts of `windows` with live ones from `contexts`. Without a context registry they stay the client's
 * snapshot. A window that the bound on examined entries did not reach has `null` counts.
 *
 * @throws what the context registry throws: a failing registry must not look like a missing one.
 */
export async function withLiveCounts(
  windows: readonly BrowserWindow[],
  contexts: ContextRegistryInspector | undefined,
  view: ViewContext,
): Promise<BrowserWindow[]> {
  if (!contexts) return [...windows]
  // Invalid windows are left out when the response is encoded.
  const read = windows.map((window, i) => readRecord(BrowserWindow, window, i))
  const keys = read.flatMap((one) => (one instanceof BadRecord ? [] : keyOf(one.data)))
  const counts = keys.length === 0 ? new Map() : await countByWindow(keys, contexts, viewForSource(view, SOURCE))
  return read.map((one, i) => {
    if (one instanceof BadRecord) return windows[i] as BrowserWindow
    const { window_id } = one.data
    return { ...one.data, ...(counts.get(window_id) ?? UNKNOWN), window_id, counts_source: 'contexts' }
  })
}

type Counts = Omit<WindowCounts, 'window_id'>

async function countByWindow(
  keys: readonly WindowKey[],
  contexts: ContextRegistryInspector,
  view: ViewContext,
): Promise<Map<string, Counts>> {
  const counts = new Map<string, Counts>()
  if (contexts.countByWindow) {
    const ids = keys.map((key) => key.window_id)
    const counted = await raceAbort(contexts.countByWindow(ids, view.ctx, keys), view.ctx.signal)
    // A window that was not reached must not look like one without workers.
    if (!counted.truncated) for (const id of ids) counts.set(id, NONE)
    for (const { window_id, ...found } of counted) counts.set(window_id, found)
    return counts
  }
  const budget = budgetOf(view)
  for (const key of keys) {
    const list = (page: PageQuery, ctx: InspectionContext) => contexts.listContexts(key, page, ctx)
    const addIn = (counted: Counts, found: Context[]) => {
      for (const context of found) if (isIn(key, context)) countWorker(counted, context)
    }
    const reading = await walkEntries(
      SOURCE,
      { entry: Context, id: 'context_id', list },
      view,
      { ...NONE },
      addIn,
      budget,
    )
    if ('error' in reading) throw reading.error
    // A context that cannot be read leaves its own window uncounted, and no other.
    if (!reading.truncated && reading.value) counts.set(key.window_id, reading.value)
    if (budget.entries <= 0 || budget.pages <= 0) break
  }
  return counts
}

/** A context counts only in a window of its own user: other users can report the same window id. */
const isIn = (key: WindowKey, context: Context) =>
  context.window_id === key.window_id && context.user_id === key.user_id
