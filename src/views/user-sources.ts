/** The sources that know users: the index of each where it keeps one, and what its entries tell of their users. */
import * as z from 'zod'
import { BrowserWindow, tellWindow } from '../contract/browser-windows.js'
import type { SourceName } from '../contract/completeness.js'
import { Connection, tellConnection } from '../contract/connections.js'
import { Context, tellContext } from '../contract/contexts.js'
import { HistoryStream, tellStream } from '../contract/history.js'
import type { Inspectors } from '../contract/inspectors.js'
import type { Tell, UserIndex, UserPart } from '../contract/observation.js'
import type { Ask, Awaitable, Page, PageQuery } from '../contract/page.js'
import { PendingCall, tellCall } from '../contract/rpc.js'

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
  tell: Tell<Entry>,
): UserSource {
  return { name, index, list, entries, add: tell as UserSource['add'] }
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

/** The sources of users among `inspectors`, in the order in which answers name them. */
export function userSources(inspectors: Inspectors): UserSource[] {
  const { registry, contextRegistry, browserWindowRegistry, rpc, history } = inspectors
  const sources: UserSource[] = []
  if (registry) {
    const list: List = (filter, page, ask) => registry.listConnections(filter, page, ask)
    sources.push(source('registry', registry, list, Connections, tellConnection))
  }
  if (contextRegistry) {
    const list: List = (filter, page, ask) => contextRegistry.listContexts(filter, page, ask)
    sources.push(source('context_registry', contextRegistry, list, Contexts, tellContext))
  }
  if (browserWindowRegistry) {
    const list: List = (filter, page, ask) => browserWindowRegistry.listBrowserWindows(filter, page, ask)
    sources.push(source('browser_window_registry', browserWindowRegistry, list, Windows, tellWindow))
  }
  if (rpc) {
    const list: List = (filter, page, ask) => rpc.listPending(filter, page, ask)
    sources.push(source('rpc', rpc, list, Calls, tellCall))
  }
  const listStreams = history?.listStreams
  if (history && listStreams) {
    const list: List = (filter, page, ask) => listStreams.call(history, filter, page, ask)
    sources.push(source('history', history, list, Streams, tellStream))
  }
  return sources
}
