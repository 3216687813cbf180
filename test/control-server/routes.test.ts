/** Holds the routes of the control server: sites, events, and every way to get them wrong. */
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/internal/refusal.js'
import { createCooperativeSitePublisher, createRemoteSiteRegistry, RelayError } from '../../src/publisher/index.js'
import { badHooks, flushPromises } from '../bad-hooks.js'
import { json, startHandRelay } from '../publisher/relay.js'
import { sendRaw, startControl, TOKEN } from './wire.js'

const notes = { mode: 'cooperative', event_names: ['note_changed'], action_names: ['add_note'] }

describe('PUT and DELETE /sites/{site_id}', () => {
  it('declares a site, replaces it as a whole, and deletes it once', async () => {
    const { ask, sites } = await startControl({ owner: 'alice' })
    const created = await ask('PUT', '/sites/notes', notes)
    expect(created.status).toBe(201)
    expect(created.body).toMatchObject({ ...notes, site_id: 'notes', owner: 'alice', title: null })
    const replaced = await ask('PUT', '/sites/notes', { mode: 'observe' })
    expect(replaced.status).toBe(200)
    expect(replaced.body).toMatchObject({ mode: 'observe', event_names: [], action_names: [] })
    const gone = await ask('DELETE', '/sites/notes')
    expect([gone.status, gone.body]).toEqual([204, null])
    expect(await sites.get('notes')).toBeNull()
    expect(await ask('DELETE', '/sites/notes')).toMatchObject({ status: 404, body: { code: 'not_found' } })
  })

  it('uses the owner local by default', async () => {
    const { ask } = await startControl()
    expect((await ask('PUT', '/sites/notes', notes)).body.owner).toBe('local')
  })

  it('leaves sites of other owners unchanged', async () => {
    const { ask, sites } = await startControl()
    await sites.put({ mode: 'observe', site_id: 'theirs', owner: 'bob' })
    expect(await ask('PUT', '/sites/theirs', notes)).toMatchObject({ status: 409, body: { code: 'owner_mismatch' } })
    expect((await ask('DELETE', '/sites/theirs')).status).toBe(404)
    expect(await sites.get('theirs')).toMatchObject({ owner: 'bob', mode: 'observe' })
  })

  it.each([
    ['an owner', { ...notes, owner: 'local' }, 'invalid_body'],
    ['the owner of another site', { ...notes, owner: 'bob' }, 'invalid_body'],
    ['an unknown field', { ...notes, colour: 'red' }, 'invalid_body'],
    ['no mode', {}, 'invalid_body'],
    ['a generic action', { ...notes, action_names: ['Execute'] }, 'generic_action_name'],
    ['any action', { ...notes, action_names: ['*'] }, 'generic_action_name'],
    ['an event name with a line break', { ...notes, event_names: ['a\nb'] }, 'invalid_body'],
    ['null', null, 'invalid_body'],
    ['a list', [], 'invalid_body'],
    ['__proto__', JSON.parse('{"mode":"cooperative","__proto__":{"owner":"bob"}}'), 'invalid_body'],
  ])('answers 422 to %s, and declares nothing', async (_what, body, code) => {
    const { ask, sites } = await startControl()
    const answer = await ask('PUT', '/sites/notes', body)
    expect(answer).toMatchObject({ status: 422, body: { code, status: 422 } })
    expect(await sites.get('notes')).toBeNull()
  })

  it.each([
    '..',
    '.',
    '%2e%2e',
    '%2F',
    'a%2Fb',
    '%00',
    '%0d%0a',
    '%ff',
    '%',
    '%20',
    '%E2%80%AE',
    'x'.repeat(257),
  ])('answers 422 to the id %s, and declares nothing', async (id) => {
    const put: unknown[] = []
    const sites = { get: async () => null, delete: async () => put.push(1) > 0, put: () => Promise.reject(put.push(1)) }
    const { server } = await startControl({ sites })
    for (const line of [`PUT /sites/${id}`, `DELETE /sites/${id}`, `POST /sites/${id}/events`]) {
      const host = `Host: 127.0.0.1:${server.port}`
      const answer = await sendRaw(server.port, [`${line} HTTP/1.1`, host, `Authorization: Bearer ${TOKEN}`])
      expect(answer.status).toBe(422)
      expect(answer.text).toContain('"code":"invalid_path"')
    }
    expect(put).toEqual([])
  })

  it('accepts an id of 256 bytes, and names of object members', async () => {
    const { ask } = await startControl()
    for (const id of ['x'.repeat(256), '__proto__', 'constructor', '%C3%A9'])
      expect((await ask('PUT', `/sites/${id}`, notes)).status).toBe(201)
  })
})

