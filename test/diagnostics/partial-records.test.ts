/** An inspector says what it knows: a field that it leaves out is unknown in the answer. */
import { describe, expect, it } from 'vitest'
import type * as z from 'zod'
import { createDiagnosticsRouter, type Inspectors } from '../../src/index.js'
import { BrowserWindowAnswer } from '../../src/internal/contract/browser-windows.js'
import { ClientEventAnswer, ConnectionAnswer, ConnectionEventAnswer } from '../../src/internal/contract/connections.js'
import { ContextAnswer } from '../../src/internal/contract/contexts.js'
import { DeduplicatorSummaryAnswer, DeduplicatorUserSummaryAnswer } from '../../src/internal/contract/deduplicator.js'
import {
  DeliveryCommandAnswer,
  DeliveryMailboxAnswer,
  DeliveryNodeAnswer,
  DeliveryStatusAnswer,
  DeliverySummaryAnswer,
  DeliveryTenantAnswer,
} from '../../src/internal/contract/delivery.js'
import { HistoryMessageAnswer, HistoryStreamAnswer } from '../../src/internal/contract/history.js'
import { EndedCallAnswer, PendingCallAnswer, RpcSummaryAnswer } from '../../src/internal/contract/rpc.js'
import { SessionRowAnswer } from '../../src/internal/contract/sessions.js'
import { SiteRowAnswer } from '../../src/internal/contract/sites.js'
import { SubscriptionRowAnswer } from '../../src/internal/contract/subscriptions.js'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'

type Row = Record<string, unknown>

/** Each record, the routes that answer it, and the inspector with the method that returns it. */
const RECORDS: [z.ZodObject, string, Record<string, string | undefined>, ('page' | 'one')?][] = [
  [ConnectionAnswer, 'registry', { listConnections: '/connections', getConnection: '/connections/{connection_id}' }],
  [ClientEventAnswer, 'registry', { listConnectionEvents: '/connections/events' }],
  [ConnectionEventAnswer, 'registry', { listConnectionHistory: '/connections/{connection_id}/history' }],
  [ContextAnswer, 'contextRegistry', { listContexts: '/contexts', getContext: '/contexts/{context_id}' }],
  [BrowserWindowAnswer, 'browserWindowRegistry', { listBrowserWindows: '/browser-windows' }],
  [PendingCallAnswer, 'rpc', { listPending: '/rpc/pending', getPending: '/rpc/pending/{correlation_id}' }],
  [EndedCallAnswer, 'rpc', { listEnded: '/rpc/ended', getEnded: '/rpc/ended/{correlation_id}' }],
  [RpcSummaryAnswer, 'rpc', { summary: '/rpc/summary' }],
  [HistoryStreamAnswer, 'history', { listStreams: '/history/streams' }],
  [HistoryMessageAnswer, 'history', { readMessages: '/history/messages' }],
  [DeduplicatorSummaryAnswer, 'deduplicator', { summary: '/deduplicator/summary' }],
  [DeduplicatorUserSummaryAnswer, 'deduplicator', { userSummary: '/deduplicator/users/{user_id}' }],
  [DeliverySummaryAnswer, 'delivery', { summary: '/delivery/summary' }],
  [DeliveryNodeAnswer, 'delivery', { listNodes: '/delivery/nodes' }],
  [DeliveryTenantAnswer, 'delivery', { listTenants: '/delivery/tenants' }],
  [DeliveryCommandAnswer, 'delivery', { listCommands: '/delivery/commands' }],
  [DeliveryMailboxAnswer, 'delivery', { listMailboxes: '/delivery/mailboxes' }],
  [DeliveryStatusAnswer, 'delivery', { status: '/delivery/status' }],
  [SiteRowAnswer, 'sites', { listSites: '/sites', getSite: '/sites/{site_id}' }],
  [SessionRowAnswer, 'sessions', { listSessions: '/sessions', getSession: '/sessions/{session_id}' }],
  [SubscriptionRowAnswer, 'subscriptions', { listSubscriptions: '/subscriptions' }],
]

