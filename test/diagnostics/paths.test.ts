import { describe, expect, it } from 'vitest'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject, createWatched, expectProblem, get, KEY, ORIGIN, PREFIX, type Router } from './subject.js'
import { connection, context } from './world.js'

/** Asks for a whole target, as it would stand in the request line. */
async function target(router: Router, path: string, init: RequestInit = {}) {
  const response = await router(
    new Request(`${ORIGIN}${path}`, { ...init, headers: { 'x-admin-key': KEY, ...init.headers } }),
  )
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: text && JSON.parse(text) }
}

describe('the order of checks', () => {
  const breaks: [status: number, code: string, change: (given: Asked) => void][] = [
    [
      404,
      'route_not_found',
      (asked) => {
        asked.prefix = '/elsewhere'
      },
    ],
    [
      414,
      'uri_too_long',
      (asked) => {
        asked.query += `&${'x'.repeat(8_192)}`
      },
    ],
    [
      403,
      'forbidden',
      (asked) => {
        asked.headers.set('x-admin-key', 'wrong')
      },
    ],
    [
      404,
      'route_not_found',
      (asked) => {
        asked.path = '/delivery/nope'
      },
    ],
    [
      405,
      'method_not_allowed',
      (asked) => {
        asked.method = 'POST'
      },
    ],
    [
      412,
      'deployment_mismatch',
      (asked) => {
        asked.headers.set('x-expected-deployment-id', 'elsewhere')
      },
    ],
    [
      501,
      'inspector_absent',
      (asked) => {
        asked.inspectors = {}
      },
    ],
    [
      422,
      'invalid_query',
      (asked) => {
        asked.query += '&nope=1'
      },
    ],
    [
      400,
      'invalid_delivery_identity',
      (asked) => {
        asked.query = asked.query.replace('desk', 'a%2Fb')
      },
    ],
    [
      404,
      'not_found',
      (asked) => {
        asked.query = asked.query.replace('cmd-1', 'cmd-9')
      },
    ],
  ]
  type Asked = ReturnType<typeof fresh>
  const fresh = () => ({
    prefix: PREFIX,
    path: '/delivery/status',
    query: 'user_id=alice&client_id=desk&command_id=cmd-1',
    method: 'GET',
    headers: new Headers({ 'x-admin-key': KEY }),
    inspectors: undefined as object | undefined,
  })

  it.each(
    breaks.map(([status, code], i) => [i, status, code] as const),
  )('of all that is wrong from step %i on, %i %s is answered', async (i, status, code) => {
    const asked = fresh()
    for (const [, , change] of breaks.slice(i)) change(asked)
    const { prefix, path, query, method, headers, inspectors } = asked
    const router = createSubject(inspectors ? { inspectors } : {})
    expectProblem(
      await target(router, `${prefix}${path}?${query}`, { method, headers: Object.fromEntries(headers) }),
      status,
      code,
    )
  })
})

