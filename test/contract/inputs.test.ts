/** A mistyped field of any input is refused by name: every call of the facilities is in the documents or takes no object. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import * as site from '../../src/cooperative-site/index.js'
import { SettleCallInput } from '../../src/internal/contract/rpc.js'
import { ViewerStreamInput } from '../../src/internal/contract/subscriptions.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import * as redis from '../../src/redis/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { ROOT } from '../repository/imports.js'

type Call = (...given: unknown[]) => unknown
type Facilities = Readonly<Record<string, Readonly<Record<string, unknown>> | Call>>

/** A client that is closed: an input is refused before the store is used. */
const client: redis.RedisClient = { call: async () => null, duplicate: () => client, on: () => client, status: 'end' }
const place = { client, deploymentId: 'd', onError: null }

/** The calls that only hosts of cooperative sites make. */
function gateOf(parts: Facilities): Facilities {
  const { sites, sessions } = parts as never as { sites: never; sessions: never }
  const policy = site.createSessionPolicy({ sessions })
  const connector = site.createDispatchConnector({ ...parts, onError: null } as never)
  const gate = site.createCooperativeActionGate({ sites, sessions, policy, connector, onError: null })
  return { gate: { invoke: gate.invoke }, policy: { ...policy }, connector: { call: connector.call } } as never
}

const COMPOSITIONS: Record<string, () => Facilities> = {
  memory() {
    const parts = {
      ...createMemoryFacilities(),
      sites: site.createSiteRegistry(),
      sessions: site.createSessionRegistry(),
      subscriptions: site.createSubscriptionRegistry(),
      bus: site.createCooperativeSiteEventBus(),
      idempotency: site.createIdempotencyStore(),
    } as never as Facilities
    return { ...parts, ...gateOf(parts) }
  },
  redis() {
    const facilities = redis.createRedisFacilities(place)
    const parts = { ...facilities, idempotency: redis.createRedisIdempotencyStore(place) } as never as Facilities
    return { ...parts, ...gateOf(parts) }
  },
}

/** Calls whose arguments are ids, text, functions or free JSON. */
const WITHOUT_FIELDS = [
  'connections.heartbeat connections.disconnect contexts.close contexts.assignTask contexts.releaseTask',
  'browserWindows.close dispatcher.close dispatcher.reconcile rpc.close bus.close bus.prepare bus.lastEvent bus.version',
  'sites.get sessions.get sessions.activate sessions.suspend sessions.close sessions.getShare sessions.watch sessions.disconnect',
  'subscriptions.close close spill.put spill.get spill.delete',
].flatMap((line) => line.split(' '))

/** Fields of calls that the documents describe elsewhere. */
const ELSEWHERE: Record<string, string[]> = {
  ingest: [],
  'connections.currentInstance': ['user_id', 'client_id'],
  'sessions.unshare': ['user_id'],
  'gate.invoke': ['session_id', 'action', 'parameters', 'viewer', 'timeout_ms', 'idempotency_key', 'trace'],
  'policy.check': ['viewer', 'session', 'right'],
  'connector.call': ['action', 'parameters', 'timeout_ms', 'command_id', 'trace'],
}

/** Arguments before the input. */
const BEFORE: Record<string, unknown[]> = {
  'rpc.settle': ['correlation'],
  'sites.delete': ['notes'],
  'sessions.share': ['session'],
  'sessions.unshare': ['session'],
  'bus.publish': ['topic'],
  'bus.publishOnce': ['topic'],
  'bus.subscribe': ['topic'],
  'connector.call': [{ user_id: 'ada', client_id: 'desk' }],
}

/** What the input is called in an error. */
const PREFIX: Record<string, string> = { 'rpc.settle': 'outcome.', 'sessions.unshare': 'viewer.' }

const ID = { user_id: 'ada', client_id: 'desk' }
const claim = { session_id: 's', user_id: 'ada', key: 'k', fingerprint: 'f', attempt: 'a', lease_ms: 1 }
const state = () => ({ pending: 0, dropped: 0, last_position: null, last_taken_at: null })
const AT = '2026-01-01T00:00:00.000Z'

