import { describe, expect, it } from 'vitest'
import { openApiDocument } from '../../src/internal/diagnostics/openapi.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import {
  ASKING,
  CASES,
  createSubject,
  createWatched,
  get,
  getInVain,
  PREFIX,
  type RouteCase,
  send,
  withQuery,
} from './subject.js'

interface Operation {
  operationId: string
  tags: string[]
  security?: unknown
  'x-capability'?: string
  parameters: { name: string; in: string; required: boolean; schema: Record<string, unknown>; $ref?: string }[]
  responses: Record<string, { content: Record<string, { schema: { $ref: string } }> }>
}

interface Document {
  openapi: string
  servers: { url: string }[]
  security: unknown[]
  paths: Record<string, { get: Operation }>
  components: {
    schemas: Record<
      string,
      { required?: string[]; properties?: Record<string, unknown>; additionalProperties?: unknown; enum?: string[] }
    >
    securitySchemes: Record<string, unknown>
  }
}

const document = openApiDocument() as unknown as Document
const operation = ({ path }: { path: string }) => document.paths[path]?.get as Operation
const queryOf = (path: string, name: string) =>
  operation({ path }).parameters.find((parameter) => parameter.name === name)

/** Every status that a route can be brought to. */
async function statusesOf({ route, url, path, query }: RouteCase): Promise<string[]> {
  const found = new Set<number>()
  const note = async (answer: Promise<{ status: number }>) => found.add((await answer).status)
  const subject = createSubject()
  await note(get(subject, url))
  await note(get(subject, url, { headers: { 'x-admin-key': 'wrong' } }))
  await note(get(subject, url, { method: 'POST' }))
  await note(get(subject, url, { headers: { 'x-expected-deployment-id': 'elsewhere' } }))
  await note(get(subject, withQuery(url, 'x'.repeat(9_000))))
  await note(get(subject, url, { headers: { 'if-none-match': '*' } }))
  await note(get(subject, withQuery(url, 'nope=1')))
  await note(get(createSubject({ inspectors: {} }), url))
  await note(get(subject, path.replaceAll(/\{\w+\}/g, '%ff') + (query && `?${query}`)))
  if (route.record)
    await note(
      get(subject, `${path.replaceAll(/\{\w+\}/g, 'none')}?${query.replace('cmd-1', 'none')}`.replace(/\?$/, '')),
    )
  for (const fail of ['unavailable', 'invalid_identity', 'stale_instance'] as const)
    await note(get(createWatched({}, () => Promise.reject(new Refusal(fail))).router, url))
  await note(getInVain(url))
  await note(
    get(
      createSubject({
        now: () => {
          throw new Error('a broken clock')
        },
      }),
      url,
    ),
  )
  return [...found].sort().map(String)
}

