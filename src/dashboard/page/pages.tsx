/** Which page shows which path of the router, and where each stands in the navigation. */
import type { JSX } from 'preact'
import type { Address } from './address.js'
import { ListPage, type ListView } from './parts/list.js'
import { ACTIONS } from './views/actions.js'
import { CALLS, CallPage, CallSummary, InstancePage } from './views/calls.js'
import { CommandPage } from './views/command.js'
import { COMMANDS } from './views/commands.js'
import { CONNECTIONS, ConnectionPage } from './views/connections.js'
import { CONTEXTS, ContextPage } from './views/contexts.js'
import { FindingsPage } from './views/findings.js'
import { NODES, TENANTS } from './views/nodes.js'
import { Overview } from './views/overview.js'
import { SESSIONS, SessionPage, SITES, SitePage, SUBSCRIPTIONS } from './views/sessions.js'
import { SourcesPage } from './views/sources.js'
import { MESSAGES, STREAMS } from './views/streams.js'
import { USERS, UserPage } from './views/users.js'
import { WINDOWS, WindowPage } from './views/windows.js'
import { TASK, WorkersPage } from './views/workers.js'

interface Page {
  /** Of the navigation; a page without one is reached by links. */
  title?: string
  /** After `g`, the key that goes there. */
  key?: string
  show(address: Address): JSX.Element
}

// biome-ignore lint/suspicious/noExplicitAny: the record of a view is its own matter
const list = (view: ListView<any>, key: string, above?: () => JSX.Element): Page => ({
  title: view.title,
  key,
  show: (address) => (
    <>
      {above?.()}
      <ListPage view={view} address={address} />
    </>
  ),
})

const record = (Shown: (props: { path: string }) => JSX.Element): Page => ({
  show: ({ path }) => <Shown path={path} />,
})

/** By path; `*` stands for one segment. */
export const PAGES: Readonly<Record<string, Page>> = {
  '/': { title: 'Overview', key: 'o', show: () => <Overview /> },
  '/findings': { title: 'Findings', key: 'f', show: (address) => <FindingsPage address={address} /> },
  '/users': list(USERS, 'u'),
  '/users/*/summary': record(UserPage),
  '/connections': list(CONNECTIONS, 'c'),
  '/connections/*': record(ConnectionPage),
  '/contexts': list(CONTEXTS, 'x'),
  '/contexts/*': record(ContextPage),
  '/workers': { title: 'Workers', key: 'k', show: (address) => <WorkersPage address={address} /> },
  '/workers/tasks/*': { show: (address) => <ListPage view={TASK} address={address} /> },
  '/browser-windows': list(WINDOWS, 'w'),
  '/browser-windows/*': record(WindowPage),
  '/actions': list(ACTIONS, 'a'),
  '/delivery/commands': list(COMMANDS, 'd'),
  '/delivery/status': { show: (address) => <CommandPage address={address} /> },
  '/delivery/nodes': list(NODES, 'n'),
  '/delivery/tenants': list(TENANTS, 't'),
  '/rpc/pending': list(CALLS, 'r', () => <CallSummary />),
  '/rpc/pending/*': record(CallPage),
  '/rpc/instances/*': { show: (address) => <InstancePage address={address} /> },
  '/sites': list(SITES, 'i'),
  '/sites/*': record(SitePage),
  '/sessions': list(SESSIONS, 's'),
  '/sessions/*': record(SessionPage),
  '/subscriptions': list(SUBSCRIPTIONS, 'v'),
  '/history/streams': list(STREAMS, 'h'),
  '/history/messages': { show: (address) => <ListPage view={MESSAGES} address={address} /> },
  '/sources': { title: 'Sources', key: 'q', show: () => <SourcesPage /> },
}

/** The navigation, in groups of paths. */
export const GROUPS: readonly (readonly [string, readonly string[]])[] = [
  ['', ['/', '/findings']],
  ['Who', ['/users', '/connections', '/contexts', '/workers', '/browser-windows', '/actions']],
  ['Work', ['/delivery/commands', '/rpc/pending', '/delivery/nodes', '/delivery/tenants']],
  ['Cooperation', ['/sites', '/sessions', '/subscriptions']],
  ['Evidence', ['/history/streams', '/sources']],
]

/** The page of a path. */
export function pageForPath(path: string): Page | undefined {
  const exact = PAGES[path]
  if (exact) return exact
  const parts = path.split('/')
  return Object.entries(PAGES).find(([pattern]) => {
    const wanted = pattern.split('/')
    return wanted.length === parts.length && wanted.every((part, i) => part === '*' || part === parts[i])
  })?.[1]
}
