/** What the entries of a source tell about their users: the sampling counterpart of a source's own `observeUsers`. */
import type { BrowserWindow } from '../contract/browser-windows.js'
import type { SourceName } from '../contract/completeness.js'
import type { Connection } from '../contract/connections.js'
import type { Context } from '../contract/contexts.js'
import type { HistoryStream } from '../contract/history.js'
import type { Inspectors } from '../contract/inspectors.js'
import type { UserIndex, UserPart } from '../contract/observation.js'
import type { Ask, Awaitable, Page, PageQuery } from '../contract/page.js'
import type { PendingCall } from '../contract/rpc.js'

/** One source of users: its index where it keeps one, its list, and how an entry adds to what is known of its user. */
export interface UserSource {
  name: SourceName
  index: UserIndex
  list(filter: { user_id?: string }, page: PageQuery, ask: Ask): Awaitable<Page<{ user_id: string }>>
  /** Adds one entry to the part of its user, which starts as `{ user_id }`. */
  add(part: UserPart, entry: { user_id: string }): void
}

function source<Entry extends { user_id: string }>(
  name: SourceName,
  index: UserIndex,
  list: (filter: { user_id?: string }, page: PageQuery, ask: Ask) => Awaitable<Page<Entry>>,
  add: (part: SampledPart, entry: Entry) => void,
): UserSource {
  return { name, index, list, add: add as UserSource['add'] }
}

/** A part that sampling adds to, entry by entry. */
interface SampledPart extends UserPart {
  observed_client_types?: Set<string>
  observed_action_types?: Set<string>
  observed_client_ids?: Set<string>
}

type ListField = 'observed_client_types' | 'observed_action_types' | 'observed_client_ids'

function include(part: SampledPart, field: ListField, name: string): void {
  part[field] ??= new Set()
  part[field].add(name)
}

function addConnection(part: SampledPart, entry: Connection): void {
  include(part, 'observed_client_ids', entry.client_id)
  if (!part.last_seen_at || part.last_seen_at < entry.last_seen_at) part.last_seen_at = entry.last_seen_at
  part.observed_connections ??= 0
  if (entry.status !== 'connected') return
  part.observed_connections += 1
  include(part, 'observed_client_types', entry.client_type)
  for (const action of entry.actions) include(part, 'observed_action_types', action)
}

function addContext(part: SampledPart, entry: Context): void {
  include(part, 'observed_client_ids', entry.client_id)
  include(part, 'observed_client_types', entry.client_type)
  part.observed_contexts = (part.observed_contexts ?? 0) + 1
  part.contexts_by_status ??= {}
  part.contexts_by_status[entry.status] = (part.contexts_by_status[entry.status] ?? 0) + 1
}

function addWindow(part: SampledPart, entry: BrowserWindow): void {
  include(part, 'observed_client_ids', entry.client_id)
  part.observed_browser_windows = (part.observed_browser_windows ?? 0) + 1
  part.browser_windows_by_status ??= {}
  part.browser_windows_by_status[entry.status] = (part.browser_windows_by_status[entry.status] ?? 0) + 1
}

function addCall(part: SampledPart, entry: PendingCall): void {
  include(part, 'observed_client_ids', entry.client_id)
  part.pending_rpc = (part.pending_rpc ?? 0) + 1
}

function addStream(part: SampledPart, _entry: HistoryStream): void {
  part.observed_streams = (part.observed_streams ?? 0) + 1
}

/** The sources of users among `inspectors`, in the order in which answers name them. */
export function userSources(inspectors: Inspectors): UserSource[] {
  const { registry, contextRegistry, browserWindowRegistry, rpc, history } = inspectors
  const sources: UserSource[] = []
  if (registry)
    sources.push(source('registry', registry, (f, page, ask) => registry.listConnections(f, page, ask), addConnection))
  if (contextRegistry)
    sources.push(
      source(
        'context_registry',
        contextRegistry,
        (f, page, ask) => contextRegistry.listContexts(f, page, ask),
        addContext,
      ),
    )
  if (browserWindowRegistry)
    sources.push(
      source(
        'browser_window_registry',
        browserWindowRegistry,
        (f, page, ask) => browserWindowRegistry.listBrowserWindows(f, page, ask),
        addWindow,
      ),
    )
  if (rpc) sources.push(source('rpc', rpc, (f, page, ask) => rpc.listPending(f, page, ask), addCall))
  const listStreams = history?.listStreams
  if (history && listStreams)
    sources.push(source('history', history, (f, page, ask) => listStreams.call(history, f, page, ask), addStream))
  return sources
}