/** Inputs within inputs: the call, its arguments, and the name in the error. */
const NESTED: [call: string, given: unknown[], name: string, suggestion: string][] = [
  [
    'sessions.open',
    [{ site_id: 'notes', owner: 'ada', connector: { user_id: 'ada', clientId: 'desk' } }],
    'connector.clientId',
    'connector.client_id',
  ],
  [
    'rpc.settle',
    ['id', { ok: true, result: 1, from: { ...ID, instanceId: 'i' } }],
    'outcome.from.instanceId',
    'outcome.from.instance_id',
  ],
  [
    'rpc.settle',
    ['id', { ok: true, result: 1 }, { user_id: 'ada', clientId: 'desk' }],
    'from.clientId',
    'from.client_id',
  ],
  [
    'connections.connect',
    [{ ...ID, instance_id: 'i', client_type: 'web', actions: [{ name: 'a', descripton: 'b' }] }],
    'actions.0.descripton',
    'actions.0.description',
  ],
  [
    'sites.put',
    [{ site_id: 'notes', owner: 'ada', mode: 'cooperative', capability_profile: { action_invocations: true } }],
    'capability_profile.action_invocations',
    'capability_profile.action_invocation',
  ],
  ['idempotency.keep', [claim, { invocation_id: 'i', resut: 1 }], 'answer.resut', 'answer.result'],
  ['connector.call', [{ user_id: 'ada', clientId: 'desk' }, { action: 'a' }], 'client.clientId', 'client.client_id'],
]

/** The fields of each call, from the page that is generated from the schemas. */
function documentedFields(): Map<string, string[]> {
  const page = readFileSync(`${ROOT}/docs/facility-inputs.md`, 'utf8')
  const calls = new Map<string, string[]>()
  for (const section of page.split('\n## ').slice(1)) {
    const [heading = '', ...lines] = section.split('\n')
    const fields = lines.flatMap((line) => /^\| `(\w+)` \|/.exec(line)?.[1] ?? [])
    for (const [, call] of heading.matchAll(/`([\w.]+)\(/g)) calls.set(call as string, fields)
  }
  return calls
}

const documented = documentedFields()
const fieldsOf = (call: string) => documented.get(call) ?? ELSEWHERE[call]

function* callsOf(facilities: Facilities): Generator<[name: string, call: Call]> {
  for (const [name, facility] of Object.entries(facilities))
    if (typeof facility === 'function') yield [name, facility]
    else
      for (const [method, call] of Object.entries(facility ?? {}))
        if (typeof call === 'function') yield [`${name}.${method}`, call as Call]
}

/** Calls it, and returns the detail of the refusal. */
async function refusalOf(call: Call, given: unknown[]): Promise<unknown> {
  const refused = await (async () => call(...given))().catch((error: unknown) => error)
  return (refused as { code?: string; detail?: string })?.code === 'invalid_input'
    ? (refused as { detail: string }).detail
    : refused
}

describe.each(Object.entries(COMPOSITIONS))('inputs of the facilities in %s', (_, make) => {
  const facilities = make()
  const calls = new Map(callsOf(facilities))

  it('has the fields of each call in the documents, or the call takes no object', () => {
    const unknown = [...calls.keys()].filter((name) => !fieldsOf(name) && !WITHOUT_FIELDS.includes(name))
    expect(unknown, 'add the schema to tools/inputs-doc.mjs, or the call to this test').toEqual([])
    expect(calls.size).toBeGreaterThan(50)
  })

  it.each(
    [...calls.keys()].filter((name) => fieldsOf(name)),
  )('refuses a mistyped field of %s by name', async (name) => {
    const fields = name === 'ingest' ? (documented.get('history.append') ?? []) : (fieldsOf(name) ?? [])
    const call = calls.get(name) as Call
    expect(fields).not.toEqual([])
    for (const field of fields) {
      const given = { ...(name === 'rpc.settle' && { ok: true }), [`${field}x`]: 1 }
      const detail = await refusalOf(call, [...(BEFORE[name] ?? []), given, () => {}])
      expect(detail, field).toMatch(new RegExp(`^Unknown field "${PREFIX[name] ?? ''}${field}x"\\. Did you mean "`))
    }
  })

  it.each(NESTED)('refuses a mistyped field within an input of %s: %#', async (name, given, field, suggestion) => {
    const detail = await refusalOf(calls.get(name) as Call, given)
    expect(detail).toBe(`Unknown field "${field}". Did you mean "${suggestion}"?`)
  })
})

