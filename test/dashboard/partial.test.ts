/** Opens every page over inspectors that give required fields alone: what they leave out reads as unknown, never as a value. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { KEY } from '../diagnostics/subject.js'
import { inChromium } from './chromium.js'
import { startViewedOnce } from './host.js'

type Row = Readonly<Record<string, string>>

const user_id = 'alice'
const client = { user_id, client_id: 'desk' }
const ROWS = {
  connections: [
    { connection_id: 'conn-1', ...client, status: 'connected' },
    { connection_id: 'conn-2', ...client, status: 'disconnected' },
  ],
  events: [{ connection_id: 'conn-1', ...client, event: 'connected' }],
  contexts: ['active', 'idle', 'closed', 'stale'].map((status) => ({ context_id: `ctx-${status}`, user_id, status })),
  windows: ['open', 'closed', 'stale'].map((status) => ({ window_id: `win-${status}`, user_id, status })),
  calls: [{ correlation_id: 'call-1', ...client }],
  messages: [{ message_id: 'msg-1', stream: 'users/alice/log', user_id }],
  commands: ['waiting', 'attempted', 'acknowledged', 'resulted', 'expired'].map((state) => ({
    command_id: `cmd-${state}`,
    ...client,
    state,
  })),
  nodes: [{ node_id: 'node-1' }],
  tenants: [{ scope_id: 'alice' }],
  sites: [{ site_id: 'notes', owner: user_id }],
  sessions: ['pending', 'active', 'closed'].map((state) => ({
    session_id: `session-${state}`,
    site_id: 'notes',
    owner: user_id,
    state,
  })),
  subscriptions: [{ subscription_id: 'sub-1', session_id: 'session-active', user_id }],
} satisfies Record<string, Row[]>

const page = (rows: readonly Row[]) => ({ items: rows, next_cursor: null, has_more: false, truncated: false })
/** A filter matches known values only. */
const list = (rows: readonly Row[]) => (filter: Row) =>
  page(rows.filter((row) => Object.entries(filter).every(([name, value]) => row[name] === value)))
const get = (rows: readonly Row[]) => (id: string) => rows.find((row) => Object.values(row)[0] === id) ?? null
const minutes = () => ({ items: [{ minute: `${new Date().toISOString().slice(0, 17)}00.000Z` }] })

/** `parts` are what is known of the one command. */
const bare = (parts: object) =>
  ({
    registry: {
      listConnections: list(ROWS.connections),
      getConnection: get(ROWS.connections),
      listConnectionHistory: () => page(ROWS.events),
      listConnectionEvents: list(ROWS.events),
      connectionChurn: minutes,
      listActions: () => ({ ...page([{ name: 'print' }]), indexed: true }),
    },
    contextRegistry: { listContexts: list(ROWS.contexts), getContext: get(ROWS.contexts) },
    browserWindowRegistry: { listBrowserWindows: list(ROWS.windows), getBrowserWindow: get(ROWS.windows) },
    rpc: {
      listPending: list(ROWS.calls),
      getPending: get(ROWS.calls),
      listEnded: list(ROWS.calls),
      getEnded: get(ROWS.calls),
      checkInstance: () => ({ current: false, current_instance_id: null }),
      summary: () => ({}),
    },
    history: { readMessages: () => page(ROWS.messages), listStreams: list(ROWS.messages) },
    deduplicator: { summary: () => ({}), userSummary: () => ({ user_id }) },
    delivery: {
      summary: () => ({}),
      listNodes: () => page(ROWS.nodes),
      listTenants: () => page(ROWS.tenants),
      status: ({ command_id }: Row) => ({ command_id, ...client, ...parts }),
      listCommands: list(ROWS.commands),
      listMailboxes: list([client]),
      deliveryChurn: minutes,
    },
    sites: { listSites: list(ROWS.sites), getSite: get(ROWS.sites) },
    sessions: { listSessions: list(ROWS.sessions), getSession: get(ROWS.sessions) },
    subscriptions: { listSubscriptions: list(ROWS.subscriptions) },
  }) as unknown as Inspectors