describe('a registry of this process', () => {
  it.each([
    [new Refusal('capacity_exceeded'), 429, 'share_exceeded'],
    [new Refusal('unavailable'), 503, 'unavailable'],
    [new Refusal('closed'), 503, 'unavailable'],
    [new Refusal('unknown_site'), 404, 'not_found'],
    [new Refusal('payload_too_large'), 413, 'body_too_large'],
    [new Refusal('invalid_transition'), 500, 'internal'],
    [new Error('secret of the registry'), 500, 'internal'],
  ])('that throws %s is answered with %i', async (error, status, code) => {
    const fail = () => Promise.reject(error)
    const { ask } = await startControl({ sites: { get: fail, put: fail, delete: fail } })
    const answer = await ask('PUT', '/sites/notes', notes)
    expect(answer).toMatchObject({ status, body: { code } })
    expect(JSON.stringify(answer.body)).not.toContain('secret')
  })
})

describe('POST /sites/{site_id}/events', () => {
  it("publishes one event and returns the relay's answer", async () => {
    const { ask, published } = await startControl()
    await ask('PUT', '/sites/notes', notes)
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const event = { name: 'note_changed', data: { id: 7 }, message_id: 'm-1', trace }
    const answer = await ask('POST', '/sites/notes/events', event)
    expect(answer.status).toBe(202)
    expect(answer.body).toEqual({
      accepted: true,
      message_id: 'm-1',
      stream: 'users/local/sites/notes/events',
      published: true,
      not_published_reason: null,
    })
    expect(published).toMatchObject([['notes', 'note_changed', { id: 7 }, { messageId: 'm-1', trace }]])
  })

  it('answers 404 for an unknown site, whatever the body', async () => {
    const { ask, published } = await startControl()
    const unknown = { status: 404, body: { code: 'not_found' } }
    expect(await ask('POST', '/sites/notes/events', { name: 'note_changed' })).toMatchObject(unknown)
    expect(await ask('POST', '/sites/notes/events', 'x', { 'content-type': 'text/plain' })).toMatchObject(unknown)
    expect(published).toEqual([])
  })

  it('answers 422 for an unlisted event name, and accepts any if the site lists none', async () => {
    const { ask, published } = await startControl()
    await ask('PUT', '/sites/notes', notes)
    await ask('PUT', '/sites/free', { mode: 'observe' })
    const refused = await ask('POST', '/sites/notes/events', { name: 'other' })
    expect(refused).toMatchObject({ status: 422, body: { code: 'event_name_not_allowed' } })
    expect(published).toEqual([])
    expect((await ask('POST', '/sites/free/events', { name: 'other' })).status).toBe(202)
  })

  it.each([
    {},
    { name: '' },
    { name: 7 },
    { name: 'a b' },
    { name: '__proto__' },
    { name: 'note_changed', trace: '00-1-2-3' },
    { name: 'x'.repeat(129) },
  ])('answers 422 to %j', async (body) => {
    const { ask, published } = await startControl()
    await ask('PUT', '/sites/free', { mode: 'observe' })
    expect(await ask('POST', '/sites/free/events', body)).toMatchObject({ status: 422, body: { code: 'invalid_body' } })
    for (const more of [{ owner: 'bob' }, { message_id: '' }, { message_id: 'a\u202eb' }]) {
      const answer = await ask('POST', '/sites/free/events', { name: 'note_changed', ...more })
      expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_body' } })
    }
    expect(published).toEqual([])
  })

  it.each([
    [new RelayError('stale_instance', 409), 502, 'relay_refused'],
    [new RelayError('unavailable', 503), 502, 'relay_refused'],
    [new RelayError('unreachable', null), 504, 'relay_timeout'],
    [new RelayError('timeout', null), 504, 'relay_timeout'],
    [new Error('secret of the publisher'), 502, 'relay_refused'],
  ])('answers %s with %i', async (error, status, code) => {
    const told: unknown[] = []
    const onError = (thrown: unknown) => {
      told.push(thrown)
      throw new Error('of the hook')
    }
    const { ask } = await startControl({ publisher: { publish: () => Promise.reject(error) }, onError })
    await ask('PUT', '/sites/notes', notes)
    const answer = await ask('POST', '/sites/notes/events', { name: 'note_changed' })
    expect(answer).toMatchObject({ status, body: { code } })
    expect(JSON.stringify(answer.body)).not.toContain('secret')
    expect(told).toEqual([error])
  })

  it.each(badHooks)('gives the same answer when the error hook %s', async (_, onError) => {
    const { ask } = await startControl({ publisher: { publish: () => Promise.reject(new Error('secret')) }, onError })
    await ask('PUT', '/sites/notes', notes)
    const answer = await ask('POST', '/sites/notes/events', { name: 'note_changed' })
    expect(answer).toMatchObject({ status: 502, body: { code: 'relay_refused' } })
    await flushPromises()
  })

  it('answers 502 when the publisher returns an invalid result', async () => {
    const { ask } = await startControl({ publisher: { publish: async () => ({ accepted: 'yes' }) as never } })
    await ask('PUT', '/sites/notes', notes)
    expect((await ask('POST', '/sites/notes/events', { name: 'note_changed' })).status).toBe(502)
  })

  it('answers 504 and aborts the publisher when it does not answer in time', async () => {
    let aborted = false
    const publish = (...[, , , options]: unknown[]) => {
      const { signal } = options as { signal: AbortSignal }
      signal.addEventListener('abort', () => {
        aborted = true
      })
      return new Promise<never>(() => {})
    }
    const { ask } = await startControl({ publisher: { publish }, timeouts: { answerMs: 1_000 } })
    await ask('PUT', '/sites/notes', notes)
    const answer = await ask('POST', '/sites/notes/events', { name: 'note_changed' })
    expect(answer).toMatchObject({ status: 504, body: { code: 'relay_timeout' } })
    expect(aborted).toBe(true)
  })
})