describe('the prefix', () => {
  it.each(['', '/'])('is its index at %j after it', async (rest) => {
    expect((await target(createSubject(), PREFIX + rest)).body.service).toBe('relayscope')
  })
  it.each([
    '/',
    '/ops',
    '/ops/',
    '/ops/diagnostic',
    '/ops/diagnosticsx/capabilities',
    '/ops/diagnostics-public/capabilities',
    '//ops/diagnostics/capabilities',
    '/ops//diagnostics/capabilities',
    '/OPS/diagnostics/capabilities',
    '/ops/Diagnostics/capabilities',
    '/ops%2Fdiagnostics/capabilities',
    '/ops/diagnostics%2Fcapabilities',
    '/%256fps/diagnostics/capabilities',
    '/x/ops/diagnostics/capabilities',
    '//evil.test/ops/diagnostics/capabilities',
    '/\\evil.test/x',
    '/%6',
    '/%ff/diagnostics/capabilities',
    '/capabilities',
    '/ops/diagnostics\u{FF0F}capabilities',
    '/%6fps/diagnostics/capabilities',
  ])('does not own %s: 404 before authentication, nothing asked', async (path) => {
    const { router, calls } = createWatched()
    expectProblem(await target(router, path, { headers: { 'x-admin-key': 'wrong' } }), 404, 'route_not_found')
    expect(router.owns(new URL(ORIGIN + path).pathname)).toBe(false)
    expect(calls).toEqual([])
  })
  it.each([
    '/%63apabilities',
    '/users/%61lice/%73ummary',
    '/connections/%63ount',
    '//',
    '//capabilities',
    '/capabilities//',
    '/users//summary',
    '/connections//history',
  ])('does not own %s, and says so only to authenticated callers', async (path) => {
    const { router, calls } = createWatched()
    expectProblem(await target(router, PREFIX + path, { headers: { 'x-admin-key': 'wrong' } }), 403, 'forbidden')
    expectProblem(await target(router, PREFIX + path), 404, 'route_not_found')
    expect(router.owns(PREFIX + path)).toBe(false)
    expect(calls).toEqual([])
  })
  it('answers a path whose dot segments a runtime has resolved, and does not own it as it was sent', async () => {
    const path = '/ops/./diagnostics/x/../capabilities'
    expect((await target(createSubject(), path)).status).toBe(200)
    expect(createSubject().owns(path)).toBe(false)
    expect(createSubject().owns('/ops/diagnostics/users/%2e%2E/summary')).toBe(false)
  })
  it.each([
    '/users/%61lice/summary',
    '/users/%73ummary/summary',
    '/contexts/%63trl',
    '/nope/%63ount',
  ])('owns %s: a parameter may be encoded in any way', (path) => {
    expect(createSubject().owns(PREFIX + path)).toBe(true)
  })
  it.each([
    '/capabilities/',
    '/users/alice/summary/',
    '/connections/',
    '/Capabilities',
    '/%2563apabilities',
    '/nope',
    '/%ff',
    '/capabilities/x',
    '/users/alice',
    '/connections/conn-1/history/x',
    '/connections%2Fcount',
    '/openapi.jsonx',
    '/openapixjson',
    '/.',
    '/%00',
    '/delivery',
    '/workers/tasks',
    '/{user_id}',
    '/users/:user_id/x',
  ])('has no route at %s', async (path) => {
    if (path === '/.') return expect((await target(createSubject(), PREFIX + path)).status).toBe(200)
    expectProblem(await target(createSubject(), PREFIX + path), 404, 'route_not_found')
  })
  it.each([
    ['/é', '/%C3%A9'],
    ['/a%20b', '/a%20b'],
    ['/ops/', '/ops'],
    ['/', ''],
    ['', ''],
    ['/a+b', '/a+b'],
    ['/a%2Bb', '/a+b'],
    ['/@ops/v:1;a=b,c&d', '/@ops/v:1;a=b,c&d'],
    ['/(x)*[y]$|', '/(x)*[y]$|'],
    ['/{a} "b" ', '/%7Ba%7D%20%22b%22%20'],
    ['/a%25b', '/a%25b'],
    ['/a%3Fb%23c%5Cd', '/a%3Fb%23c%5Cd'],
    ['/a%2Fb', '/a%2Fb'],
    ['/a.b', '/a.b'],
  ])('%s is normalised to %s and answers there', async (prefix, canonical) => {
    const router = createSubject({ prefix })
    expect(router.prefix).toBe(canonical)
    // What a browser asks for who is given that prefix.
    expect(new URL(`${canonical}/x`, 'http://h').pathname).toBe(`${canonical}/x`)
    expect((await get(router, '/capabilities')).status).toBe(200)
    if (prefix === '/a.b') expect((await target(router, '/axb/capabilities')).status).toBe(404)
  })
  it.each([
    'ops',
    'ops/x',
    '//',
    '/a//b',
    '//a',
    '/.',
    '/a/..',
    '/%2e%2e',
    '/a?x',
    '/a#x',
    '/a\\b',
    '/%ff',
    '/%',
    '/a%00b',
    '/a\nb',
    'http://x/y',
    '/\ud800',
  ])('refuses %j at construction', (prefix) => {
    expect(() => createSubject({ prefix })).toThrow(TypeError)
  })
})

