import { describe, expect, it } from 'vitest'
import { createCooperativeSiteRouter } from '../../src/cooperative-site/index.js'
import { Refusal } from '../../src/refusal.js'
import { deferred } from './deferred.js'
import { changed, createWorld, laptop, whoAsks } from './world.js'

type Asked = [user: string | null, method: string, path: string, body?: unknown, headers?: object]

async function answer(world: Awaited<ReturnType<typeof createWorld>>, ...[user, method, path, body, headers]: Asked) {
  const response = await world.ask(user, method, path, { body, ...(headers ? { headers } : {}) })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text), headers: response.headers }
}

const definition = {
  mode: 'cooperative',
  event_names: ['note_changed'],
  action_names: ['archive_note'],
  capability_profile: { action_invocation: true },
}

describe('the relay router', () => {
  it('refuses to be built without authenticators and a policy', async () => {
    const world = await createWorld()
    const options = {
      ...world,
      ingest: world.facilities.ingest,
      authenticateHost: whoAsks,
      authenticateViewer: whoAsks,
    }
    for (const missing of ['authenticateHost', 'authenticateViewer', 'policy'])
      expect(() => createCooperativeSiteRouter({ ...options, [missing]: undefined })).toThrow(TypeError)
  })

  describe('before any route', () => {
    it.each<Asked>([
      [null, 'POST', '/messages', {}],
      [null, 'GET', '/sites/notes'],
      [null, 'GET', '/sessions/guessed/events'],
      [null, 'POST', '/sessions/guessed/actions/archive_note', {}],
      [null, 'DELETE', '/nope'],
    ])('answers 401 to %s %s %s, and nothing about what is there', async (...asked) => {
      const { status, body, headers } = await answer(await createWorld(), ...asked)
      expect(status).toBe(401)
      expect(body).toEqual({
        type: 'urn:relayscope:problem:unauthenticated',
        title: 'Authentication is required',
        status: 401,
        code: 'unauthenticated',
      })
      expect(headers.get('content-type')).toBe('application/problem+json')
    })

    it.each([
      ['throws', () => Promise.reject(new Error('secret')), 401],
      ['answers undefined', () => undefined as never, 401],
      ['answers no user', () => ({}) as never, 401],
      ['answers a user that is none', () => ({ user_id: 'a\nb' }), 401],
      ['never answers', () => new Promise<never>(() => {}), 401],
      ['refuses', () => Promise.reject(new Refusal('forbidden')), 403],
    ] as const)('has no faith in an authenticator that %s', async (_, authenticateHost, status) => {
      const world = await createWorld({ authenticateHost, deadlineMs: 5 })
      expect((await world.ask('alice', 'GET', '/sites/notes')).status).toBe(status)
    })

    it.each<[...Asked, number, string]>([
      ['alice', 'GET', '/', undefined, undefined, 404, 'route_not_found'],
      ['alice', 'GET', '/sites', undefined, undefined, 404, 'route_not_found'],
      ['alice', 'GET', '/sites/', undefined, undefined, 404, 'route_not_found'],
      ['alice', 'GET', '/sites/notes/', undefined, undefined, 404, 'route_not_found'],
      ['alice', 'GET', '/Sites/notes', undefined, undefined, 404, 'route_not_found'],
      ['alice', 'GET', '//sites/notes', undefined, undefined, 404, 'route_not_found'],
      ['alice', 'GET', '/messages', undefined, undefined, 405, 'method_not_allowed'],
      ['alice', 'PATCH', '/sites/notes', undefined, undefined, 405, 'method_not_allowed'],
      ['bob', 'POST', '/sessions/x/events', {}, undefined, 405, 'method_not_allowed'],
      ['bob', 'GET', '/sessions/x/actions/archive_note', undefined, undefined, 405, 'method_not_allowed'],
      ['alice', 'GET', '/sites/%ff', undefined, undefined, 422, 'invalid_path'],
      ['alice', 'GET', '/sites/a%2Fb', undefined, undefined, 422, 'invalid_path'],
      ['alice', 'GET', '/sites/a%00b', undefined, undefined, 422, 'invalid_path'],
      ['alice', 'GET', `/sites/${'x'.repeat(257)}`, undefined, undefined, 422, 'invalid_path'],
      ['alice', 'GET', `/sites/${'x'.repeat(9_000)}`, undefined, undefined, 414, 'uri_too_long'],
      ['bob', 'POST', '/sessions/a%E2%80%8Bb/actions/x', {}, undefined, 422, 'invalid_path'],
    ])('answers %s %s %s with %s %s', async (...[user, method, path, body, headers, status, code]) => {
      const got = await answer(await createWorld(), user, method, path, body, headers)
      expect([got.status, got.body.code]).toEqual([status, code])
    })

    it('owns what is under its prefix, and nothing beside it', async () => {
      const { relay } = await createWorld()
      expect(relay.prefix).toBe('/relay')
      expect(['/relay', '/relay/x', '/relays', '/x'].map(relay.owns)).toEqual([true, true, false, false])
      const outside = await relay(new Request('http://relay.test/relays/sites/notes'))
      expect(outside.status).toBe(404)
      expect(await relay.fetch(new Request('http://relay.test/relay/sites/notes'))).toMatchObject({ status: 401 })
    })

    it('says which methods a path has', async () => {
      const { headers } = await answer(await createWorld(), 'alice', 'PATCH', '/sites/notes')
      expect(headers.get('allow')).toBe('GET, HEAD, PUT, DELETE')
    })
  })

  describe('the sites of a host', () => {
    it('are put, read and deleted by their owner', async () => {
      const world = await createWorld()
      const put = await answer(world, 'alice', 'PUT', '/sites/todo', definition)
      expect(put.status).toBe(201)
      expect(put.body).toMatchObject({ site_id: 'todo', owner: 'alice', title: null, ...definition })
      expect((await answer(world, 'alice', 'PUT', '/sites/todo', { mode: 'observe' })).status).toBe(200)
      const got = await answer(world, 'alice', 'GET', '/sites/todo')
      expect(got.status).toBe(200)
      expect(got.body).toMatchObject({
        mode: 'observe',
        action_names: [],
        capability_profile: { action_invocation: false },
      })
      const head = await answer(world, 'alice', 'HEAD', '/sites/todo')
      expect([head.status, head.body]).toEqual([200, null])
      const gone = await answer(world, 'alice', 'DELETE', '/sites/todo')
      expect([gone.status, gone.body, gone.headers.get('cache-control')]).toEqual([204, null, 'no-store'])
      expect((await answer(world, 'alice', 'DELETE', '/sites/todo')).status).toBe(404)
      expect((await answer(world, 'alice', 'GET', '/sites/todo')).body.code).toBe('not_found')
    })

    it('are nobody else`s', async () => {
      const world = await createWorld()
      const before = await world.sites.get('notes')
      expect((await answer(world, 'mallory', 'GET', '/sites/notes')).status).toBe(404)
      expect((await answer(world, 'mallory', 'DELETE', '/sites/notes')).status).toBe(404)
      const put = await answer(world, 'mallory', 'PUT', '/sites/notes', definition)
      expect([put.status, put.body.code]).toEqual([409, 'owner_mismatch'])
      expect(await world.sites.get('notes')).toEqual(before)
    })

    it.each<[string, unknown, string]>([
      ['an owner in the body', { ...definition, owner: 'mallory' }, 'invalid_body'],
      ['no mode', { title: 'x' }, 'invalid_body'],
      ['a list', [], 'invalid_body'],
      ['null', null, 'invalid_body'],
      ['an action name that is none', { ...definition, action_names: ['no spaces'] }, 'invalid_body'],
      ['a generic action name', { ...definition, action_names: ['Execute'] }, 'generic_action_name'],
      ['a star', { ...definition, action_names: ['*'] }, 'generic_action_name'],
    ])('are refused with %s', async (_, body, code) => {
      const world = await createWorld()
      const got = await answer(world, 'alice', 'PUT', '/sites/todo', body)
      expect([got.status, got.body.code]).toEqual([422, code])
      expect(await world.sites.get('todo')).toBeNull()
    })

    it('cannot be declared over HTTP when the registry only reads', async () => {
      const world = await createWorld({ sites: { get: async () => null } })
      const got = await answer(world, 'alice', 'PUT', '/sites/todo', definition)
      expect([got.status, got.body.code]).toEqual([501, 'operation_absent'])
      expect((await answer(world, 'alice', 'DELETE', '/sites/todo')).status).toBe(501)
    })
  })

  describe('the messages of a host', () => {
    it('are answered with what became of them', async () => {
      const world = await createWorld()
      const message = changed({ id: 7 })
      const got = await answer(world, 'alice', 'POST', '/messages', message)
      expect(got.status).toBe(202)
      expect(got.body).toEqual({
        accepted: true,
        duplicate: false,
        message_id: message.message_id,
        stream: 'users/alice/sites/notes/events',
        published: true,
        not_published_reason: null,
      })
      expect((await answer(world, 'alice', 'POST', '/messages', message)).body).toMatchObject({
        duplicate: true,
        published: false,
        not_published_reason: 'duplicate',
      })
    })

    it('are fenced by instance', async () => {
      const world = await createWorld()
      await world.facilities.connections.connect({ ...laptop, instance_id: 'laptop-2', client_type: 'console' })
      const got = await answer(world, 'alice', 'POST', '/messages', changed())
      expect([got.status, got.body.code]).toEqual([409, 'stale_instance'])
    })

    const json = { 'content-type': 'application/json' }
    it.each<[string, unknown, object, number, string]>([
      ['text', 'hello', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
      ['a form', 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'unsupported_media_type'],
      ['an encoded body', '{}', { ...json, 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
      ['256 KiB and one byte', `"${'x'.repeat(262_143)}"`, json, 413, 'body_too_large'],
      ['no JSON', '{', json, 400, 'invalid_json'],
      ['nothing', '', json, 400, 'invalid_json'],
      ['null', 'null', json, 422, 'invalid_body'],
      ['a list', '[]', json, 422, 'invalid_body'],
      ['100,000 levels', '['.repeat(100_000) + ']'.repeat(100_000), json, 422, 'invalid_body'],
      ['a member twice', JSON.stringify(changed()).replace('{', '{"kind":"event",'), json, 422, 'invalid_body'],
      [
        'a member twice in another spelling, far inside',
        JSON.stringify(changed('here')).replace('"here"', '[{"x:{":1,"\\u0078:{":2}]'),
        json,
        422,
        'invalid_body',
      ],
      ['a control character in an id', JSON.stringify(changed(1, { message_id: 'a\nb' })), json, 422, 'invalid_body'],
    ])('are refused as %s', async (_, body, headers, status, code) => {
      const got = await answer(await createWorld(), 'alice', 'POST', '/messages', body, headers)
      expect([got.status, got.body.code]).toEqual([status, code])
    })

    it('are refused when their bytes are not UTF-8, and when a stream of unknown length is too long', async () => {
      const { relay } = await createWorld()
      const send = (body: BodyInit) =>
        relay(
          new Request('http://relay.test/relay/messages', {
            method: 'POST',
            headers: { authorization: 'Bearer alice', 'content-type': 'application/json; charset=UTF-8' },
            body,
            duplex: 'half',
          } as RequestInit),
        )
      expect((await send(new Uint8Array([0x22, 0xc0, 0xaf, 0x22]))).status).toBe(400)
      let sent = 0
      let cancelled = false
      const endless = new ReadableStream<Uint8Array>({
        pull(controller) {
          sent += 65_536
          controller.enqueue(new Uint8Array(65_536).fill(0x20))
        },
        cancel() {
          cancelled = true
        },
      })
      expect((await send(endless)).status).toBe(413)
      expect(cancelled).toBe(true)
      expect(sent).toBeLessThan(1_000_000)
    })

    it('are answered with 503 and when to come back while a store is out of reach', async () => {
      const hanging = await createWorld({ ingest: () => new Promise(() => {}), deadlineMs: 5 })
      const away = await createWorld({ ingest: () => Promise.reject(new Refusal('unavailable', 'secret')) })
      for (const world of [hanging, away]) {
        const got = await answer(world, 'alice', 'POST', '/messages', changed())
        expect([got.status, got.body.code, got.headers.get('retry-after')]).toEqual([503, 'unavailable', '1'])
      }
    })

    it('are answered with a fixed 500 when something is broken, and the host is told', async () => {
      const errors: unknown[] = []
      const world = await createWorld({
        ingest: () => Promise.reject(new Error('secret')),
        onError: (error) => {
          errors.push(error)
          throw new Error('the hook is broken too')
        },
      })
      const got = await answer(world, 'alice', 'POST', '/messages', changed())
      expect([got.status, got.body.code]).toEqual([500, 'internal'])
      expect(JSON.stringify(got.body)).not.toContain('secret')
      expect(errors).toMatchObject([{ message: 'secret' }])
    })
  })

  describe('the actions of a viewer', () => {
    const path = (world: { session_id: string }, action = 'archive_note') =>
      `/sessions/${world.session_id}/actions/${action}`
    const connector = { call: async () => ({ archived: true }) }

    it('are answered with what the application answered', async () => {
      const world = await createWorld({ connector })
      const got = await answer(world, 'bob', 'POST', path(world), { parameters: { id: 7 }, timeout_ms: 120_000 })
      expect(got.status).toBe(200)
      expect(got.body).toEqual({
        invocation_id: expect.any(String),
        action: 'archive_note',
        status: 'succeeded',
        result: { archived: true },
        error: null,
        started_at: expect.any(String),
        finished_at: expect.any(String),
      })
    })

    it.each<[string, string, unknown, object | undefined, number, string]>([
      ['mallory', 'archive_note', '{', { 'content-type': 'text/plain' }, 404, 'session_not_found'],
      ['bob', 'archive_note', '{', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
      ['bob', 'archive_note', '{', { 'content-type': 'application/json' }, 400, 'invalid_json'],
      ['bob', 'archive_note', { timeout_ms: 0 }, undefined, 422, 'invalid_body'],
      ['bob', 'archive_note', { timeout_ms: 120_001 }, undefined, 422, 'invalid_body'],
      ['bob', 'archive_note', { anything: 1 }, undefined, 422, 'invalid_body'],
      ['bob', 'archive_note', {}, { 'idempotency-key': 'x'.repeat(257) }, 422, 'invalid_body'],
      ['bob', 'archive_note', { parameters: [] }, undefined, 422, 'invalid_parameters'],
      ['bob', 'archive_note', { parameters: null }, undefined, 422, 'invalid_parameters'],
      [
        'bob',
        'archive_note',
        '{"parameters":{"__proto__":{}}}',
        { 'content-type': 'application/json' },
        422,
        'invalid_parameters',
      ],
      ['bob', 'archive_note', { parameters: { __cooperative_site_id: 'x' } }, undefined, 422, 'reserved_parameter'],
      ['bob', 'remove_note', {}, undefined, 403, 'action_not_allowed'],
      ['bob', 'EXECUTE', {}, undefined, 403, 'action_not_allowed'],
      ['bob', '%20archive_note', {}, undefined, 403, 'action_not_allowed'],
      ['carol', 'archive_note', {}, undefined, 403, 'forbidden'],
    ])('of %s: %s %j is refused', async (user, action, body, headers, status, code) => {
      const world = await createWorld({ connector })
      const got = await answer(world, user, 'POST', path(world, action), body, headers)
      expect([got.status, got.body.code]).toEqual([status, code])
    })

    it('are refused alike for a session that is not there and one that is not theirs', async () => {
      const world = await createWorld({ connector })
      const foreign = await answer(world, 'mallory', 'POST', path(world), {})
      const absent = await answer(world, 'mallory', 'POST', path({ session_id: 'guessed' }), {})
      expect(foreign.body).toEqual(absent.body)
      expect(foreign.body.code).toBe('session_not_found')
    })

    it('say that the outcome is unknown when the application did not answer in time', async () => {
      const world = await createWorld({ connector: { call: () => new Promise(() => {}) } })
      const got = await answer(world, 'bob', 'POST', path(world), { timeout_ms: 5 })
      expect(got.status).toBe(504)
      expect(got.body).toMatchObject({ code: 'action_timeout', outcome: 'unknown' })
    })

    it('say that nothing was run when the application cannot be reached', async () => {
      const world = await createWorld()
      const got = await answer(world, 'bob', 'POST', path(world), {})
      expect(got.status).toBe(503)
      expect(got.body.code).toBe('connector_unavailable')
      expect(got.body.outcome).toBeUndefined()
    })

    it('run once under one idempotency key', async () => {
      let runs = 0
      const world = await createWorld({ connector: { call: async () => ++runs } })
      const send = (body: unknown) => answer(world, 'bob', 'POST', path(world), body, { 'idempotency-key': 'k1' })
      const first = await send({ parameters: { id: 7 } })
      expect((await send({ parameters: { id: 7 } })).body).toEqual(first.body)
      const other = await send({ parameters: { id: 8 } })
      expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused'])
      expect(runs).toBe(1)
    })

    it('are cancelled when the viewer hangs up', async () => {
      const controller = new AbortController()
      let cancelled = false
      const world = await createWorld({
        connector: {
          call: (_client, { signal }) => {
            signal.addEventListener('abort', () => {
              cancelled = true
            })
            controller.abort()
            return new Promise(() => {})
          },
        },
      })
      await world.relay(
        new Request(`http://relay.test/relay${path(world)}`, {
          method: 'POST',
          headers: { authorization: 'Bearer bob', 'content-type': 'application/json' },
          body: '{}',
          signal: controller.signal,
        }),
      )
      expect(cancelled).toBe(true)
    })
  })

  it('closes when the calls under way have ended, not before', async () => {
    const called = deferred<void>()
    const held = deferred<string>()
    const connector = {
      call: () => {
        called.resolve()
        return held.promise
      },
    }
    const world = await createWorld({ connector })
    const asked = answer(world, 'bob', 'POST', `/sessions/${world.session_id}/actions/archive_note`, {})
    await called.promise
    let closed = false
    const closing = world.relay.close().then(() => {
      closed = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(closed).toBe(false)
    held.resolve('done')
    await closing
    expect((await asked).body).toMatchObject({ status: 'succeeded', result: 'done' })
  })

  it('answers 503 once it is closed', async () => {
    const world = await createWorld()
    await world.relay.close()
    const got = await answer(world, 'alice', 'GET', '/sites/notes')
    expect([got.status, got.body.code]).toEqual([503, 'unavailable'])
  })
})
