/** What a host is told of options that it cannot have meant: one sentence each, when the thing is made. */
import { describe, expect, it } from 'vitest'
import { toDenoHandler } from '../../src/adapters/deno.js'
import { toExpressMiddleware } from '../../src/adapters/express.js'
import { toHonoHandler } from '../../src/adapters/hono.js'
import { startNodeServer, toNodeHandler } from '../../src/adapters/node.js'
import { createCooperativeSiteClient } from '../../src/browser/index.js'
import * as checks from '../../src/contract/checks.js'
import {
  defineOptions,
  func,
  having,
  hook,
  optionsOf,
  readOptions,
  readParts,
  text,
} from '../../src/contract/options.js'
import { startCooperativeSiteControlServer } from '../../src/control-server/index.js'
import * as site from '../../src/cooperative-site/index.js'
import { createDiagnosticsRouter, createIngest, noopAuth, resolveAdminAuth } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createCooperativeSitePublisher, createRemoteSiteRegistry } from '../../src/publisher/index.js'
import {
  createFileSpillStore,
  createObjectSpillStore,
  createRedisFacilities,
  redisComposition,
} from '../../src/redis/index.js'
import { BASE_URL, BASE_URL_OR_PATH } from '../../src/relay-client/wire.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { controlParts, gateParts, place, relayParts } from '../house/factories.js'

/** An untyped caller's. */
const given = (value: unknown) => value as never
const without = <Parts extends object>(parts: Parts, name: keyof Parts) => given({ ...parts, [name]: undefined })
const facilities = createMemoryFacilities()
const handler = () => new Response()
const runtime = { identity: () => ({ client_id: 'c', instance_id: 'i' }), authorize() {} }
const router = (options: object) => createDiagnosticsRouter(given({ inspectors: {}, auth: noopAuth(), ...options }))

const SENTENCES: [made: string, make: () => unknown, sentence: string][] = [
  ['a router of nothing', () => createDiagnosticsRouter(given(undefined)), 'the options must be an object'],
  [
    'a router with a name misspelt',
    () => router({ prefx: '/ops' }),
    'the option prefx is unknown; known are inspectors, auth, ',
  ],
  ['a router with a prefix of 7', () => router({ prefix: 7 }), 'prefix must be a string'],
  ['a router without auth', () => router({ auth: undefined }), 'auth must be apiKeyAuth, '],
  ['a router with a hook that is none', () => router({ onAccess: 'log' }), 'onAccess must be a function'],
  ['a router with an error hook that is none', () => router({ onError: {} }), 'onError must be a function'],
  [
    'facilities in place of inspectors',
    () => router({ inspectors: facilities }),
    'inspectors must be an object of inspectors, as memoryComposition(facilities) and redisComposition(options) have it',
  ],
  [
    'an inspector that there is not',
    () => router({ inspectors: { connections: {} } }),
    'the option inspectors.connections is unknown; known are registry, ',
  ],
  [
    'an inspector without its methods',
    () => router({ inspectors: { rpc: { listPending() {} } } }),
    'inspectors.rpc must be an inspector with listPending(), getPending(), as the `inspector` of a facility is, not an object',
  ],
  [
    'a facility in place of its inspector',
    () => router({ inspectors: { deduplicator: facilities.deduplicator } }),
    'inspectors.deduplicator must be an inspector with summary(), as the `inspector` of a facility is, not an object',
  ],
  [
    'an inspector in place of its facility',
    () => memoryComposition(given({ rpc: facilities.rpc.inspector })),
    'rpc must be a facility, with its inspector',
  ],
  ['a key that nobody has set', () => resolveAdminAuth({ key: undefined }), 'key is there and undefined'],
  [
    'facilities of a name misspelt',
    () => createMemoryFacilities(given({ conections: {} })),
    'the option conections is unknown',
  ],
  [
    'options of a facility with a name misspelt',
    () => createMemoryFacilities({ history: given({ maxMesages: 1 }) }),
    'the option history.maxMesages is unknown',
  ],
  [
    'the same over a shared store',
    () => createRedisFacilities({ ...place, history: given({ maxMesages: 1 }) }),
    'the option history.maxMesages is unknown',
  ],
  ['a store without its client', () => redisComposition(without(place, 'client')), 'client must be a node-redis or '],
  ['spill without its place', () => createFileSpillStore(given({})), 'directory must be a string'],
  [
    'a bucket that is none',
    () => createObjectSpillStore({ bucket: given({}) }),
    'bucket must be an object with putObject(), ',
  ],
  [
    'an ingest without its history',
    () => createIngest(without(facilities, 'history')),
    'history must be an object with append()',
  ],
  [
    'a relay without its bus',
    () => site.createCooperativeSiteRouter(without(relayParts, 'bus')),
    'bus must be an event bus, ',
  ],
  [
    'a relay without its policy',
    () => site.createCooperativeSiteRouter(without(relayParts, 'policy')),
    'policy must be createSessionPolicy ',
  ],
  [
    'a relay whose authenticator is none',
    () => site.createCooperativeSiteRouter({ ...relayParts, authenticateHost: given('host') }),
    'authenticateHost must be a function',
  ],
  [
    'a gate without its connector',
    () => site.createCooperativeActionGate(without(gateParts, 'connector')),
    'connector must be createDispatchConnector ',
  ],
  [
    'a policy without its sessions',
    () => site.createSessionPolicy(given({})),
    'sessions must be an object with getShare()',
  ],
  [
    'a connector without its correlator',
    () => site.createDispatchConnector(without(facilities, 'rpc')),
    'rpc must be an object with open(), settle()',
  ],
  [
    'an action without its schema',
    () => site.createActionHandlers().handle('a', given({}), () => {}),
    'parameters must be a schema of zod',
  ],
  [
    'an action without its handler',
    () => site.createActionHandlers().handle('a', { parameters: given({ safeParseAsync() {} }) }, given(undefined)),
    'handler must be a function, not undefined',
  ],
  [
    'an action whose lease is none',
    () => site.createActionHandlers().handle('a', given({ parameters: { safeParseAsync() {} }, lease: 5 }), () => {}),
    'lease must be true, false or a name, not 5',
  ],
  [
    'a control server without its publisher',
    () => startCooperativeSiteControlServer(without(controlParts, 'publisher')),
    'publisher must be a publisher, ',
  ],
  [
    'a control server without its token',
    () => startCooperativeSiteControlServer(without(controlParts, 'token')),
    'token must be a string',
  ],
  [
    'a publisher without its runtime',
    () => createCooperativeSitePublisher(given({})),
    'runtime must be an object, not undefined',
  ],
  [
    'a publisher whose relay is at no URL',
    () => createCooperativeSitePublisher({ runtime: { ...runtime, baseUrl: 'x' } }),
    'runtime.baseUrl must be an http(s) URL without credentials, query and fragment',
  ],
  [
    'a remote registry whose relay does not speak HTTP',
    () => createRemoteSiteRegistry({ runtime: { ...runtime, baseUrl: 'ftp://relay.test' } }),
    'runtime.baseUrl must be an http(s) URL without credentials, query and fragment',
  ],
  ['a remote registry without its runtime', () => createRemoteSiteRegistry(given({})), 'runtime must be '],
  [
    'a viewer without its session',
    () => createCooperativeSiteClient(given({ baseUrl: '/relay' })),
    'sessionId must be a string',
  ],
  [
    'a viewer whose relay is a script',
    () => createCooperativeSiteClient({ baseUrl: 'javascript:alert(1)', sessionId: 's' }),
    'baseUrl must be a path or an http(s) URL without credentials, query and fragment',
  ],
  [
    'a fake of a name misspelt',
    () => createFakeInspectors(given({ connection: [] })),
    'the option connection is unknown; known are connections, ',
  ],
  ['a fake that is no list', () => createFakeInspectors(given({ calls: {} })), 'calls must be a list'],
  ...[toNodeHandler, toExpressMiddleware, toHonoHandler, toDenoHandler, startNodeServer].flatMap(
    (adapt): [string, () => unknown, string][] => [
      [
        `${adapt.name} of nothing`,
        () => adapt(given(undefined)),
        'handler must be a function, as a router is one, not undefined',
      ],
      [
        `${adapt.name} with a name misspelt`,
        () => adapt(handler, given({ allowedHost: [] })),
        'the option allowedHost is unknown; known are ',
      ],
    ],
  ),
]