describe('the document', () => {
  it('is served by the router, for where it is mounted', async () => {
    const { body } = await get(createSubject(), '/openapi.json')
    expect(body).toEqual(openApiDocument({ prefix: PREFIX }))
    expect(body).toMatchObject({ openapi: '3.1.0', servers: [{ url: PREFIX }] })
    expect(document.servers).toEqual([{ url: '/' }])
  })

  it('has every route and nothing else', () => {
    expect(Object.keys(document.paths)).toEqual(CASES.map(({ path }) => path))
    const ids = CASES.map((asked) => operation(asked).operationId)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it.each(CASES)('names exactly the statuses of $path', async (asked) => {
    const named = Object.keys(operation(asked).responses).sort()
    // Any answer can meet a fault of the router itself, which no test can bring about on every route.
    expect(named).toEqual([...new Set([...(await statusesOf(asked)), '500'])].sort())
  })

  it('asks for the key everywhere, by one header', () => {
    expect(document.security).toEqual([{ adminKey: [] }, { bearerKey: [] }])
    expect(document.components.securitySchemes).toEqual({
      adminKey: { type: 'apiKey', in: 'header', name: 'X-Admin-Key' },
      bearerKey: { type: 'http', scheme: 'bearer' },
    })
    for (const asked of CASES) expect(operation(asked).security).toBeUndefined()
  })

  it('says which capability a route needs', () => {
    for (const { route, path } of CASES)
      expect([path, operation({ path })['x-capability']]).toEqual([path, route.requires[0]])
    expect(ASKING).toHaveLength(CASES.length - 3)
  })

  it('publishes enums, limits and required queries', () => {
    const enumOf = (schema: Record<string, unknown> | undefined): unknown => {
      const name = /[^/]+$/.exec(String(schema?.$ref))?.[0] ?? ''
      return schema?.enum ?? document.components.schemas[name]?.enum
    }
    for (const [path, name, values] of [
      ['/contexts', 'status', ['active', 'idle', 'closed', 'stale']],
      ['/contexts', 'ownership', ['user-owned', 'worker']],
      ['/connections', 'client_type', ['browser', 'console', 'mobile', 'web']],
      ['/connections/count', 'status', ['connected', 'disconnected']],
      ['/workers', 'client_type', ['browser', 'console', 'mobile', 'web']],
      ['/browser-windows', 'type', ['normal', 'popup', 'panel', 'app', 'devtools']],
      ['/browser-windows/count', 'state', ['normal', 'minimized', 'maximized', 'fullscreen']],
    ] as const)
      expect([path, name, enumOf(queryOf(path, name)?.schema)]).toEqual([path, name, values])
    for (const { path, route } of CASES) {
      const limit = queryOf(path, 'limit')
      expect([path, limit !== undefined]).toEqual([path, route.page !== undefined])
      if (limit)
        expect(limit).toMatchObject({
          required: false,
          schema: { type: 'integer', minimum: 1, default: 100, maximum: path === '/history/messages' ? 1_000 : 500 },
        })
      expect(queryOf(path, 'cursor') ?? { schema: { maxLength: 512 }, required: false }).toMatchObject({
        schema: { maxLength: 512 },
        required: false,
      })
    }
    const required = CASES.flatMap(({ path }) =>
      operation({ path })
        .parameters.filter((parameter) => parameter.in === 'query' && parameter.required)
        .map(({ name }) => `${path} ${name}`),
    )
    expect(required).toEqual([
      '/search q',
      '/history/messages stream',
      '/rpc/instances/{instance_id} user_id',
      '/rpc/instances/{instance_id} client_id',
      '/workers user_id',
      '/workers/count user_id',
      '/workers/available user_id',
      '/workers/tasks/{task_id} user_id',
      '/delivery/status user_id',
      '/delivery/status client_id',
      '/delivery/status command_id',
      '/delivery/why user_id',
      '/delivery/why client_id',
      '/delivery/why command_id',
    ])
  })

  it('follows the limits of the router that it describes', () => {
    const lowered = openApiDocument({ limits: { pageMax: 50, historyMax: 20 } }) as unknown as Document
    const limitOf = (path: string) => lowered.paths[path]?.get.parameters.find(({ name }) => name === 'limit')?.schema
    expect(limitOf('/connections')).toMatchObject({ maximum: 50, default: 50 })
    expect(limitOf('/history/messages')).toMatchObject({ maximum: 20, default: 20 })
  })

  it('says of every record that all its fields are always there and no others, but for the number of what it had to omit', () => {
    const sometimes = ['omitted']
    for (const [name, { properties, required, additionalProperties }] of Object.entries(document.components.schemas)) {
      if (!properties || name === 'Problem') continue
      const always = Object.keys(properties).filter((field) => !sometimes.includes(field))
      expect([name, required?.toSorted()]).toEqual([name, always.toSorted()])
      expect([name, additionalProperties]).toEqual([name, false])
    }
    expect(JSON.stringify(document)).not.toMatch(/"(completed|success|done)"/)
  })

  it('resolves every reference within itself', () => {
    const names = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(
      (match) => match[1] as string,
    )
    for (const name of names) expect(document.components.schemas).toHaveProperty(name)
    expect(JSON.stringify(document)).not.toMatch(/\$defs|"\$id"|\$schema/)
  })
})

it('describes a router without inspectors just the same', async () => {
  const response = await send(createSubject({ inspectors: {} }), '/openapi.json')
  expect(await response.json()).toEqual(
    await (await send(createSubject({ inspectors: createFakeInspectors({}) }), '/openapi.json')).json(),
  )
})
