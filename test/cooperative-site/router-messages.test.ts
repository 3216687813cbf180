/** The messages that a host sends over HTTP. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Refusal } from '../../src/internal/refusal.js'
import { answer } from './answer.js'
import { deferred } from './deferred.js'
import { changed, createWorld, laptop, TOPIC } from './world.js'

describe('the messages of a host', () => {
  it('are answered with their outcome', async () => {
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

  it('carry their trace to the history and to viewers', async () => {
    const world = await createWorld()
    const reader = world.bus.subscribe(TOPIC)
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    expect((await answer(world, 'alice', 'POST', '/messages', changed(1, { trace }))).status).toBe(202)
    expect((await answer(world, 'alice', 'POST', '/messages', changed(2))).status).toBe(202)
    expect((await reader.next()).value).toMatchObject({ event: { data: 1, trace } })
    expect((await reader.next()).value).not.toHaveProperty('event.trace')
    const ctx = { signal: new AbortController().signal }
    const { items } = await world.facilities.history.inspector.readMessages({ stream: TOPIC, limit: 10 }, ctx)
    expect(items[0]).toMatchObject({ trace, trace_id: '4bf92f3577b34da6a3ce929d0e0e4736' })
    expect(items[1]).not.toHaveProperty('trace')
    const refused = await answer(world, 'alice', 'POST', '/messages', changed(3, { trace: '00-1-2-3' }))
    expect(refused.body).toMatchObject({ code: 'invalid_body', errors: [{ in: 'body', name: 'trace' }] })
  })

  it('are refused with a field that they do not have', async () => {
    const body = { ...changed(), payloda: {} }
    const got = await answer(await createWorld(), 'alice', 'POST', '/messages', body)
    const errors = [{ in: 'body', name: 'payloda', reason: 'Unknown field "payloda". Did you mean "payload"?' }]
    expect([got.status, got.body]).toMatchObject([422, { code: 'invalid_body', errors }])
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

  it('are answered with 503 and Retry-After while a store is unavailable', async () => {
    const hanging = await createWorld({ ingest: () => new Promise(() => {}), deadlineMs: 5 })
    const away = await createWorld({ ingest: () => Promise.reject(new Refusal('unavailable', 'secret')) })
    for (const world of [hanging, away]) {
      const got = await answer(world, 'alice', 'POST', '/messages', changed())
      expect([got.status, got.body.code, got.headers.get('retry-after')]).toEqual([503, 'unavailable', '1'])
    }
  })

  it('are answered in time with 202 while the bus or the site does not answer, and are retained', async () => {
    const never = () => new Promise<never>(() => {})
    const { bus } = await createWorld()
    const unknown = { published: null, not_published_reason: 'unknown' }
    const unavailable = { published: false, not_published_reason: 'bus_unavailable' }
    for (const [options, became] of [
      [{ bus: { ...bus, publish: never } }, unknown],
      [{ sites: { get: never } }, unavailable],
    ] as const) {
      const world = await createWorld({ ...options, deadlineMs: 1_000 })
      const message = changed()
      const got = await answer(world, 'alice', 'POST', '/messages', message)
      expect(got.status).toBe(202)
      expect(got.body).toMatchObject({ accepted: true, ...became })
      const again = await answer(world, 'alice', 'POST', '/messages', message)
      // What became of the first attempt is asked of the bus, and that still does not answer.
      expect(again.body).toMatchObject({ duplicate: true, ...unknown })
    }
  })

  it('keep a separate timeout for publishing when the ingest took most of the time', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const taken = deferred<void>()
    const asked = deferred<void>()
    const world = await createWorld({
      ingest: async () => {
        asked.resolve()
        await taken.promise
        return { accepted: true, duplicate: false }
      },
      sites: { get: () => new Promise(() => {}) },
      deadlineMs: 1_000,
    })
    const got = answer(world, 'alice', 'POST', '/messages', changed())
    await asked.promise
    await vi.advanceTimersByTimeAsync(900)
    taken.resolve()
    await vi.advanceTimersByTimeAsync(500)
    expect((await got).status).toBe(202)
  })

  it('are answered with a fixed 500 on an internal error, and the error is reported', async () => {
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

  it('report no error when their sender cuts them short', async () => {
    const errors: unknown[] = []
    const world = await createWorld({ onError: (error) => errors.push(error) })
    const body = new ReadableStream({
      pull(controller) {
        controller.error(new TypeError('the request body was cut short'))
      },
    })
    const headers = { authorization: 'Bearer alice', 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body, duplex: 'half' }
    const response = await world.relay(new Request('http://relay.test/relay/messages', init as RequestInit))
    expect([response.status, await response.json(), errors]).toMatchObject([400, { code: 'invalid_json' }, []])
  })

  it('report a body that was read before the relay, and name it to the sender', async () => {
    const errors: unknown[] = []
    const world = await createWorld({ onError: (error) => errors.push(error) })
    const headers = { authorization: 'Bearer alice', 'content-type': 'application/json' }
    const request = new Request('http://relay.test/relay/messages', { method: 'POST', headers, body: '{}' })
    await request.text()
    const response = await world.relay(request)
    expect([response.status, await response.json()]).toMatchObject([500, { code: 'body_consumed' }])
    expect(errors).toMatchObject([{ message: expect.stringMatching(/was read before/) }])
  })
})
