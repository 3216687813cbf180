/** The sources that know users: the index of each where it keeps one, and what its entries tell of their users. */
import * as z from 'zod'
import { BrowserWindow } from '../contract/browser-windows.js'
import type { SourceName } from '../contract/completeness.js'
import { Connection } from '../contract/connections.js'
import { Context } from '../contract/contexts.js'
import { HistoryStream } from '../contract/history.js'
import type { Inspectors } from '../contract/inspectors.js'
import type { UserIndex, UserPart } from '../contract/observation.js'
import type { Ask, Awaitable, Page, PageQuery } from '../contract/page.js'
import { PendingCall } from '../contract/rpc.js'

/** One source of users: its index where it keeps one, its list, and how an entry adds to what is known of its user. */
export interface UserSource {
  name: SourceName
  index: UserIndex
  list(filter: { user_id?: string }, page: PageQuery, ask: Ask): Awaitable<Page<unknown>>
  /** What of its entries is read here. */
  entries: z.ZodType<{ user_id: string }[]>
  /** Adds one entry to the part of its user, which starts as `{ user_id }`. */
  add(part: UserPart, entry: { user_id: string }): void
}

type List = UserSource['list']

function source<Entry extends { user_id: string }>(
  name: SourceName,
  index: UserIndex,
  list: List,
  entries: z.ZodType<Entry[]>,
  add: (part: SampledPart, entry: Entry) => void,
): UserSource {
  return { name, index, list, entries, add: add as UserSource['add'] }
}

const Connections = z.array(
  Connection.pick({
    user_id: true,
    client_id: true,
    client_type: true,
    status: true,
    actions: true,
    last_seen_at: true,
  }),
)
const Contexts = z.array(Context.pick({ user_id: true, client_id: true, client_type: true, status: true }))
const Windows = z.array(BrowserWindow.pick({ user_id: true, client_id: true, status: true }))
const Calls = z.array(PendingCall.pick({ user_id: true, client_id: true }))
const Streams = z.array(HistoryStream.pick({ user_id: true }))

type Of<Entries extends z.ZodArray> = z.infer<Entries>[number]

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

function addConnection(part: SampledPart, entry: Of<typeof Connections>): void {
  include(part, 'observed_client_ids', entry.client_id)
  if (!part.last_seen_at || part.last_seen_at < entry.last_seen_at) part.last_seen_at = entry.last_seen_at
  part.observed_connections ??= 0
  if (entry.status !== 'connected') return
  part.observed_connections += 1
  include(part, 'observed_client_types', entry.client_type)
  for (const action of entry.actions) include(part, 'observed_action_types', action)
}

function addContext(part: SampledPart, entry: Of<typeof Contexts>): void {
  include(part, 'observed_client_ids', entry.client_id)
  include(part, 'observed_client_types', entry.client_type)
  part.observed_contexts = (part.observed_contexts ?? 0) + 1
  part.contexts_by_status ??= {}
  part.contexts_by_status[entry.status] = (part.contexts_by_status[entry.status] ?? 0) + 1
}

function addWindow(part: SampledPart, entry: Of<typeof Windows>): void {
  include(part, 'observed_client_ids', entry.client_id)
  part.observed_browser_windows = (part.observed_browser_windows ?? 0) + 1
  part.browser_windows_by_status ??= {}
  part.browser_windows_by_status[entry.status] = (part.browser_windows_by_status[entry.status] ?? 0) + 1
}

function addCall(part: SampledPart, entry: Of<typeof Calls>): void {
  include(part, 'observed_client_ids', entry.client_id)
  part.pending_rpc = (part.pending_rpc ?? 0) + 1
}

function addStream(part: SampledPart): void {
  part.observed_streams = (part.observed_streams ?? 0) + 1
}

/** The sources of users among `inspectors`, in the order in which answers name them. */
export function userSources(inspectors: Inspectors): UserSource[] {
  const { registry, contextRegistry, browserWindowRegistry, rpc, history } = inspectors
  const sources: UserSource[] = []
  if (registry) {
    const list: List = (filter, page, ask) => registry.listConnections(filter, page, ask)
    sources.push(source('registry', registry, list, Connections, addConnection))
  }
  if (contextRegistry) {
    const list: List = (filter, page, ask) => contextRegistry.listContexts(filter, page, ask)
    sources.push(source('context_registry', contextRegistry, list, Contexts, addContext))
  }
  if (browserWindowRegistry) {
    const list: List = (filter, page, ask) => browserWindowRegistry.listBrowserWindows(filter, page, ask)
    sources.push(source('browser_window_registry', browserWindowRegistry, list, Windows, addWindow))
  }
  if (rpc) {
    const list: List = (filter, page, ask) => rpc.listPending(filter, page, ask)
    sources.push(source('rpc', rpc, list, Calls, addCall))
  }
  const listStreams = history?.listStreams
  if (history && listStreams) {
    const list: List = (filter, page, ask) => listStreams.call(history, filter, page, ask)
    sources.push(source('history', history, list, Streams, addStream))
  }
  return sources
}