/** Requests that an aggregate answers from these records. */
const AGGREGATES = [
  '/users',
  '/actions',
  '/findings',
  '/search?q=a',
  '/connections/count',
  '/contexts/count',
  '/browser-windows/count',
  '/workers?user_id=ada',
  '/subscriptions?order=slowest',
  '/delivery/why?user_id=ada&client_id=laptop&command_id=open-report-9',
]

const METHODS: Record<string, readonly string[]> = {
  registry: ['listConnections', 'getConnection'],
  contextRegistry: ['listContexts', 'getContext'],
  browserWindowRegistry: ['listBrowserWindows', 'getBrowserWindow'],
  rpc: ['listPending', 'getPending'],
  history: ['readMessages'],
  deduplicator: ['summary'],
  delivery: ['summary', 'listNodes', 'listTenants', 'status'],
  sites: ['listSites', 'getSite'],
  sessions: ['listSessions', 'getSession'],
  subscriptions: ['listSubscriptions'],
}

function routerOver(family: string, methods: readonly string[], record: Row) {
  const page = () => ({ items: [record], next_cursor: null, has_more: false, truncated: false })
  const nothing = () => ({ items: [], next_cursor: null, has_more: false, truncated: false })
  const base = Object.fromEntries(
    (METHODS[family] ?? []).map((name) => [
      name,
      name === 'summary' ? () => ({}) : /^(list|read)/.test(name) ? nothing : () => null,
    ]),
  )
  const own = Object.fromEntries(methods.map((name) => [name, /^(list|read)/.test(name) ? page : () => record]))
  const errors: unknown[] = []
  const router = createDiagnosticsRouter({
    inspectors: { [family]: { ...base, ...own } } as Inspectors,
    auth: { authenticate: () => ({ name: 'test' }) },
    onError: (error) => void errors.push(error),
  })
  const get = async (path: string) => {
    const response = await router(new Request(`http://localhost${path}`))
    return { status: response.status, body: (await response.json()) as Row }
  }
  return { get, errors }
}

function exampleOf(path: string): Row {
  const example = ROUTES.find((route) => route.path === path)?.example as Row
  return Array.isArray(example.items) ? (example.items[0] as Row) : example
}

function requestFor(path: string, record: Row): string {
  if (path === '/delivery/status') return `${path}?user_id=ada&client_id=laptop&command_id=${record.command_id}`
  if (path === '/history/messages') return `${path}?stream=${encodeURIComponent(String(record.stream))}`
  return path.replace(/\{(\w+)\}/, (_, name) => encodeURIComponent(String(record[name])))
}

/** The record within a field, if it is one. */
function recordIn(field: z.ZodType): z.ZodObject | undefined {
  const inner = field as z.ZodType & { unwrap?(): z.ZodType; element?: z.ZodType }
  if (inner.unwrap) return recordIn(inner.unwrap())
  if (inner.element) return recordIn(inner.element)
  return 'shape' in inner ? (inner as unknown as z.ZodObject) : undefined
}

/** `part` with each of its optional fields left out in turn, the ones of its parts included. */
function lacking(schema: z.ZodObject, part: Row): [path: string[], part: Row][] {
  return Object.entries(part).flatMap(([name, value]): [string[], Row][] => {
    const { [name]: _, ...rest } = part
    const own: [string[], Row][] = schema.shape[name] && isOptional(schema, name) ? [[[name], rest]] : []
    const inner = schema.shape[name] && recordIn(schema.shape[name] as z.ZodType)
    const nested = Array.isArray(value) ? value[0] : value
    if (!inner || typeof nested !== 'object' || nested === null) return own
    const parts = lacking(inner, nested as Row).map(([path, changed]): [string[], Row] => [
      [name, ...path],
      { ...part, [name]: Array.isArray(value) ? [changed, ...value.slice(1)] : changed },
    ])
    return [...own, ...parts]
  })
}

