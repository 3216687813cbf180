/** Cross-origin access to the routers and MCP: for the named origins, and no others. */
import { describe, expect, it } from 'vitest'
import { createWorld } from '../cooperative-site/world.js'
import { createSubject, KEY, PREFIX } from '../diagnostics/subject.js'
import { subject } from '../mcp/subject.js'

const PAGE = 'https://ops.example.org'
const cors = [PAGE, 'http://localhost:5173', 'capacitor://localhost']

type Handler = (request: Request) => Promise<Response>
interface Case {
  make(): Promise<Handler>
  path: string
  init: RequestInit
  methods: string
  cookies: string | null
}

const CASES: [string, Case][] = [
  [
    'the diagnostics router',
    {
      make: async () => createSubject({ cors }),
      path: `http://ops.test${PREFIX}/connections`,
      init: { headers: { 'x-admin-key': KEY } },
      methods: 'GET, HEAD',
      cookies: 'true',
    },
  ],
  [
    'the relay router',
    {
      make: async () => (await createWorld({ cors })).relay,
      path: 'http://relay.test/relay/sites/notes',
      init: { headers: { authorization: 'Bearer alice' } },
      methods: 'POST, GET, HEAD, PUT, DELETE',
      cookies: 'true',
    },
  ],
  [
    'MCP',
    {
      make: async () => subject({ allowedHosts: ['relay.example.org', 'ops.example.org'] }),
      path: 'http://relay.example.org/mcp',
      init: {
        method: 'POST',
        headers: { 'x-admin-key': KEY, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      },
      methods: 'POST',
      cookies: null,
    },
  ],
]

const PREFLIGHT = { 'access-control-request-method': 'GET' }

describe.each(CASES)('%s', (name, { make, path, init, methods, cookies }) => {
  const ask = async (origin: string | null, change: RequestInit = {}, handler?: Handler) => {
    const headers = new Headers(change.headers ?? init.headers)
    if (origin !== null) headers.set('origin', origin)
    return (handler ?? (await make()))(new Request(path, { ...init, ...change, headers }))
  }
  const corsHeaders = ({ headers }: Response) => [...headers.keys()].filter((key) => key.startsWith('access-control-'))
  const preflight = (origin: string | null, headers = {}) =>
    ask(origin, { method: 'OPTIONS', body: null, headers: { ...PREFLIGHT, ...headers } })

  it('lets pages of a named origin read answers and problems', async () => {
    const answers = [await ask(PAGE), await ask(PAGE, { headers: { 'content-type': 'application/json' } })]
    expect(answers.map(({ status }) => status)).toEqual([200, name === 'the relay router' ? 401 : 403])
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe(PAGE)
      expect(headers.get('access-control-allow-credentials')).toBe(cookies)
      expect(headers.get('access-control-expose-headers')).toMatch(/etag.*mcp-session-id.*retry-after.*x-as-of/)
      expect(headers.get('vary')).toBe('Origin')
    }
  })

  it('answers the preflight of a named origin without credentials', async () => {
    const { status, headers, body } = await preflight(PAGE, { 'access-control-request-headers': 'X-Own, content-type' })
    expect([status, body]).toEqual([204, null])
    expect(headers.get('access-control-allow-origin')).toBe(PAGE)
    expect(headers.get('access-control-allow-methods')).toBe(methods)
    expect(headers.get('access-control-allow-headers')).toMatch(/authorization.*mcp-protocol-version, mcp-session-id/)
    expect(headers.get('access-control-allow-headers')).toMatch(/, x-admin-key.*, x-own$/)
    expect(headers.get('vary')).toBe('Origin')
  })

  it.each(['bad\tname', '*', 'a, b c', 'x'.repeat(2_000)])('allows no headers for %j', async (requested) => {
    const { headers } = await preflight(PAGE, { 'access-control-request-headers': requested })
    expect(headers.get('access-control-allow-headers')).not.toContain(requested)
    expect(headers.get('access-control-allow-headers')).not.toContain('*')
  })

  it.each([
    'https://evil.example',
    'https://ops.example.org.evil.example',
    'https://evil.ops.example.org',
    'null',
    '*',
    `${PAGE}, ${PAGE}`,
    `${PAGE}/`,
    null,
  ])('names no origin to %s', async (origin) => {
    for (const response of [await ask(origin), await preflight(origin)]) {
      expect(corsHeaders(response)).toEqual([])
      expect(response.headers.get('vary')).toBe('Origin')
    }
    expect((await preflight(origin)).status).toBeGreaterThanOrEqual(401)
  })

  it('answers OPTIONS that is not a preflight as any other', async () => {
    const response = await ask(PAGE, { method: 'OPTIONS', body: null })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).not.toBeNull()
  })
})

it('the diagnostics and relay routers have no CORS headers without the option', async () => {
  const { relay } = await createWorld()
  const headers = { ...PREFLIGHT, origin: PAGE, 'x-admin-key': KEY, authorization: 'Bearer alice' }
  for (const [handler, path] of [
    [createSubject(), `http://ops.test${PREFIX}/connections`],
    [relay, 'http://relay.test/relay/sites/notes'],
  ] as const)
    for (const method of ['GET', 'OPTIONS']) {
      const response = await handler(new Request(path, { method, headers }))
      expect(response.status).toBe(method === 'GET' ? 200 : 405)
      expect([...response.headers.keys()].filter((key) => /^(access-control|vary)/.test(key))).toEqual([])
    }
})

it('an event stream of the relay can be read by a named origin', async () => {
  const world = await createWorld({ cors })
  const ended = new AbortController()
  const headers = { authorization: 'Bearer bob', origin: 'http://localhost:5173' }
  const path = `http://relay.test/relay/sessions/${world.session_id}/events`
  const response = await world.relay(new Request(path, { headers, signal: ended.signal }))
  expect(response.headers.get('content-type')).toMatch(/event-stream/)
  expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:5173')
  const reader = response.body?.getReader()
  expect(new TextDecoder().decode((await reader?.read())?.value)).toMatch(/event: ready/)
  await reader?.cancel()
})

it.each([
  '*',
  'null',
  'ops.example.org',
  'https://ops.example.org/',
  'https://ops.example.org:443',
  'https://OPS.example.org',
  'https://*.example.org',
  'https://a.example, https://b.example',
  '',
  1,
])('the option cors refuses %j', (origin) => {
  for (const given of [[origin], origin])
    expect(() => createSubject({ cors: given as string[] })).toThrow(
      /^Invalid option "cors": expected origins as browsers send them/,
    )
})
