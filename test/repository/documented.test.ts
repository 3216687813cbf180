/** Compares the docs with the types and tables they describe: complete, and nothing else. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type * as z from 'zod'
import { BAD_REQUEST, NOT_ALLOWED, TOO_MANY_HEADERS } from '../../src/adapters/handler.js'
import { controlServerOpenApi } from '../../src/control-server/index.js'
import { CONTROL_ROUTES } from '../../src/control-server/routes.js'
import { cooperativeSiteOpenApi } from '../../src/cooperative-site/index.js'
import { RELAY_ROUTES } from '../../src/cooperative-site/relay-routes.js'
import { createDiagnosticsRouter, noopAuth, openApiDocument } from '../../src/index.js'
import { BrowserWindowAnswer } from '../../src/internal/contract/browser-windows.js'
import { ConnectionAnswer } from '../../src/internal/contract/connections.js'
import { ContextAnswer } from '../../src/internal/contract/contexts.js'
import { DeduplicatorSummaryAnswer } from '../../src/internal/contract/deduplicator.js'
import {
  DeliveryCommandAnswer,
  DeliveryNodeAnswer,
  DeliveryStatusAnswer,
  DeliverySummaryAnswer,
  DeliveryTenantAnswer,
} from '../../src/internal/contract/delivery.js'
import { HistoryMessageAnswer } from '../../src/internal/contract/history.js'
import { PendingCallAnswer } from '../../src/internal/contract/rpc.js'
import { SessionRowAnswer } from '../../src/internal/contract/sessions.js'
import { SiteDefinition, SiteRowAnswer } from '../../src/internal/contract/sites.js'
import { SubscriptionRowAnswer } from '../../src/internal/contract/subscriptions.js'
import { PROBLEMS, type ProblemCode, toProblem } from '../../src/internal/http/problem.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { FACES } from '../../tools/faces.mjs'
import { codesOf } from '../openapi.js'
import { membersOf, methodsOf, textFrom, valuesOf } from './declarations.js'
import { ROOT, readFiles } from './imports.js'

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** Returns the text under a heading, up to the next one. */
function section(path: string, heading: string): string {
  const found = textOf(path)
    .split(/^#+ /m)
    .find((part) => part.startsWith(`${heading}\n`))
  if (found === undefined) throw new Error(`${path} has no heading ${heading}`)
  return found
}

/** Returns the code spans in the first column of the table under a heading. */
function firstColumn(path: string, heading: string): string[] {
  return section(path, heading)
    .split('\n')
    .flatMap((line) => {
      const [, cell] = /^\| (`.*?) \|/.exec(line) ?? []
      return [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name as string)
    })
}

/** What a host writes to, by the names that the documents give it. */
const FACILITIES = {
  connections: 'ConnectionRegistry',
  contexts: 'ContextRegistry',
  browserWindows: 'BrowserWindowRegistry',
  dispatcher: 'CommandDispatcher',
  waiter: 'Waiter',
  rpc: 'RpcCorrelator',
  history: 'MessageHistory',
  deduplicator: 'Deduplicator',
  sites: 'SiteRegistry',
  sessions: 'SessionRegistry',
  subscriptions: 'SubscriptionRegistry',
  bus: 'SiteEventBus',
  idempotency: 'IdempotencyStore',
  spill: 'SpillStore',
}
/** What only reads. */
const READS = ['get', 'getShare', 'isCurrentInstance', 'currentInstance', 'watch', 'subscribe', 'prepare']

/** The problems as their page explains them, each under its heading. */
const PROBLEM_SECTIONS = [...textOf('docs/problems.md').matchAll(/^### (\w+)\n\n(\d+), returned by (.+)\.\n.+/gm)].map(
  ([, code, status, by]) => ({ code: code as string, status: Number(status), by: by as string }),
)

describe('the documents name', () => {
  it('every call of every facility that writes', () => {
    const writes = Object.entries(FACILITIES).flatMap(([name, type]) =>
      methodsOf(type).flatMap((method) => (READS.includes(method) ? [] : `${name}.${method}`)),
    )
    const shown = [
      ...firstColumn('docs/facility-calls.md', 'Every call that writes'),
      ...firstColumn('docs/facility-calls.md', 'Calls of cooperative sites'),
    ]
    const calls = shown.map((call) => call.replace(/\(.*$/, '')).filter((call) => call.includes('.'))
    expect(calls.sort()).toEqual(writes.sort())
  })

  it('every problem, with its status', () => {
    const told = PROBLEM_SECTIONS.map(({ code, status }) => `${status} ${code}`)
    expect(told.sort()).toEqual(
      Object.entries(PROBLEMS)
        .map(([code, [status]]) => `${status} ${code}`)
        .sort(),
    )
  })

  it.each([
    ['diagnostics', openApiDocument()],
    ['relay', cooperativeSiteOpenApi()],
    ['control server', controlServerOpenApi()],
  ])('what the %s says no with, as its OpenAPI document does', (who, document) => {
    const told = PROBLEM_SECTIONS.filter(({ by }) => by.split(', ').some((one) => one === who || one === 'all'))
    const codes = told.map(({ code }) => code)
    // No route documents `route_not_found`, and behind our own servers routers never see an ambiguous target.
    const unsaid = who === 'control server' ? ['route_not_found'] : ['route_not_found', 'bad_request']
    expect(codesOf(document).sort()).toEqual(codes.filter((code) => !unsaid.includes(code)).sort())
  })

  it('every problem under the heading that its `help` names, in adapters too', () => {
    const codes = Object.keys(PROBLEMS) as ProblemCode[]
    const headings = PROBLEM_SECTIONS.map(({ code }) => `docs/problems.md#${code}`)
    expect(codes.map((code) => toProblem(code).help).sort()).toEqual(headings.sort())
    for (const { body } of [BAD_REQUEST, TOO_MANY_HEADERS, ...Object.values(NOT_ALLOWED)])
      expect(JSON.parse(body)).toEqual(toProblem(JSON.parse(body).code))
  })

  it('a problem as the router answers it', async () => {
    const router = createDiagnosticsRouter({ inspectors: createFakeInspectors({ connections: [] }), auth: noopAuth() })
    const [, shown] = /```json\n([\s\S]*?)```/.exec(section('docs/problems.md', 'Over HTTP')) ?? []
    expect(JSON.parse(shown as string)).toEqual(await (await router(new Request('http://relay/users?limit=0'))).json())
  })

  it('what each option is', () => {
    const pages = readdirSync(join(ROOT, 'docs')).filter((name) => name.startsWith('options-'))
    const rows = pages.flatMap((name) => textOf(`docs/${name}`).split('\n'))
    expect(rows.filter((row) => row.startsWith('| `') && row.endsWith('|  |'))).toEqual([])
  })

  it('every refusal', () => {
    expect(firstColumn('docs/problems.md', 'Refusals').sort()).toEqual(textFrom('RefusalCode').sort())
  })

  it.each([
    ['docs/site-hosts.md', 'Routes of the relay', RELAY_ROUTES],
    ['docs/control-server.md', 'Routes', CONTROL_ROUTES],
  ] as const)('every route of %s', (path, heading, routes) => {
    const served = routes.flatMap(({ path, methods }) => Object.keys(methods).map((method) => `${method} ${path}`))
    expect(firstColumn(path, heading).sort()).toEqual(served.sort())
  })

  it('every field that a site declares', () => {
    const fields = Object.keys(SiteDefinition.shape)
    expect(firstColumn('docs/site-hosts.md', 'What a site declares').sort()).toEqual(fields.sort())
  })

  it('the fields that a record of an inspector must have', () => {
    const required = ({ shape }: z.ZodObject) =>
      Object.entries(shape).flatMap(([name, field]) => (field.safeParse(undefined).success ? [] : name))
    const rows = [
      ...section('docs/custom-inspectors.md', 'What each record needs').matchAll(/^\| `(\w+)` \|.*\| (.*) \|$/gm),
    ]
    const names = rows.map(([, name, fields = '']) => [name, fields.match(/(?<=`)[a-z_]+(?=`)/g) ?? []])
    expect(Object.fromEntries(names)).toEqual({
      deduplicator: required(DeduplicatorSummaryAnswer),
      delivery: [
        DeliverySummaryAnswer,
        DeliveryNodeAnswer,
        DeliveryTenantAnswer,
        DeliveryStatusAnswer,
        DeliveryCommandAnswer,
      ].flatMap(required),
      contextRegistry: required(ContextAnswer),
      registry: required(ConnectionAnswer),
      browserWindowRegistry: required(BrowserWindowAnswer),
      rpc: required(PendingCallAnswer),
      history: required(HistoryMessageAnswer),
      sites: required(SiteRowAnswer),
      sessions: required(SessionRowAnswer),
      subscriptions: required(SubscriptionRowAnswer),
    })
  })

  it('every key of a fake world', () => {
    expect(firstColumn('docs/testing.md', 'What a world holds').sort()).toEqual(membersOf('FakeWorld').sort())
  })
})

describe('the exports of the package', () => {
  const pages = ['README.md', 'AGENTS.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter(
    (path) => path.endsWith('.md'),
  )
  const values = Object.values(FACES).flatMap(valuesOf)

  it('are each on a page', () => {
    const words = new Set(pages.flatMap((path) => textOf(path).match(/\w+/g) ?? []))
    expect(values.filter((name) => !words.has(name))).toEqual([])
  })

  it('in `relayscope/schemas` are all in its table', () => {
    expect(
      section('docs/imports.md', 'Schemas')
        .match(/(?<=`)[A-Z]\w+/g)
        ?.sort(),
    ).toEqual(valuesOf('src/schemas.ts').sort())
  })

  // Names as ours have them. Methods (`router.createX`) are not meant.
  const FUNCTION =
    /`((?:create|follow|ingest|start|resolve|diff|capture|watch|scope)[A-Z]\w*|[a-z]\w*(?:Contract|Composition|Auth|Handler|Middleware))(?:`|\()/g
  const named = (text: string) => [...text.matchAll(FUNCTION)].map(([, name]) => name as string)

  it('are the only functions that pages name, besides those of others', () => {
    const others =
      'createServer createSecureServer createClient createClientPool createCluster createSentinel preHandler'
    const known = new Set([...values, ...others.split(' ')])
    expect(pages.flatMap((path) => named(textOf(path)).filter((name) => !known.has(name)))).toEqual([])
  })

  it('and the functions of `src` are the only ones that comments name', () => {
    const sources = readFiles('src')
    const declared = sources.flatMap(({ text }) =>
      [...text.matchAll(/\b(?:function|const) (\w+)/g)].map(([, name]) => name),
    )
    const known = new Set([...declared, 'createServer', 'createClient', 'createCluster'])
    const wrong = sources.flatMap(({ path, text }) =>
      named(text).flatMap((name) => (known.has(name) ? [] : [`${path}: ${name}`])),
    )
    expect(wrong).toEqual([])
  })
})
