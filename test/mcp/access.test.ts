import { request as httpRequest } from 'node:http'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { apiKeyAuth, bearerAuth, noopAuth, resolveAdminAuth } from '../../src/index.js'
import type { McpOptions } from '../../src/mcp/index.js'
import { createSubject, KEY, never, SECRET } from '../diagnostics/subject.js'
import {
  callMessage,
  call as callTool,
  connectHttp,
  fetchRoute,
  message,
  serve,
  serveRouter,
  subject,
} from './subject.js'

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

/** The status of the answer, and its problem. */
async function answer(response: Response): Promise<[status: number, code?: string]> {
  const text = await response.text()
  const code = /"code":"(\w+)"/.exec(text)?.[1]
  return code === undefined ? [response.status] : [response.status, code]
}

/** Creates a body, and tells whether it has been read. */
function watchedBody(text: string) {
  let isRead = false
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        isRead = true
        controller.enqueue(new TextEncoder().encode(text))
        controller.close()
      },
    },
    { highWaterMark: 0 },
  )
  return { body, isRead: () => isRead }
}

describe('access control', () => {
  it.each([
    ['a name of this machine', { host: 'localhost:4780' }, [200]],
    ['its own origin', { host: '127.0.0.1:4780', origin: 'http://127.0.0.1:4780' }, [200]],
    ['a foreign name', { host: 'evil.example' }, [403, 'bad_host']],
    ['a name that begins alike', { host: 'localhost.evil.example' }, [403, 'bad_host']],
    ['a foreign page', { host: 'localhost:4780', origin: 'https://evil.example' }, [403, 'bad_origin']],
    [
      'a page of another port of this machine',
      { host: 'localhost:4780', origin: 'http://localhost:3000' },
      [403, 'bad_origin'],
    ],
    ['a page without an origin', { host: 'localhost:4780', origin: 'null' }, [403, 'bad_origin']],
    ['two origins', { host: 'localhost', origin: 'http://localhost, http://evil.example' }, [403, 'bad_origin']],
  ])('%s', async (_, headers, expected) => {
    expect(await answer(await subject()(message(LIST, headers as Record<string, string>)))).toEqual(expected)
  })

  it('answers to the names that its host gives it, and to no other', async () => {
    const mcp = subject({ allowedHosts: ['ops.example.org'] })
    const result = async (headers: Record<string, string>) => answer(await mcp(message(LIST, headers)))
    expect(await result({ host: 'ops.example.org' })).toEqual([200])
    expect(await result({ host: 'ops.example.org', origin: 'https://ops.example.org' })).toEqual([200])
    expect(await result({ host: 'localhost' })).toEqual([403, 'bad_host'])
  })

  it.each([
    ['the key', { 'x-admin-key': KEY }, {}, 200],
    ['the key as a bearer token', { 'x-admin-key': '', authorization: `Bearer ${KEY}` }, {}, 200],
    ['a wrong key', { 'x-admin-key': 'wrong' }, {}, 403],
    ['a wrong key with the right token', { 'x-admin-key': 'wrong', authorization: `Bearer ${KEY}` }, {}, 403],
    ['no key', { 'x-admin-key': '' }, {}, 403],
    ['a key that the router accepts, and the endpoint does not', {}, { auth: apiKeyAuth('of-the-endpoint') }, 403],
    ['an authenticator that throws', {}, { auth: { authenticate: () => Promise.reject(new Error(SECRET)) } }, 403],
    ['an authenticator that never settles', {}, { auth: { authenticate: never }, deadlineMs: 30 }, 403],
    ['one that answers nonsense', {}, { auth: { authenticate: () => ({}) as never } }, 403],
  ] as [
    string,
    Record<string, string>,
    McpOptions,
    number,
  ][])('%s, before the body is read', async (_, given, options, status) => {
    const { body, isRead } = watchedBody(JSON.stringify(LIST))
    const headers: Record<string, string> = { 'x-admin-key': KEY, ...given }
    if (headers['x-admin-key'] === '') delete headers['x-admin-key']
    const request = new Request('http://localhost/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body,
      duplex: 'half',
    } as RequestInit)
    const response = await subject(options)(request)
    expect(response.status).toBe(status)
    expect(isRead()).toBe(status === 200)
    expect(await response.text()).not.toContain(SECRET)
  })

  it('hands the router what the caller came in with, so that he sees what is his', async () => {
    const onAccess = vi.fn()
    const router = createSubject({ auth: apiKeyAuth({ ann: 'key-of-ann', bob: 'key-of-bob' }), onAccess })
    const mcp = subject({ router })
    await mcp(message(callMessage('user_summary', { user_id: 'alice' }), { 'x-admin-key': 'key-of-bob' }))
    const result = onAccess.mock.calls.map(([event]) => [event.principal, event.route])
    expect(result).toContainEqual(['bob', '/users/{user_id}/summary'])
    expect(result.every(([name]) => name === 'bob')).toBe(true)
  })

  it("passes the caller's address to the router, and calls it only for authenticated callers", async () => {
    const onAccess = vi.fn()
    const mcp = subject({ router: createSubject({ onAccess }) })
    const question = message(callMessage('user_summary', { user_id: 'alice' }), { authorization: `Bearer ${KEY}` })
    question.headers.delete('x-admin-key')
    const response = await mcp(question, { remoteAddress: '192.0.2.7' })
    expect(await response.text()).toContain('One user.')
    expect(onAccess.mock.calls.map(([event]) => [event.principal, event.route, event.remote_address])).toEqual([
      ['admin', '/capabilities', '192.0.2.7'],
      ['admin', '/users/{user_id}/summary', '192.0.2.7'],
    ])
  })

  it('knows a caller of 2026 by what he came in with, too', async () => {
    const onAccess = vi.fn()
    const client = await connectHttp(await serve({ router: createSubject({ onAccess }) }))
    await callTool(client, 'user_summary', { user_id: 'alice' })
    expect(onAccess.mock.calls.map(([event]) => event.remote_address)).not.toContain(null)
    expect(onAccess.mock.calls.at(-1)?.[0]).toMatchObject({ principal: 'admin', route: '/users/{user_id}/summary' })
  })

  it('passes on that this is not the expected deployment', async () => {
    const expected = { 'x-expected-deployment-id': 'another' }
    expect(await answer(await subject()(message(LIST, expected)))).toEqual([412, 'deployment_mismatch'])
    const url = await serveRouter()
    expect(await answer(await subject({ url })(message(LIST, expected)))).toEqual([412, 'deployment_mismatch'])
    const own = subject({ url, key: KEY, auth: noopAuth() })
    const result = await own(message(callMessage('user_summary', { user_id: 'alice' }), expected))
    expect(await result.text()).toContain('412 deployment_mismatch')
  })

  it('leaves a router without a key to who names this machine', async () => {
    const router = createSubject({ auth: resolveAdminAuth({ strict: true, host: '127.0.0.1', env: {} }) })
    const mcp = subject({ router, allowedHosts: ['loopback', 'evil.example'] })
    expect(await answer(await mcp(message(LIST)))).toEqual([200])
    expect(await answer(await mcp(message(LIST, { host: 'evil.example' })))).toEqual([403, 'admin_key_required'])
    expect(await answer(await mcp(message(LIST), { remoteAddress: '192.0.2.7' }))).toEqual([403, 'admin_key_required'])
  })

  it('passes on to a keyless router at url that the caller is on another machine, or behind a proxy', async () => {
    const url = await serveRouter(
      createSubject({ auth: resolveAdminAuth({ strict: true, host: '127.0.0.1', env: {} }) }),
    )
    const from = async (remoteAddress: string, headers = {}) =>
      answer(await subject({ url })(message(LIST, headers), { remoteAddress }))
    expect(await from('127.0.0.1')).toEqual([200])
    expect(await from('192.0.2.7')).toEqual([403, 'admin_key_required'])
    expect(await from('127.0.0.1', { 'x-forwarded-for': '127.0.0.1' })).toEqual([403, 'admin_key_required'])
  })

  it.each([
    ['too long', 'x'.repeat(300_000), {}, [413, 'body_too_large']],
    ['too long, and it says so', '{}', { 'content-length': '300000' }, [413, 'body_too_large']],
    ['no JSON', '{', {}, [400, 'invalid_json']],
    ['too deep', '['.repeat(100), {}, [422, 'invalid_body']],
    ['a batch', JSON.stringify(Array.from({ length: 100 }, () => LIST)), {}, [422, 'invalid_body']],
    ['a form', 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }, [415, 'unsupported_media_type']],
    [
      'plain text, as a page may send it unasked',
      JSON.stringify(LIST),
      { 'content-type': 'text/plain' },
      [415, 'unsupported_media_type'],
    ],
    ['compressed', JSON.stringify(LIST), { 'content-encoding': 'gzip' }, [415, 'unsupported_media_type']],
  ])('refuses a body that is %s', async (_, body, headers, expected) => {
    expect(await answer(await subject()(message(body, headers)))).toEqual(expected)
  })

  it('names a body that was read before, to the caller and to onError', async () => {
    const errors: unknown[] = []
    const request = message(LIST)
    await request.text()
    const response = await subject({ onError: (error) => errors.push(error) })(request)
    expect(await answer(response)).toEqual([500, 'body_consumed'])
    expect(errors).toEqual([expect.objectContaining({ message: expect.stringMatching(/was read before/) })])
  })

  it('answers problems as the routers do', async () => {
    const mcp = subject({ prefix: '/ops/mcp' })
    const result = async (path: string, method: string) =>
      answer(await mcp(new Request(`http://localhost${path}`, { method, headers: { 'x-admin-key': KEY } })))
    expect(await result('/ops/mcp', 'GET')).toEqual([405, 'method_not_allowed'])
    expect(await result('/ops/mcp', 'DELETE')).toEqual([405, 'method_not_allowed'])
    expect(await result('/ops/mcp/more', 'POST')).toEqual([404, 'route_not_found'])
    expect(['/ops/mcp', '/ops/mcp/', '/ops', '/mcp'].map(mcp.owns)).toEqual([true, true, false, false])
    expect(mcp.prefix).toBe('/ops/mcp')
  })

  it('is closed to two Host headers on the wire', async () => {
    const { hostname, port } = new URL(await serve())
    const status = await new Promise((resolve, reject) => {
      const sent = httpRequest({ hostname, port, path: '/mcp', method: 'POST', setHost: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      sent.on('error', reject)
      sent.setHeader('host', ['localhost', 'evil.example'] as never)
      sent.end()
    })
    expect(status).toBe(400)
  })
})

