/** The worker counts of browser windows: live from contexts where there is a context registry, else the snapshot. */
import { unlessAborted } from '../async/abort.js'
import type { BrowserWindow } from '../contract/browser-windows.js'
import {
  type Context,
  type ContextRegistryInspector,
  countWorker,
  type WindowCounts,
  type WindowKey,
} from '../contract/contexts.js'
import type { Ask, PageQuery } from '../contract/page.js'
import { budgetOf, type ViewAsk, walk } from './reading.js'

const NONE = { worker_count: 0, idle_count: 0, busy_count: 0 }
const UNKNOWN = { worker_count: null, idle_count: null, busy_count: null }

/**
 * `windows` with the counts of `contexts`. Without such a registry they stay the client's snapshot. A window that the
 * bound on examined entries did not reach has `null` counts.
 *
 * @throws whatever the context registry throws: a registry that is there and fails must not look like one that is not.
 */
export async function withLiveCounts(
  windows: readonly BrowserWindow[],
  contexts: ContextRegistryInspector | undefined,
  view: ViewAsk,
): Promise<BrowserWindow[]> {
  if (!contexts) return [...windows]
  const counts = windows.length === 0 ? new Map() : await countByWindow(windows, contexts, view)
  return windows.map((window) => ({
    ...window,
    ...(counts.get(window.window_id) ?? UNKNOWN),
    window_id: window.window_id,
    counts_source: 'contexts',
  }))
}

type Counts = Omit<WindowCounts, 'window_id'>

async function countByWindow(
  windows: readonly BrowserWindow[],
  contexts: ContextRegistryInspector,
  view: ViewAsk,
): Promise<Map<string, Counts>> {
  const counts = new Map<string, Counts>()
  const keys = windows.map(({ window_id, user_id, client_id }): WindowKey => ({ window_id, user_id, client_id }))
  if (contexts.countByWindow) {
    const ids = keys.map((key) => key.window_id)
    const counted = await unlessAborted(contexts.countByWindow(ids, view.ask, keys), view.ask.signal)
    // One that was not reached must not look like one without workers.
    if (!counted.truncated) for (const id of ids) counts.set(id, NONE)
    for (const { window_id, ...found } of counted) counts.set(window_id, found)
    return counts
  }
  const budget = budgetOf(view)
  for (const key of keys) {
    const list = (page: PageQuery, ask: Ask) => contexts.listContexts(key, page, ask)
    const addIn = (counted: Counts, found: Context[]) => {
      for (const context of found) if (isIn(key, context)) countWorker(counted, context)
    }
    const reading = await walk('context_registry', list, view, { ...NONE }, addIn, budget)
    if ('error' in reading) throw reading.error
    if (reading.truncated || !reading.value) break
    counts.set(key.window_id, reading.value)
  }
  return counts
}

/** A window belongs to one client of one user: what others say to be in it is not. */
const isIn = (key: WindowKey, context: Context) =>
  context.window_id === key.window_id && context.user_id === key.user_id && context.client_id === key.client_id