describe('a request body', () => {
  it.each([
    ['text/plain', '{}', {}, 415, 'unsupported_media_type'],
    ['application/x-www-form-urlencoded', 'a=b', {}, 415, 'unsupported_media_type'],
    ['multipart/form-data; boundary=x', '--x--', {}, 415, 'unsupported_media_type'],
    ['application/json; charset=utf-16', '{}', {}, 415, 'unsupported_media_type'],
    ['application/json', '{}', { 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
    ['application/json', '{"mode":', {}, 400, 'invalid_json'],
    ['application/json', '', {}, 400, 'invalid_json'],
    [
      'application/json; charset=utf-8',
      `{"mode":"observe","title":"${'x'.repeat(262_144)}"}`,
      {},
      413,
      'body_too_large',
    ],
    ['application/json', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, {}, 422, 'invalid_body'],
  ])('is refused as %s %.20s %j: %i', async (type, body, headers, status, code) => {
    const { ask, sites } = await startControl()
    const answer = await ask('PUT', '/sites/notes', body, { 'content-type': type, ...headers })
    expect(answer).toMatchObject({ status, body: { code } })
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(await sites.get('notes')).toBeNull()
  })

  it('is limited without a length, too', async () => {
    const { server } = await startControl()
    let sent = 0
    const body = new ReadableStream({
      pull(controller) {
        sent += 65_536
        if (sent > 1_048_576) controller.close()
        else controller.enqueue(new Uint8Array(65_536).fill(0x20))
      },
    })
    const response = await fetch(`${server.url}/sites/notes`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body,
      duplex: 'half',
    } as RequestInit)
    expect(response.status).toBe(413)
  })

  it('is refused when it is invalid UTF-8', async () => {
    const { server } = await startControl()
    const response = await fetch(`${server.url}/sites/notes`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: new Uint8Array([0x22, 0xff, 0x22]),
    })
    expect(response.status).toBe(400)
  })
})

