/** Maps paths of the router to pages and places in the navigation. */
import type { JSX } from 'preact'
import { type Address, decoded } from './address.js'
import { ListPage, type ListView } from './parts/list.js'
import { CALLS, CallPage, CallSummary, ENDED_CALLS, InstancePage } from './views/calls.js'
import { ChangesPage } from './views/changes.js'
import { CommandPage } from './views/command.js'
import { COMMANDS, MAILBOXES } from './views/commands.js'
import { ACTIONS, CONNECTIONS, ConnectionPage } from './views/connections.js'
import { CONTEXTS, ContextPage, TASK } from './views/contexts.js'
import { FindingsPage } from './views/findings.js'
import { NODES, TENANTS } from './views/nodes.js'
import { Overview } from './views/overview.js'
import { SESSIONS, SessionPage, SITES, SitePage, SUBSCRIPTIONS } from './views/sessions.js'
import { SourcesPage } from './views/sources.js'
import { MESSAGES, STREAMS } from './views/streams.js'
import { USERS, UserPage } from './views/users.js'
import { WINDOWS, WindowPage } from './views/windows.js'

export interface Page {
  /** Of the navigation; a page without one is reached by links. */
  title?: string
  /** After `g`, the key that goes there. */
  key?: string
  /** The list that a record stands in. */
  parent?: string
  /** What a record is called, and which one it is. */
  noun?: string
  id?(address: Address): string
  /** `name` is the deployment. */
  show(address: Address, name: string): JSX.Element
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

/** A segment of the path, decoded where it can be. */
const segmentOf = ({ path }: Address, place: number): string => decoded(path.split('/')[place] ?? '')

type Shown = (props: { path: string; address: Address }) => JSX.Element

/** The page of one record, whose id is the segment of its path at `place`. */
const record = (parent: string, noun: string, Shown: Shown, place = 2): Page => ({
  parent,
  noun,
  id: (address) => segmentOf(address, place),
  show: (address) => <Shown path={address.path} address={address} />,
})

/** By path; `*` stands for one segment. */
export const PAGES: Readonly<Record<string, Page>> = {
  '/': { title: 'Overview', key: 'o', show: (_, name) => <Overview name={name} /> },
  '/findings': { title: 'Findings', key: 'f', show: (address) => <FindingsPage address={address} /> },
  '/changes': { title: 'What changed', key: 'l', show: (address) => <ChangesPage address={address} /> },
  '/users': list(USERS, 'u'),
  '/users/*/summary': record('/users', 'user', UserPage),
  '/connections': list(CONNECTIONS, 'c'),
  '/connections/*': record('/connections', 'connection', ConnectionPage),
  '/contexts': { ...list(CONTEXTS, 'k'), title: 'Workers' },
  '/contexts/*': record('/contexts', 'context', ContextPage),
  '/workers/tasks/*': record('/contexts', 'task', ({ address }) => <ListPage view={TASK} address={address} />, 3),
  '/browser-windows': list(WINDOWS, 'w'),
  '/browser-windows/*': record('/browser-windows', 'window', WindowPage),
  '/actions': list(ACTIONS, 'a'),
  '/delivery/commands': list(COMMANDS, 'd'),
  '/delivery/status': {
    parent: '/delivery/commands',
    noun: 'command',
    id: ({ query }) => query.get('command_id') ?? '',
    show: (address) => <CommandPage address={address} />,
  },
  '/delivery/mailboxes': list(MAILBOXES, 'm'),
  '/delivery/nodes': list(NODES, 'n'),
  '/delivery/tenants': list(TENANTS, 't'),
  '/rpc/pending': list(CALLS, 'r', () => <CallSummary />),
  '/rpc/pending/*': record('/rpc/pending', 'call', CallPage, 3),
  '/rpc/ended': list(ENDED_CALLS, 'e'),
  '/rpc/ended/*': record('/rpc/ended', 'call', CallPage, 3),
  '/rpc/instances/*': record('/rpc/pending', 'instance', InstancePage, 3),
  '/sites': list(SITES, 'i'),
  '/sites/*': record('/sites', 'site', SitePage),
  '/sessions': list(SESSIONS, 's'),
  '/sessions/*': record('/sessions', 'session', SessionPage),
  '/subscriptions': list(SUBSCRIPTIONS, 'v'),
  '/history/streams': list(STREAMS, 'h'),
  '/history/messages': {
    parent: '/history/streams',
    noun: 'stream',
    id: ({ query }) => query.get('stream') ?? '',
    show: (address) => <ListPage view={MESSAGES} address={address} />,
  },
  '/sources': { title: 'Sources', key: 'q', show: () => <SourcesPage /> },
}

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