describe('a router at a URL', () => {
  it("is called with the host's key, for every caller that the host authenticates", async () => {
    const url = await serveRouter()
    const address = await serve({ url, key: KEY, auth: bearerAuth('of-the-agent') })
    const client = await connectHttp(address, 'auto', { authorization: 'Bearer of-the-agent' })
    expect((await callTool(client, 'relay_overview')).content?.complete).toBe(true)
    const refused = await fetch(address, { method: 'POST', headers: { 'x-admin-key': KEY }, body: '{}' })
    expect(refused.status).toBe(403)
  })

  it('hears a token that the host let in as a key, too', async () => {
    const client = await connectHttp(await serve({ auth: bearerAuth(KEY) }), 'auto', { authorization: `Bearer ${KEY}` })
    expect((await callTool(client, 'relay_overview')).content?.complete).toBe(true)
  })

  it('is asked with the key of the caller where the host has none', async () => {
    const mcp = subject({ url: await serveRouter() })
    expect(await answer(await mcp(message(LIST)))).toEqual([200])
    expect(await answer(await mcp(message(LIST, { 'x-admin-key': 'wrong' })))).toEqual([403, 'forbidden'])
  })

  it('hears nothing else of the caller', async () => {
    const heard: Record<string, unknown>[] = []
    const server = await startNodeServer((request) => {
      heard.push(Object.fromEntries(request.headers))
      return Response.json({})
    })
    onTestFinished(async () => void (await server.close()))
    await fetchRoute({ url: server.url }, 'user_summary', { user_id: 'alice' })
    expect(heard.length).toBeGreaterThan(0)
    for (const headers of heard) {
      expect(headers).toMatchObject({ 'x-admin-key': KEY })
      expect(Object.keys(headers).filter((name) => /^(?:mcp|content|cookie|origin)/.test(name))).toEqual([])
    }
  })

  it('that is unreachable is reported as such, and callers that only it could authenticate are rejected', async () => {
    const { url, close } = await startNodeServer(() => new Response())
    await close()
    const dead = { url, key: KEY, auth: noopAuth() }
    expect(await fetchRoute(dead, 'relay_overview')).toMatchObject({ isError: true, text: 'no response' })
    expect(await answer(await subject({ url })(message(LIST)))).toEqual([503, 'inspector_unavailable'])
  })

  it.each([
    ['hangs', () => never(), /^no response within 0.05 s$/],
    ['never ends', () => new Response(new ReadableStream({ pull: never })), /^no response within 0.05 s$/],
    [
      'is another server',
      () => new Response('<h1>hello</h1>', { headers: { 'content-type': 'text/html' } }),
      /not from a router/,
    ],
    [
      'is another server that refuses',
      () => new Response('no', { status: 418 }),
      /^418: not a response of this router$/,
    ],
    ['answers a list of nonsense', () => Response.json({ items: [1, 'x', null] }), /^the response is not a list$/],
    [
      'has words of its own',
      () => Response.json({ code: 'x', title: `${'<'.repeat(9_999)}\u202e` }, { status: 400 }),
      /^400 x: <U\+003C>/,
    ],
  ] as [
    string,
    () => Promise<never> | Response,
    RegExp,
  ][])('that %s is said within its bounds', async (_, handle, words) => {
    const server = await startNodeServer(handle, { closeTimeoutMs: 1 })
    onTestFinished(async () => void (await server.close()))
    const { text, isError } = await fetchRoute(
      { url: server.url, key: KEY, auth: noopAuth(), deadlineMs: words.source.includes('0.05') ? 50 : 10_000 },
      'find_records',
      { family: 'sites' },
    )
    expect(isError).toBe(true)
    expect(text).toMatch(words)
    expect(text.length).toBeLessThan(5_000)
  })

  it('that is another server reports no missing record', async () => {
    const router = { prefix: '', fetch: async () => new Response('no such page', { status: 404 }) }
    const { text } = await fetchRoute({ router, auth: noopAuth() }, 'get_record', { family: 'sites', id: 'notes' })
    expect(text).toBe('404: not a response of this router')
  })

  it('that redirects is not followed, so that no other server receives the key', async () => {
    const elsewhere = vi.fn(() => Response.json({ items: [], has_more: false }))
    const other = await startNodeServer(elsewhere)
    const server = await startNodeServer(() => Response.redirect(other.url, 307))
    onTestFinished(async () => void (await Promise.all([server.close(), other.close()])))
    const { text } = await fetchRoute({ url: server.url, key: KEY, auth: noopAuth() }, 'find_records', {
      family: 'sites',
    })
    expect(text).toBe('307: not a response of this router')
    expect(elsewhere).not.toHaveBeenCalled()
  })

  it('that answers without an end is left', async () => {
    let sent = 0
    const body = () =>
      new ReadableStream({
        pull(controller) {
          sent += 1
          controller.enqueue(new Uint8Array(1_048_576))
        },
      })
    const endless = { prefix: '', fetch: async () => new Response(body()) }
    const { text } = await fetchRoute({ router: endless, auth: noopAuth() }, 'find_records', { family: 'sites' })
    expect(text).toContain('or too large')
    expect(sent).toBeLessThan(32)
  })
})

