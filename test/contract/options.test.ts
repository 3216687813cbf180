/** Errors for invalid options: one sentence each, at construction. */

import { describe, expect, it } from 'vitest'
import { toDenoHandler } from '../../src/adapters/deno.js'
import { toExpressMiddleware } from '../../src/adapters/express.js'
import { toHonoHandler } from '../../src/adapters/hono.js'
import { startNodeServer, toNodeHandler } from '../../src/adapters/node.js'
import { createCooperativeSiteClient } from '../../src/browser/index.js'
import { startCooperativeSiteControlServer } from '../../src/control-server/index.js'
import * as site from '../../src/cooperative-site/index.js'
import { createDiagnosticsRouter, createIngest, noopAuth, resolveAdminAuth } from '../../src/index.js'
import * as checks from '../../src/internal/contract/checks.js'
import { HistoryOptions } from '../../src/internal/contract/history.js'
import {
  defineOptions,
  func,
  hook,
  optionsOf,
  readOptions,
  readParts,
  text,
  withMethods,
} from '../../src/internal/contract/options.js'
import { BASE_URL, BASE_URL_OR_PATH } from '../../src/internal/relay-client/wire.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createCooperativeSitePublisher, createRemoteSiteRegistry } from '../../src/publisher/index.js'
import {
  createFileSpillStore,
  createObjectSpillStore,
  createRedisFacilities,
  redisComposition,
} from '../../src/redis/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { controlParts, gateParts, place, relayParts } from '../repository/factories.js'

/** An untyped caller's. */
const given = (value: unknown) => value as never
const without = <Parts extends object>(parts: Parts, name: keyof Parts) => given({ ...parts, [name]: undefined })
const facilities = createMemoryFacilities()
const handler = () => new Response()
const runtime = { identity: () => ({ client_id: 'c', instance_id: 'i' }), authorize() {} }
const router = (options: object) => createDiagnosticsRouter(given({ inspectors: {}, auth: noopAuth(), ...options }))