/** The value at `path`, of the first element of each list. */
function valueAt(record: Row, [name, ...rest]: string[]): unknown {
  const value = record[name as string]
  if (rest.length > 0) return valueAt((Array.isArray(value) ? value[0] : value) as Row, rest)
  return Array.isArray(value) ? record[name === 'items' ? 'omitted' : `${name}_omitted`] : value
}

const isOptional = (schema: z.ZodObject, name: string) => (schema.shape[name] as z.ZodType).safeParse(undefined).success
const OWN = ['omitted']

describe.each(RECORDS)('a record of %#', (schema, family, methods) => {
  const [firstPath] = Object.values(methods) as [string]
  const example = exampleOf(firstPath)
  const names = Object.keys(schema.shape).filter((name) => !OWN.includes(name))
  const optional = names.filter((name) => isOptional(schema, name))

  it.each(
    Object.entries(methods),
  )(`${firstPath}: %s answers null for each field that is left out`, async (_method, path) => {
    const bare = Object.fromEntries(Object.entries(example).filter(([name]) => !optional.includes(name)))
    const all: [string[], Row][] = optional.map((name) => [[name], bare])
    for (const [left, record] of [...lacking(schema, example), ...all]) {
      const { get, errors } = routerOver(family, Object.keys(methods), record)
      const { status, body } = await get(requestFor(path as string, { ...example, ...record }))
      expect([status, errors]).toEqual([200, []])
      const answer = (Array.isArray(body.items) ? body.items[0] : body) as Row
      for (const name of names) expect(answer, name).toHaveProperty(name)
      if (!left.at(-1)?.endsWith('omitted')) expect(valueAt(answer, left), `${left} of ${path}`).toBeNull()
    }
  })

  it(`${firstPath}: every aggregate copes with the required fields alone`, async () => {
    const record = Object.fromEntries(Object.entries(example).filter(([name]) => !isOptional(schema, name)))
    const { get, errors } = routerOver(family, Object.keys(methods), record)
    for (const path of AGGREGATES)
      expect([path, [200, 404, 501].includes((await get(path)).status)]).toEqual([path, true])
    expect(errors).toEqual([])
  })
})

describe('a field of a summary that has another type', () => {
  it.each([
    ['delivery', '/delivery/summary', 'tracked_commands'],
    ['deduplicator', '/deduplicator/summary', 'entries'],
    ['rpc', '/rpc/summary', 'pending'],
  ])('of %s is null, counted, and named to onError', async (family, path, field) => {
    const { get, errors } = routerOver(family, ['summary'], { ...exampleOf(path), [field]: 'seven' })
    const { status, body } = await get(path)
    expect([status, body[field], body.omitted]).toEqual([200, null, 1])
    expect(errors.map(String)).toEqual([expect.stringContaining(`${field}: expected`)])
  })
})

it('a connection without its instance is evidence against findings of disconnected clients', async () => {
  const client = { user_id: 'ada', client_id: 'laptop' }
  const page = (items: Row[]) => () => ({ items, next_cursor: null, has_more: false })
  const none = () => null
  const router = createDiagnosticsRouter({
    inspectors: {
      registry: {
        listConnections: page([{ ...client, connection_id: 'c-1', status: 'connected' }]),
        getConnection: none,
      },
      contextRegistry: {
        listContexts: page([{ ...client, context_id: 't-1', status: 'active' }]),
        getContext: none,
      },
      rpc: { listPending: page([{ ...client, correlation_id: 'r-1', instance_id: 'i-1' }]), getPending: none },
      delivery: {
        summary: () => ({}),
        listNodes: page([]),
        listTenants: page([]),
        listCommands: page([{ ...client, command_id: 'd-1', state: 'waiting' }]),
        status: none,
      },
    } as unknown as Inspectors,
    auth: { authenticate: () => ({ name: 'test' }) },
  })
  const answer = (await (await router(new Request('http://localhost/findings'))).json()) as Row
  expect([answer.items, answer.next_cursor]).toEqual([[], null])
})