describe('questions', () => {
  it('are put sixteen at a time; more wait for their turn, and not without a bound', async () => {
    let [now, most] = [0, 0]
    const held: (() => void)[] = []
    const slow = {
      prefix: '',
      async fetch() {
        now += 1
        most = Math.max(most, now)
        await new Promise<void>((resolve) => held.push(resolve))
        now -= 1
        return Response.json({ items: [], has_more: false })
      },
    }
    const mcp = subject({ router: slow, auth: noopAuth(), deadlineMs: 60_000 })
    const texts: string[] = []
    const all = Array.from({ length: 300 }, async () => {
      const response = await mcp(message(callMessage('find_records', { family: 'sites' })))
      texts.push(await response.text())
    })
    // Callers beyond the queue are rejected immediately; the others are queued by then.
    await vi.waitFor(() => expect(texts).toHaveLength(300 - 16 - 256), { timeout: 300_000 })
    while (texts.length < 300) {
      for (const release of held.splice(0)) release()
      await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all(all)
    expect(most).toBe(16)
    expect(texts.filter((text) => text.includes('too many requests are waiting'))).toHaveLength(300 - 16 - 256)
    expect(texts.filter((text) => text.includes('sites: 0 records.'))).toHaveLength(16 + 256)
  })

  it('end when their client disconnects', async () => {
    const left: AbortSignal[] = []
    const router = {
      prefix: '',
      fetch({ signal }: Request) {
        left.push(signal)
        return never()
      },
    }
    const address = await serve({ router, auth: noopAuth(), deadlineMs: 60_000 })
    const client = await connectHttp(address)
    const leaving = new AbortController()
    const { signal } = leaving
    const question = callMessage('find_records', { family: 'sites' })
    const result = [
      client.callTool(question.params, { signal }),
      // As a client of 2025 does whose program ends.
      fetch(address, { method: 'POST', headers: message({}).headers, body: JSON.stringify(question), signal }),
    ]
    await vi.waitFor(() => expect(left).toHaveLength(2), { timeout: 300_000 })
    leaving.abort()
    for (const each of await Promise.allSettled(result)) expect(each.status).toBe('rejected')
    await vi.waitFor(() => expect(left.every(({ aborted }) => aborted)).toBe(true), { timeout: 300_000 })
  })

  it('that are given up give their turn back', async () => {
    let isHanging = true
    const router = {
      prefix: '',
      fetch: () => (isHanging ? never() : Promise.resolve(Response.json({ items: [], has_more: false }))),
    }
    const mcp = subject({ router, auth: noopAuth(), deadlineMs: 1_000 })
    const result = async () => (await mcp(message(callMessage('find_records', { family: 'sites' })))).text()
    for (const text of await Promise.all(Array.from({ length: 40 }, result)))
      expect(text).toContain('no response within')
    isHanging = false
    expect(await result()).toContain('sites: 0 records.')
  })
})

describe('the options', () => {
  const router = createSubject()
  it.each([
    [{}, /Pass either "router" or "url", not both/],
    [{ router, url: 'http://localhost/' }, /Pass either "router" or "url"/],
    [{ router: {} }, /Invalid option "router": expected a diagnostics router/],
    [{ router, key: 'k' }, /Option "key" needs "url"/],
    [{ url: 'http://localhost/', key: 'k' }, /Missing required option "auth" \(required with "key"/],
    [
      { url: 'http://localhost/', allowedHosts: ['relay.example.org'] },
      /Missing required option "auth" \(required with an "allowedHosts"/,
    ],
    [
      { url: 'http://localhost/', allowedHosts: ['loopback', '0.0.0.0'] },
      /Missing required option "auth" \(required with an "allowedHosts"/,
    ],
    [
      { url: 'http://localhost/', key: ' ', auth: noopAuth() },
      /Invalid option "key": expected a string that is not blank$/,
    ],
    [{ url: 'http://localhost/', key: undefined, auth: noopAuth() }, /Invalid option "key": .*got undefined/],
    [{ router, auth: undefined }, /Invalid option "auth": .*got undefined/],
    [{ url: 'ftp://localhost/' }, /Invalid option "url": expected an http/],
    [{ url: 'http://user:pass@localhost/' }, /without credentials/],
    [{ url: 'http://localhost/?a=b' }, /without credentials, query/],
    [{ router, allowedHosts: [] }, /Invalid option "allowedHosts": expected host names/],
    [{ router, allowedHosts: ['http://localhost'] }, /Invalid option "allowedHosts": expected host names/],
    [{ router, answerBytes: 100 }, /Invalid option "answerBytes": expected an integer from 8192 to 1048576, got 100/],
    [{ router, deadlineMs: 0 }, /deadlineMs/],
    [{ router, payloads: 'yes' }, /Invalid option "payloads": expected true or false, got "yes"/],
    [{ url: 'http://localhost/?' }, /without credentials, query and fragment/],
    [{ router, prefix: 'mcp' }, /Invalid option "prefix": .*, got "mcp"/],
    [{ router, prefx: '' }, /Unknown option "prefx"\. Did you mean "prefix"\?/],
  ])('%j are refused by name', async (options, reason) => {
    const { createMcp } = await import('../../src/mcp/index.js')
    expect(() => createMcp(options as never)).toThrow(reason)
  })

  it('allow a remote router for all names of this machine, and for other names only with an authenticator', () => {
    const url = 'http://localhost/'
    subject({ url, allowedHosts: ['loopback', 'localhost:4780', '127.0.0.1', '[::1]:80'] })
    subject({ url, allowedHosts: ['relay.example.org'], auth: apiKeyAuth(KEY) })
  })
})