const SENTENCES: [made: string, make: () => unknown, sentence: string][] = [
  [
    'a router of nothing',
    () => createDiagnosticsRouter(given(undefined)),
    'Invalid options: expected an object, got undefined',
  ],
  ['a router with a name misspelt', () => router({ prefx: '/ops' }), 'Unknown option "prefx". Did you mean "prefix"?'],
  ['a router with a prefix of 7', () => router({ prefix: 7 }), 'Invalid option "prefix": expected a string, got 7'],
  ['a router without auth', () => router({ auth: undefined }), 'Missing required option "auth" (apiKeyAuth(), '],
  [
    'a router with an invalid hook',
    () => router({ onAccess: 'log' }),
    'Invalid option "onAccess": expected a function, got a string',
  ],
  [
    'a router with an invalid error hook',
    () => router({ onError: {} }),
    'Invalid option "onError": expected a function or null, got an object',
  ],
  [
    'facilities instead of inspectors',
    () => router({ inspectors: facilities }),
    'Invalid option "inspectors": expected an object of inspectors, as in ...memoryComposition(facilities), got an object',
  ],
  [
    'an inspector that there is not',
    () => router({ inspectors: { connections: {} } }),
    'Unknown option "inspectors.connections". Valid options: registry, ',
  ],
  [
    'an inspector without its methods',
    () => router({ inspectors: { rpc: { listPending() {} } } }),
    'Invalid option "inspectors.rpc": expected facility.inspector or an object with listPending(), getPending(), got an object',
  ],
  [
    'a facility instead of its inspector',
    () => router({ inspectors: { deduplicator: facilities.deduplicator } }),
    'Invalid option "inspectors.deduplicator": expected facility.inspector or an object with summary(), got an object',
  ],
  [
    'an inspector instead of its facility',
    () => memoryComposition(given({ rpc: facilities.rpc.inspector })),
    'Invalid option "rpc": expected a facility with an inspector, got an object',
  ],
  [
    'an unset key',
    () => resolveAdminAuth({ key: undefined }),
    'Invalid option "key": expected a string, got undefined. Is the environment variable set?',
  ],
  [
    'facilities of a name misspelt',
    () => createMemoryFacilities(given({ conections: {} })),
    'Unknown option "conections". Did you mean "connections"?',
  ],
  [
    'options of a facility with a name misspelt',
    () => createMemoryFacilities({ history: given({ maxMesages: 1 }) }),
    'Unknown option "history.maxMesages". Did you mean "history.maxMessages"?',
  ],
  [
    'the same over a shared store',
    () => createRedisFacilities({ ...place, history: given({ maxMesages: 1 }) }),
    'Unknown option "history.maxMesages". Did you mean "history.maxMessages"?',
  ],
  [
    'a store without its client',
    () => redisComposition(without(place, 'client')),
    'Missing required option "client" (client or Cluster of node-redis or ioredis)',
  ],
  ['spill without its place', () => createFileSpillStore(given({})), 'Missing required option "directory" (string)'],
  [
    'an invalid bucket',
    () => createObjectSpillStore({ bucket: given({}) }),
    'Invalid option "bucket": expected an object with putObject(), ',
  ],
  [
    'an ingest without its history',
    () => createIngest(without(facilities, 'history')),
    'Missing required option "history" (object with append())',
  ],
  [
    'a relay without its bus',
    () => site.createCooperativeSiteRouter(without(relayParts, 'bus')),
    'Missing required option "bus" (object with publish(), subscribe())',
  ],
  [
    'a relay without its policy',
    () => site.createCooperativeSiteRouter(without(relayParts, 'policy')),
    'Missing required option "policy" (createSessionPolicy() or an object with check())',
  ],
  [
    'a relay with an invalid authenticator',
    () => site.createCooperativeSiteRouter({ ...relayParts, authenticateHost: given('host') }),
    'Invalid option "authenticateHost": expected a function, got a string',
  ],
  [
    'a gate without its connector',
    () => site.createCooperativeActionGate(without(gateParts, 'connector')),
    'Missing required option "connector" (createDispatchConnector() or an object with call())',
  ],
  [
    'a policy without its sessions',
    () => site.createSessionPolicy(given({})),
    'Missing required option "sessions" (object with getShare())',
  ],
  [
    'a connector without its correlator',
    () => site.createDispatchConnector(without(facilities, 'rpc')),
    'Missing required option "rpc" (object with open(), settle())',
  ],
  [
    'an action without its schema',
    () => site.createActionHandlers().handle('a', given({}), () => {}),
    'Missing required option "parameters" (zod schema)',
  ],
  [
    'an action without its handler',
    () => site.createActionHandlers().handle('a', { parameters: given({ safeParseAsync() {} }) }, given(undefined)),
    'Invalid handler: expected a function, got undefined',
  ],
  [
    'an action with an invalid lease',
    () => site.createActionHandlers().handle('a', given({ parameters: { safeParseAsync() {} }, lease: 5 }), () => {}),
    'Invalid option "lease": expected true, false or a string, got 5',
  ],
  [
    'a control server without its publisher',
    () => startCooperativeSiteControlServer(without(controlParts, 'publisher')),
    'Missing required option "publisher" (createCooperativeSitePublisher() or an object with publish())',
  ],
  [
    'a control server without its token',
    () => startCooperativeSiteControlServer(without(controlParts, 'token')),
    'Missing required option "token" (',
  ],
  [
    'a publisher without its runtime',
    () => createCooperativeSitePublisher(given({})),
    'Missing required option "runtime" (object)',
  ],
  [
    'a publisher whose relay is at no URL',
    () => createCooperativeSitePublisher({ runtime: { ...runtime, baseUrl: 'x' } }),
    'Invalid option "runtime.baseUrl": expected an http(s) URL without credentials, query and fragment',
  ],
  [
    'a remote registry whose relay does not speak HTTP',
    () => createRemoteSiteRegistry({ runtime: { ...runtime, baseUrl: 'ftp://relay.test' } }),
    'Invalid option "runtime.baseUrl": expected an http(s) URL without credentials, query and fragment',
  ],
  [
    'a remote registry without its runtime',
    () => createRemoteSiteRegistry(given({})),
    'Missing required option "runtime" (object)',
  ],
  [
    'a viewer without its session',
    () => createCooperativeSiteClient(given({ baseUrl: '/relay' })),
    'Missing required option "sessionId" (string)',
  ],
  [
    'a viewer whose relay is a script',
    () => createCooperativeSiteClient({ baseUrl: 'javascript:alert(1)', sessionId: 's' }),
    'Invalid option "baseUrl": expected a path or an http(s) URL without credentials, query and fragment',
  ],
  [
    'a fake of a name misspelt',
    () => createFakeInspectors(given({ connection: [] })),
    'Unknown option "connection". Did you mean "connections"?',
  ],
  [
    'a fake that is no list',
    () => createFakeInspectors(given({ calls: {} })),
    'Invalid option "calls": expected an array, got an object',
  ],
  ...[toNodeHandler, toExpressMiddleware, toHonoHandler, toDenoHandler, startNodeServer].flatMap(
    (adapt): [string, () => unknown, string][] => [
      [
        `${adapt.name} of nothing`,
        () => adapt(given(undefined)),
        'Invalid handler: expected a function, like a router, got undefined',
      ],
      [
        `${adapt.name} with a name misspelt`,
        () => adapt(handler, given({ allowedHost: [] })),
        'Unknown option "allowedHost". Did you mean "allowedHosts"?',
      ],
    ],
  ),
]

