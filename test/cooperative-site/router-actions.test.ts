/** The actions that a viewer invokes over HTTP. */
import { describe, expect, it } from 'vitest'
import { createSessionPolicy } from '../../src/cooperative-site/index.js'
import { answer } from './answer.js'
import { createWorld } from './world.js'

describe('the actions of a viewer', () => {
  const path = (world: { session_id: string }, action = 'archive_note') =>
    `/sessions/${world.session_id}/actions/${action}`
  const connector = { call: async () => ({ archived: true }) }

  it("return the application's answer", async () => {
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
    ['bob', 'archive_note', { trace: '00-1-2-3' }, undefined, 422, 'invalid_body'],
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
    ['carol', 'archive_note', '{', { 'content-type': 'text/plain' }, 403, 'forbidden'],
    ['carol', 'remove_note', '{', { 'content-type': 'text/plain' }, 403, 'action_not_allowed'],
  ])('of %s: %s %j is refused', async (user, action, body, headers, status, code) => {
    const world = await createWorld({ connector })
    const got = await answer(world, user, 'POST', path(world, action), body, headers)
    expect([got.status, got.body.code]).toEqual([status, code])
  })

  it('of a viewer without the right are refused before the body is read', async () => {
    const world = await createWorld({ connector })
    let pulled = 0
    const body = new ReadableStream({ pull: () => void pulled++ }, { highWaterMark: 0 })
    const request = new Request(`http://relay.test/relay${path(world)}`, {
      method: 'POST',
      headers: { authorization: 'Bearer carol', 'content-type': 'application/json' },
      body,
      duplex: 'half',
    } as RequestInit)
    expect((await world.relay(request)).status).toBe(403)
    expect(pulled).toBe(0)
  })

  it('are refused in the same way for a missing session and a foreign one', async () => {
    const world = await createWorld({ connector })
    const foreign = await answer(world, 'mallory', 'POST', path(world), {})
    const absent = await answer(world, 'mallory', 'POST', path({ session_id: 'guessed' }), {})
    expect(foreign.body).toEqual(absent.body)
    expect(foreign.body.code).toBe('session_not_found')
  })

  it.each(['GET', 'POST'])('make the same calls for a missing session as for a foreign one: %s', async (method) => {
    const asked: string[] = []
    const world = await createWorld({ connector })
    const { sessions } = world
    const watched = {
      get: (id: string) => asked.push('get') && sessions.get(id),
      getShare: (id: string, user: string) => asked.push('getShare') && sessions.getShare(id, user),
    }
    const sites = { get: (id: string) => asked.push('site') && world.sites.get(id) }
    const policy = createSessionPolicy({ sessions: watched as never })
    const relay = await createWorld({ connector, sessions: watched as never, sites: sites as never, policy })
    const costOf = async (session_id: string) => {
      asked.length = 0
      const of = method === 'GET' ? `/sessions/${session_id}/events` : path({ session_id })
      const response = await relay.ask('mallory', method, of, method === 'GET' ? {} : { body: {} })
      expect(response.status).toBe(404)
      return [...asked]
    }
    const absent = await costOf('guessed')
    expect(absent).toEqual(['get', 'getShare'])
    expect(await costOf(world.session_id)).toEqual(absent)
  })

  it('report an unknown outcome when the application did not answer in time', async () => {
    const world = await createWorld({ connector: { call: () => new Promise(() => {}) } })
    const got = await answer(world, 'bob', 'POST', path(world), { timeout_ms: 5 })
    expect(got.status).toBe(504)
    expect(got.body).toMatchObject({ code: 'action_timeout', outcome: 'unknown' })
  })

  it('report that nothing ran when the application cannot be reached', async () => {
    const world = await createWorld()
    const got = await answer(world, 'bob', 'POST', path(world), {})
    expect(got.status).toBe(503)
    expect(got.body.code).toBe('connector_unavailable')
    expect(got.body.outcome).toBeUndefined()
  })

  it('run once per idempotency key', async () => {
    let runs = 0
    const world = await createWorld({ connector: { call: async () => ++runs } })
    const send = (body: unknown) => answer(world, 'bob', 'POST', path(world), body, { 'idempotency-key': 'k1' })
    const first = await send({ parameters: { id: 7 } })
    expect((await send({ parameters: { id: 7 } })).body).toEqual(first.body)
    const other = await send({ parameters: { id: 8 } })
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused'])
    const longer = await send({ parameters: { id: 7 }, timeout_ms: 60_000 })
    expect([longer.status, longer.body.code]).toEqual([422, 'idempotency_key_reused'])
    expect(runs).toBe(1)
  })

  it('are cancelled when the viewer disconnects', async () => {
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
