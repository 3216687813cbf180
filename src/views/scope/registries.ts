/** The registries of what clients report, for those in sight: connections, contexts, browser windows. */
import type { BrowserWindowRegistryInspector } from '../../contract/browser-windows.js'
import type { RegistryInspector } from '../../contract/connections.js'
import type { ContextRegistryInspector } from '../../contract/contexts.js'
import { annotated, withItems } from '../../contract/page.js'
import { listOfUsers } from './list.js'
import { countOfOne, ifSeen, oneOf, refuse, type Seen, said, scopeUsers } from './seen.js'

export function scopeConnections(registry: RegistryInspector, seen: Seen): RegistryInspector {
  const { listConnectionHistory, countConnections, currentInstances, listActions, connectionChurn } = registry
  return {
    ...scopeUsers(registry, seen),
    listConnections: listOfUsers(seen.users, (filter, page, ask) => registry.listConnections(filter, page, ask)),
    getConnection: async (id, ask) => ifSeen(await registry.getConnection(id, ask), seen),
    ...(listConnectionHistory && {
      async listConnectionHistory(id, page, ask) {
        if (!ifSeen(await registry.getConnection(id, ask), seen)) return null
        const listed = await listConnectionHistory.call(registry, id, page, ask)
        if (listed === null) return null
        return withItems(
          listed,
          listed.items.filter(({ connection_id }) => connection_id === id),
        )
      },
    }),
    ...(currentInstances && {
      async currentInstances(clients, ask) {
        const own = clients.filter(({ user_id }) => seen.has(user_id))
        const found = own.length === 0 ? [] : await currentInstances.call(registry, own, ask)
        const byClient = new Map(own.map((client, i) => [client, found[i] ?? null]))
        return clients.map((client) => byClient.get(client) ?? null)
      },
    }),
    ...(countConnections && { countConnections: countOfOne(seen, countConnections.bind(registry)) }),
    ...(connectionChurn && { connectionChurn: refuse }),
    ...(listActions && {
      async listActions({ user_id: asked, ...filter }, page, ask) {
        const user_id = oneOf(seen, asked)
        if (user_id === null) return null
        const listed = await listActions.call(registry, { ...filter, user_id }, page, ask)
        if (listed === null) return null
        // Without what it has examined: an index of actions passes over silent connections of others.
        const { items, next_cursor, has_more, omitted, truncated } = listed
        return { items, next_cursor, has_more, ...(omitted && { omitted }), ...(truncated && { truncated }) }
      },
    }),
  }
}

export function scopeContexts(contexts: ContextRegistryInspector, seen: Seen): ContextRegistryInspector {
  const { countContexts, countByWindow } = contexts
  return {
    ...scopeUsers(contexts, seen),
    listContexts: listOfUsers(seen.users, (filter, page, ask) => contexts.listContexts(filter, page, ask)),
    getContext: async (id, ask) => ifSeen(await contexts.getContext(id, ask), seen),
    ...(countContexts && { countContexts: countOfOne(seen, countContexts.bind(contexts)) }),
    ...(countByWindow && {
      async countByWindow(windowIds, ask, windows = []) {
        // In a window of which nobody says whose it is, others may have contexts.
        const own = windows.filter(({ user_id }) => seen.has(user_id))
        const ids = own.map(({ window_id }) => window_id)
        const counted = own.length === 0 ? [] : await countByWindow.call(contexts, ids, ask, own)
        return own.length === windowIds.length
          ? counted
          : annotated([...counted], { ...said(counted), truncated: true })
      },
    }),
  }
}

export function scopeWindows(windows: BrowserWindowRegistryInspector, seen: Seen): BrowserWindowRegistryInspector {
  const { countBrowserWindows } = windows
  return {
    ...scopeUsers(windows, seen),
    listBrowserWindows: listOfUsers(seen.users, (filter, page, ask) => windows.listBrowserWindows(filter, page, ask)),
    getBrowserWindow: async (id, ask) => ifSeen(await windows.getBrowserWindow(id, ask), seen),
    ...(countBrowserWindows && { countBrowserWindows: countOfOne(seen, countBrowserWindows.bind(windows)) }),
  }
}