describe('an option that cannot have been meant', () => {
  it('no error shows a text where none is expected: it may be a key, or a URL with a password', () => {
    const wrong = { auth: 'the-key', inspectors: 'the-key' }
    for (const [name, value] of Object.entries(wrong)) {
      const make = () => createDiagnosticsRouter({ inspectors: {}, auth: noopAuth(), [name]: value } as never)
      expect(make).toThrow(`Invalid option "${name}": expected`)
      expect(make).not.toThrow('the-key')
    }
    expect(() => createDiagnosticsRouter('the-key' as never)).toThrow(/got a string$/)
    expect(() => createRedisFacilities({ client: 'redis://:the-key@h', deploymentId: 'd' } as never)).toThrow(
      /got a string$/,
    )
  })

  it.each(SENTENCES)('%s is refused by name', async (_, make, sentence) => {
    const error = await (async () => make())().then(
      () => expect.unreachable(),
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toContain(sentence)
  })
})

describe('the options of a factory', () => {
  const schema = defineOptions({
    sites: withMethods('get'),
    prefix: text().optional(),
    onError: hook(),
    timeouts: optionsOf(defineOptions({ now: func().optional() })),
  })
  const sites = { get() {} }

  it.each([
    { sites },
    { sites, prefix: undefined },
    { sites, prefix: '', onError: null, timeouts: {} },
    { sites: Object.assign(() => {}, sites), onError() {}, timeouts: { now: Date.now } },
    {
      sites: new (class {
        get() {}
      })(),
    },
  ])('may be %o', (options) => {
    expect(readOptions(schema, options)).toEqual({ ...options })
  })

  it.each([
    [null, 'Invalid options: expected an object, got null'],
    [[], 'Invalid options: expected an object, got an array'],
    [{}, 'Missing required option "sites" (object with get())'],
    [{ sites: {} }, 'Invalid option "sites": expected an object with get(), got an object'],
    [{ sites: null }, 'Invalid option "sites": expected an object with get(), got null'],
    [{ sites, onError: 1 }, 'Invalid option "onError": expected a function or null, got 1'],
    [{ sites, timeouts: 5 }, 'Invalid option "timeouts": expected an object, got 5'],
    [{ sites, timeouts: { now: 5 } }, 'Invalid option "timeouts.now": expected a function, got 5'],
    [{ sites, timeouts: { later: 5 } }, 'Unknown option "timeouts.later". Valid options: now'],
    [{ prefx: '' }, 'Unknown option "prefx". Did you mean "prefix"?'],
  ])('may not be %o', (options, sentence) => {
    expect(() => readOptions(schema, options)).toThrow(new TypeError(sentence))
  })

  const checkPage = (baseUrl: string) => checks.checkOptions({ baseUrl }, { baseUrl: BASE_URL_OR_PATH })
  const checkRuntime = (baseUrl: string) => checks.checkOptions({ baseUrl }, { baseUrl: BASE_URL }, 'runtime.')
  const EVERYWHERE = ['http://127.0.0.1:8080/relay/', 'https://relay.test', 'HTTPS://relay.test/a%20b']
  const IN_A_PAGE = ['', '/', '/relay', 'relay', '../relay', './a:b', '//relay.test/relay']
  const NOWHERE = [
    'javascript:alert(1)',
    'java\tscript:alert(1)',
    'ftp://s3cr3t.test',
    'data:,s3cr3t',
    'http://',
    'https://user:s3cr3t@relay.test',
    'https://s3cr3t@relay.test',
    'https://relay.test/?key=s3cr3t',
    'https://relay.test/#s3cr3t',
    'https://relay.test/?',
  ]

  it.each(EVERYWHERE)('may name %j as where routes begin', (baseUrl) => {
    expect(() => checkPage(baseUrl)).not.toThrow()
    expect(() => checkRuntime(baseUrl)).not.toThrow()
  })

  it.each(IN_A_PAGE)('may name %j in a page, and nowhere else', (baseUrl) => {
    expect(() => checkPage(baseUrl)).not.toThrow()
    expect(() => checkRuntime(baseUrl)).toThrow(TypeError)
  })

  it.each(NOWHERE)('may not name %j as where routes begin, and it is not repeated', (baseUrl) => {
    const said = 'http(s) URL without credentials, query and fragment'
    expect(() => checkPage(baseUrl)).toThrow(new TypeError(`Invalid option "baseUrl": expected a path or an ${said}`))
    expect(() => checkRuntime(baseUrl)).toThrow(new TypeError(`Invalid option "runtime.baseUrl": expected an ${said}`))
  })

  it('may have other members if they are parts of a larger object', () => {
    expect(readParts(schema, { sites, another: 1 })).toEqual({ sites })
    expect(() => readParts(schema, { another: 1 })).toThrow('Missing required option "sites"')
  })
})

it('a message that does not fit into a record is no bound of the options of a history', () => {
  expect(() => readOptions(HistoryOptions, { inlineBytes: 65_537 })).toThrow(RangeError)
  expect(readOptions(HistoryOptions, { inlineBytes: 65_536 }).inlineBytes).toBe(65_536)
})