describe('paths and methods', () => {
  it.each([
    '/',
    '/sites',
    '/sites/',
    '/sites//events',
    '/sites/notes/',
    '/sites/notes/events/',
    '/Sites/notes',
    '/sites/notes/x',
  ])('answers 404 to %s', async (path) => {
    const { ask } = await startControl()
    expect(await ask('PUT', path, notes)).toMatchObject({ status: 404, body: { code: 'route_not_found' } })
  })

  it('answers 405 with the allowed methods, before any other check', async () => {
    const { ask } = await startControl()
    for (const method of ['GET', 'POST', 'PATCH', 'OPTIONS', 'PROPFIND']) {
      const answer = await ask(method, '/sites/notes?x=1')
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'PUT, DELETE'])
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    }
    const events = await ask('PUT', '/sites/notes/events')
    expect([events.status, events.headers.get('allow')]).toEqual([405, 'POST'])
  })

  it('answers 422 to any query, since it accepts no parameters', async () => {
    const { ask } = await startControl()
    expect(await ask('DELETE', '/sites/notes?force=1')).toMatchObject({ status: 422, body: { code: 'invalid_query' } })
  })
})

describe('with the registry and the publisher of one runtime', () => {
  it('registers, publishes and unregisters at the relay', async () => {
    const site = {
      ...notes,
      site_id: 'notes',
      owner: 'alice',
      title: null,
      capability_profile: { action_invocation: false },
    }
    const times = { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' }
    const taken = { accepted: true, duplicate: false, message_id: 'm', stream: 's', published: true }
    const relay = await startHandRelay((response, n) => {
      if (n === 0) json(response, 201, { ...site, ...times })
      else if (n === 1) json(response, 200, { ...site, ...times })
      else if (n === 2) json(response, 202, { ...taken, not_published_reason: null })
      else response.writeHead(204).end()
    })
    const { runtime } = relay
    const sites = createRemoteSiteRegistry({ runtime })
    const { ask } = await startControl({ sites, publisher: createCooperativeSitePublisher({ runtime }) })
    expect(await ask('PUT', '/sites/notes', notes)).toMatchObject({ status: 201, body: { owner: 'alice' } })
    expect((await ask('POST', '/sites/notes/events', { name: 'note_changed' })).status).toBe(202)
    expect((await ask('DELETE', '/sites/notes')).status).toBe(204)
    expect(relay.asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'PUT /relay/sites/notes',
      'GET /relay/sites/notes',
      'POST /relay/messages',
      'DELETE /relay/sites/notes',
    ])
  })

  it.each([
    [409, 'owner_mismatch', 409, 'owner_mismatch'],
    [422, 'generic_action_name', 422, 'generic_action_name'],
    [401, 'unauthenticated', 502, 'relay_refused'],
    [500, 'owner_mismatch', 502, 'relay_refused'],
  ])("answers the relay's %i %s with %i", async (status, code, expected, named) => {
    const { runtime } = await startHandRelay((response) => json(response, status, { code }))
    const { ask } = await startControl({ sites: createRemoteSiteRegistry({ runtime }) })
    expect(await ask('PUT', '/sites/notes', notes)).toMatchObject({ status: expected, body: { code: named } })
  })

  it('answers 504 when the relay is unreachable', async () => {
    const { runtime } = await startHandRelay(() => {})
    const sites = createRemoteSiteRegistry({ runtime: { ...runtime, baseUrl: 'http://127.0.0.1:1' } })
    const { ask } = await startControl({ sites })
    expect(await ask('PUT', '/sites/notes', notes)).toMatchObject({ status: 504, body: { code: 'relay_timeout' } })
  })
})