/** For each `*` of a path, by the path up to it, and the query of those that need one. */
const IDS: Row = {
  '/users': 'alice',
  '/connections': 'conn-1',
  '/contexts': 'ctx-active',
  '/workers/tasks': 'task-1',
  '/browser-windows': 'win-open',
  '/rpc/pending': 'call-1',
  '/rpc/ended': 'call-1',
  '/rpc/instances': 'inst-1',
  '/sites': 'notes',
  '/sessions': 'session-active',
}
const QUERIES: Row = {
  '/workers/tasks/*': '?user_id=alice',
  '/rpc/instances/*': '?user_id=alice&client_id=desk',
  '/delivery/status': '?user_id=alice&client_id=desk&command_id=cmd-waiting',
  '/history/messages': '?stream=users/alice/log',
}

const source = readFileSync('src/dashboard/page/pages.tsx', 'utf8')
const ADDRESSES = [...source.matchAll(/^ {2}'(\/[^']*)':/gm)].map(
  ([, path = '']) => path.replace(/(.*)\/\*/, (_, before) => `${before}/${IDS[before]}`) + (QUERIES[path] ?? ''),
)

/** What a reader, a pointer and a screen reader get; and the times that are drawn, besides those when the router looked. */
const SAID = `({
  text: document.querySelector('main').innerText,
  attributes: [...document.querySelectorAll('main *')].flatMap((element) => element.getAttributeNames()
    .map((name) => name + '=' + element.getAttribute(name))),
  times: [...document.querySelectorAll('main time:not([title^="2026-01-02"])')].map((time) => time.title),
  marks: [...document.querySelectorAll('.event-chart [title]')].map(({ title }) => title),
})`
interface Said {
  text: string
  attributes: string[]
  times: string[]
  marks: string[]
}

/** Zeros that are known: how many entries have a known value, and how long the router took. */
const ZEROS =
  /^(?:browser|console|mobile|web)\n+0$|\b0 (?:ms|in all)\b|^(?:Idle|Assigned|Others:) 0$|\b(?:worker|idle|busy) count\n+0$|\t0\t0\t0\t\w+\tcontexts$/gm

inChromium('the dashboard over required fields alone', (open) => {
  async function read(parts: object, addresses: readonly string[]): Promise<Said[]> {
    const host = await startViewedOnce({}, { inspectors: bare(parts) })
    const tab = await open(host.page, { key: KEY })
    const said: Said[] = []
    for (const address of addresses) {
      await tab.goto(`${host.page}#${address}`)
      await tab.reload()
      await tab.locator('main h1').first().waitFor({ state: 'attached' })
      await expect.poll(() => tab.locator('main').innerText()).not.toMatch(/loading/i)
      said.push((await tab.evaluate(SAID)) as Said)
    }
    return said
  }

  it('finds every page', () => {
    expect(ADDRESSES.length).toBeGreaterThan(30)
    expect(ADDRESSES.join()).not.toContain('undefined')
  })

  it('shows neither a value, a time nor a zero for what is unknown', async () => {
    for (const [i, { text, attributes, times, marks }] of (await read({}, ADDRESSES)).entries()) {
      const wrong = [text, ...attributes].filter((one) => /undefined|NaN|null|Invalid|\[object/.test(one))
      const zeros = text.replaceAll(ZEROS, '').match(/.*(?<![\w:.])0(?![\w:.]| h ago).*/g) ?? []
      expect([ADDRESSES[i], wrong, zeros, times, marks]).toEqual([ADDRESSES[i], [], [], [], []])
    }
  })

  const COMMAND_PAGE = [`/delivery/status${QUERIES['/delivery/status']}`]

  it.each([
    ['open', {}, 'UNKNOWN Nothing more is known.'],
    ['ended', { terminal: {} }, 'ENDED Nothing more is known.'],
    ['resulted', { terminal: { state: 'resulted' } }, 'RESULTED It is unknown'],
  ])('draws no line of time for a command of which only is known that it is %s', async (_, parts, verdict) => {
    const [said] = await read(parts, COMMAND_PAGE)
    expect(said?.text).toContain(verdict)
    expect(said?.text).toContain('When it was admitted, attempted and ended is unknown.')
    expect(said?.marks).toEqual([])
  })

  it('draws only the times of a command that are known', async () => {
    const admission = { state: 'admitted', at: '2026-01-02T03:00:00.000Z' }
    const parts = { admission, acknowledgement: { state: 'acknowledged' }, terminal: { state: 'resulted' } }
    const [said] = await read(parts, COMMAND_PAGE)
    expect(said?.marks).toEqual([expect.stringMatching(/^admitted, .*:00:00$/)])
    for (const what of ['resulted', 'acknowledged', '2 of 2 connections'])
      expect(said?.text).toContain(`${what}, when is unknown`)
  })
})