describe('inputs of the facilities', () => {
  it('are documented as their schemas have them', () => {
    expect(documented.get('rpc.settle')).toEqual(Object.keys(SettleCallInput.shape))
    expect(documented.get('subscriptions.add')).toEqual(Object.keys(ViewerStreamInput.shape))
  })

  it('names fields in snake_case only', () => {
    const fields = [...documented.values(), ...Object.values(ELSEWHERE)].flat()
    expect(fields.filter((field) => !/^[a-z]+(_[a-z]+)*$/.test(field))).toEqual([])
  })

  it('names options in camelCase only', () => {
    const pages = ['options-router', 'options-facilities', 'options-integrations', 'options-cooperative-sites']
    const names = pages.flatMap((page) =>
      [...readFileSync(`${ROOT}/docs/${page}.md`, 'utf8').matchAll(/^\| `([\w.]+)` \|/gm)].map(
        ([, name]) => name as string,
      ),
    )
    expect(names.length).toBeGreaterThan(100)
    expect(names.filter((name) => name.includes('_'))).toEqual([])
  })

  it('ignores fields that identify a client where a call does not need them', async () => {
    const { sessions } = COMPOSITIONS.memory?.() as never as { sessions: { open: Call } }
    const connector = { ...ID, instance_id: 'i', client_type: 'web', connection_id: 'c', metadata: {}, actions: [] }
    expect(await sessions.open({ site_id: 'notes', owner: 'ada', connector })).toMatchObject({ connector: ID })
  })

  it('takes a whole record of a host where every field of a client is required', async () => {
    const { connections } = COMPOSITIONS.memory?.() as never as { connections: { currentInstance: Call } }
    expect(await connections.currentInstance({ ...ID, token: 't' })).toBeNull()
    expect(await refusalOf(connections.currentInstance, [{ user_id: 'ada', clientId: 'desk', token: 't' }])).toBe(
      'Unknown field "clientId". Did you mean "client_id"?',
    )
    expect(await refusalOf(connections.currentInstance, [{ user_id: 'ada' }])).toBe('client_id: is missing')
  })

  it('refuses a stream of a viewer whose state is no function', async () => {
    const { add } = site.createSubscriptionRegistry()
    const stream = { subscription_id: '1', session_id: 's', site_id: 'notes', user_id: 'ada', opened_at: AT, state }
    expect(() => add({ ...stream, state: 1 } as never)).toThrow('state: must be a function')
    expect(add(stream)).toBeTypeOf('function')
  })

  it('names an unknown field of a message of a host', async () => {
    const deps = { ingest: async () => ({ accepted: true, duplicate: false }) } as never
    const given = { host: { user_id: 'ada' }, mesage: {} } as never
    await expect(site.ingestCooperativeSiteMessage(deps, given)).rejects.toMatchObject({
      detail: 'Unknown field "mesage". Did you mean "message"?',
    })
  })

  it('names an unknown field of a record of the fakes', () => {
    const fake = (world: object) => () => createFakeInspectors(world)
    expect(fake({ connections: [{ userId: 'ada' }] })).toThrow(
      'Unknown field "connections.userId". Did you mean "connections.user_id"?',
    )
    expect(fake({ delivery: { statuses: [{ comand_id: '1' }] } })).toThrow(
      'Unknown field "delivery.statuses.comand_id". Did you mean "delivery.statuses.command_id"?',
    )
    expect(fake({ delivery: { churn: [{ node_id: 'a' }], statuses: [{ action: 'a' }] } })).not.toThrow()
  })
})
