/** What holds for every request to the relay router, whatever its route. */
import { describe, expect, it } from 'vitest'
import { ActionFailure, createCooperativeSiteRouter } from '../../src/cooperative-site/index.js'
import { Refusal } from '../../src/internal/refusal.js'
import { badHooks, flushPromises } from '../bad-hooks.js'
import { type Asked, answer } from './answer.js'
import { deferred } from './deferred.js'
import { changed, createWorld, whoAsks } from './world.js'

describe('the relay router', () => {
  it('refuses to be built without authenticators and a policy', async () => {
    const { facilities, sites, sessions, policy, bus, connector } = await createWorld()
    const options = {
      sites,
      sessions,
      policy,
      bus,
      connector,
      ingest: facilities.ingest,
      authenticateHost: whoAsks,
      authenticateViewer: whoAsks,
    }
    for (const missing of ['authenticateHost', 'authenticateViewer', 'policy'])
      expect(() => createCooperativeSiteRouter({ ...options, [missing]: undefined })).toThrow(
        `Missing required option "${missing}"`,
      )
  })

  describe('before any route', () => {
    it.each<Asked>([
      [null, 'POST', '/messages', {}],
      [null, 'GET', '/sites/notes'],
      [null, 'GET', '/sessions/guessed/events'],
      [null, 'POST', '/sessions/guessed/actions/archive_note', {}],
      [null, 'DELETE', '/nope'],
    ])('answers 401 to %s %s %s, and reveals nothing', async (...asked) => {
      const { status, body, headers } = await answer(await createWorld(), ...asked)
      expect(status).toBe(401)
      expect(body).toEqual({
        type: 'urn:relayscope:problem:unauthenticated',
        title: 'Authentication is required',
        status: 401,
        code: 'unauthenticated',
        help: 'docs/problems.md#unauthenticated',
      })
      expect(headers.get('content-type')).toBe('application/problem+json')
    })

    it.each([
      ['throws', () => Promise.reject(new Error('secret')), 401],
      ['answers undefined', () => undefined as never, 401],
      ['answers no user', () => ({}) as never, 401],
      ['returns an invalid user', () => ({ user_id: 'a\nb' }), 401],
      ['never answers', () => new Promise<never>(() => {}), 401],
      ['refuses', () => Promise.reject(new Refusal('forbidden')), 403],
    ] as const)('refuses with an authenticator that %s', async (what, authenticateHost, status) => {
      // A deadline that passes before an answer that is to be heard would be the machine's affair.
      const world = await createWorld({ authenticateHost, ...(what === 'never answers' ? { deadlineMs: 5 } : {}) })
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

    it('owns the paths under its prefix, and no others', async () => {
      const { relay } = await createWorld()
      expect(relay.prefix).toBe('/relay')
      expect(['/relay', '/relay/x', '/relays', '/x'].map(relay.owns)).toEqual([true, true, false, false])
      const outside = await relay(new Request('http://relay.test/relays/sites/notes'))
      expect(outside.status).toBe(404)
      expect(await relay.fetch(new Request('http://relay.test/relay/sites/notes'))).toMatchObject({ status: 401 })
    })

    it('lists the methods of a path', async () => {
      const { headers } = await answer(await createWorld(), 'alice', 'PATCH', '/sites/notes')
      expect(headers.get('allow')).toBe('GET, HEAD, PUT, DELETE')
    })
  })

  it('reports internal errors with their route, and no refusals', async () => {
    const told: unknown[] = []
    const onError = (...args: unknown[]) => told.push(args)
    const refuse = { call: () => Promise.reject(new ActionFailure('note_locked')) }
    const world = await createWorld({ onError, connector: refuse })
    const invoke = (user: string | null, action = 'archive_note') =>
      answer(world, user, 'POST', `/sessions/${world.session_id}/actions/${action}`, {})
    expect((await invoke('bob')).body).toMatchObject({ status: 'failed', error: { code: 'note_locked' } })
    for (const [user, action, status] of [
      [null, 'archive_note', 401],
      ['mallory', 'archive_note', 404],
      ['carol', 'archive_note', 403],
      ['bob', 'remove_note', 403],
    ] as const)
      expect((await invoke(user, action)).status).toBe(status)
    const stale = changed(null, { instance_id: 'laptop-0' })
    expect((await answer(world, 'alice', 'POST', '/messages', stale)).status).toBe(409)
    expect(told).toEqual([])
    const broken = await createWorld({ onError, ingest: () => Promise.reject(new Error('secret')) })
    expect((await answer(broken, 'alice', 'POST', '/messages', changed())).status).toBe(500)
    expect(told).toEqual([[new Error('secret'), { route: '/messages' }]])
  })

  it.each(badHooks)('gives the same answer when the hook for a broken store %s', async (_, onError) => {
    const world = await createWorld({ onError, ingest: () => Promise.reject(new Error('secret')) })
    const got = await answer(world, 'alice', 'POST', '/messages', changed())
    expect([got.status, got.body.code]).toEqual([500, 'internal'])
    expect(JSON.stringify(got.body)).not.toContain('secret')
    await flushPromises()
  })

  it('closes after the pending calls have ended', async () => {
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