describe('an option that cannot have been meant', () => {
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
    sites: having('get'),
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
    [null, 'the options must be an object, not null'],
    [[], 'the options must be an object, not a list'],
    [{}, 'sites must be an object with get(), not undefined'],
    [{ sites: {} }, 'sites must be an object with get(), not an object'],
    [{ sites: null }, 'sites must be an object with get(), not null'],
    [{ sites, onError: 1 }, 'onError must be a function, or null, not 1'],
    [{ sites, timeouts: 5 }, 'timeouts must be an object, not 5'],
    [{ sites, timeouts: { now: 5 } }, 'timeouts.now must be a function, not 5'],
    [{ sites, timeouts: { later: 5 } }, 'the option timeouts.later is unknown; known are now'],
    [{ prefx: '' }, 'the option prefx is unknown; known are sites, prefix, onError, timeouts'],
  ])('may not be %o', (options, sentence) => {
    expect(() => readOptions(schema, options)).toThrow(new TypeError(sentence))
  })

  const urls = { runtime: checks.optionsOf({ baseUrl: checks.needed(BASE_URL) }), baseUrl: BASE_URL_OR_PATH }
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
    expect(() => checks.checkOptions({ runtime: { baseUrl }, baseUrl }, urls)).not.toThrow()
  })

  it.each(IN_A_PAGE)('may name %j in a page, and nowhere else', (baseUrl) => {
    expect(() => checks.checkOptions({ baseUrl }, urls)).not.toThrow()
    expect(() => checks.checkOptions({ runtime: { baseUrl } }, urls)).toThrow(TypeError)
  })

  it.each(NOWHERE)('may not name %j as where routes begin, and it is not repeated', (baseUrl) => {
    const said = 'http(s) URL without credentials, query and fragment'
    expect(() => checks.checkOptions({ baseUrl }, urls)).toThrow(new TypeError(`baseUrl must be a path or an ${said}`))
    expect(() => checks.checkOptions({ runtime: { baseUrl } }, urls)).toThrow(
      new TypeError(`runtime.baseUrl must be an ${said}`),
    )
  })

  it('may have others beside them where they are parts of something larger', () => {
    expect(readParts(schema, { sites, another: 1 })).toEqual({ sites })
    expect(() => readParts(schema, { another: 1 })).toThrow('sites must be')
  })
})