describe('ids in paths', () => {
  const ids: [segment: string, id: string][] = [
    ['a%2Fb', 'a/b'],
    ['a%252Fb', 'a%2Fb'],
    ['%25', '%'],
    ['a+b', 'a+b'],
    ['a%20b', 'a b'],
    ['%2A', '*'],
    ['a:b', 'a:b'],
    ['a%3Fb%23c', 'a?b#c'],
    ['%F0%9F%98%80', '\u{1F600}'],
    ['caf%C3%A9', 'caf\u00e9'],
    ['cafe%CC%81', 'cafe\u0301'],
    ['a%5Cb', 'a\\b'],
    ["~!$&'()*,;=@", "~!$&'()*,;=@"],
    ['x'.repeat(256), 'x'.repeat(256)],
    ['%C3%A9'.repeat(128), 'é'.repeat(128)],
    ['count%20', 'count '],
    ['__proto__', '__proto__'],
    ['...', '...'],
  ]
  it.each(ids)('/contexts/%s asks for exactly %j', async (segment, id) => {
    const { router, calls } = createWatched()
    expectProblem(await get(router, `/contexts/${segment}`), 404, 'not_found')
    expect(calls.map(({ name, args }) => [name, args[0]])).toEqual([['contextRegistry.getContext', id]])
  })
  it.each(ids)('user_id=%s filters by exactly %j', async (segment, id) => {
    const { router, calls } = createWatched()
    expect(
      (await get(router, `/contexts?user_id=${segment.replaceAll('+', '%2B').replaceAll('&', '%26')}`)).body.items,
    ).toEqual([])
    expect(calls.map(({ args }) => args[0])).toEqual([{ user_id: id }])
  })
  it.each([
    'x'.repeat(257),
    '%C3%A9'.repeat(129),
    '%F0%9F%98%80'.repeat(65),
  ])('refuses 257 bytes and more', async (segment) => {
    expectProblem(await get(createSubject(), `/contexts/${segment}`), 422, 'invalid_path')
    expectProblem(await get(createSubject(), `/contexts?user_id=${segment}`), 422, 'invalid_query')
  })
  it('a literal segment wins over a parameter, and only when it is spelt exactly', async () => {
    const { router, calls } = createWatched()
    expect((await get(router, '/contexts/count')).body).toHaveProperty('total')
    expectProblem(await get(router, '/contexts/%63ount'), 404, 'route_not_found')
    expectProblem(await get(router, '/contexts/Count'), 404, 'not_found')
    expect(calls.at(-1)?.args[0]).toBe('Count')
  })
  it('two spellings are two ids', async () => {
    const spelt = ['caf\u00e9', 'cafe\u0301', 'CAF\u00c9']
    const inspectors = createFakeInspectors({
      contexts: spelt.map((context_id) => context({ context_id, user_id: context_id })),
      connections: [connection()],
    })
    const router = createSubject({ inspectors })
    for (const id of spelt) {
      expect((await get(router, `/contexts/${encodeURIComponent(id)}`)).body.context_id).toBe(id)
      expect((await get(router, `/users/${encodeURIComponent(id)}/summary`)).body.observed_contexts).toBe(1)
    }
    expect((await get(router, '/users')).body.items).toHaveLength(4)
  })
})

describe('what an answer must not depend on', () => {
  it('the host, and any header that speaks of one or of a method', async () => {
    const answers = new Set<string>()
    for (const origin of ['http://localhost', 'http://evil.test', 'https://evil.test:8443'])
      for (const headers of [
        {},
        {
          host: 'evil.test',
          'x-forwarded-host': 'evil.test',
          'x-forwarded-proto': 'https',
          forwarded: 'host=evil.test',
        },
        {
          'x-forwarded-prefix': '/evil',
          'x-original-url': '/evil',
          'x-rewrite-url': '/evil',
          'x-http-method-override': 'DELETE',
        },
      ])
        for (const path of ['', '/openapi.json', '/connections?limit=2', '/nope'])
          answers.add(
            await (
              await createSubject()(
                new Request(`${origin}${PREFIX}${path}`, { headers: { 'x-admin-key': KEY, ...headers } as never }),
              )
            ).text(),
          )
    expect(answers.size).toBe(4)
    expect([...answers].join()).not.toContain('evil')
  })

  it('a body, which is never read', async () => {
    let pulled = 0
    const body = new ReadableStream(
      {
        pull: () => {
          pulled += 1
        },
      },
      { highWaterMark: 0 },
    )
    const request = new Request(`${ORIGIN}${PREFIX}/users`, {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { 'x-admin-key': KEY },
    } as RequestInit)
    expect((await createSubject()(request)).status).toBe(405)
    expect([request.bodyUsed, pulled]).toEqual([false, 0])
  })

  it('how long a path is: a megabyte is refused', async () => {
    const long = '/a'.repeat(500_000)
    expect((await target(createSubject(), long)).status).toBe(404)
    expect((await target(createSubject(), PREFIX + long)).status).toBe(414)
    expect((await target(createSubject({ prefix: '' }), long)).status).toBe(414)
    expect((await target(createSubject({ prefix: '', auth: noopAuth() }), '/a'.repeat(4_000))).status).toBe(404)
  })

  it('a URL of 8,192 bytes is read, and one of 8,193 is not', async () => {
    const url = (length: number) => `${PREFIX}/users?`.padEnd(length - ORIGIN.length, 'x')
    expectProblem(await target(createSubject(), url(8_192)), 422, 'invalid_query')
    expectProblem(await target(createSubject(), url(8_193)), 414, 'uri_too_long')
  })
})
