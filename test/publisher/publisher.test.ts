/** Holds the publisher: whose identity it sends, what it tries again, and what it says when it gives up. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createCooperativeSitePublisher, RelayError } from '../../src/publisher/index.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'
import { json, startHandRelay } from './relay.js'

const taken = {
  accepted: true,
  duplicate: false,
  message_id: 'm',
  stream: 'users/alice/sites/notes/events',
  published: true,
  not_published_reason: null,
}

afterEach(() => {
  vi.useRealTimers()
})

describe('publish', () => {
  it("sends an ordinary event message with the runtime's identity and credentials", async () => {
    const { runtime, asked } = await startHandRelay((response) => json(response, 202, taken))
    const publisher = createCooperativeSitePublisher({ runtime })
    await expect(publisher.publish('a b', 'note_changed', { id: 7 }, { messageId: 'm-1' })).resolves.toEqual(taken)
    expect(asked).toMatchObject([
      {
        method: 'POST',
        path: '/relay/messages',
        headers: { authorization: 'Bearer host', 'content-type': 'application/json' },
        body: {
          message_id: 'm-1',
          kind: 'event',
          stream: 'sites/a%20b/events',
          client_id: 'notes',
          instance_id: 'boot-1',
          payload: { name: 'note_changed', data: { id: 7 } },
        },
      },
    ])
  })

  it.each(['no signal', 'one signal'])('warns of nothing where many are published at once under %s', async (how) => {
    const warned = vi.fn()
    process.on('warning', warned)
    const { runtime } = await startHandRelay((response) => json(response, 202, taken))
    const publisher = createCooperativeSitePublisher({ runtime })
    const options = how === 'one signal' ? { signal: new AbortController().signal } : {}
    const all = Array.from({ length: 30 }, () => publisher.publish('notes', 'note_changed', null, options))
    expect(await Promise.all(all)).toHaveLength(30)
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', warned)
    expect(warned).not.toHaveBeenCalled()
  })

  it('sends the trace that it was given, and none otherwise', async () => {
    const { runtime, asked } = await startHandRelay((response) => json(response, 202, taken))
    const publisher = createCooperativeSitePublisher({ runtime })
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    await publisher.publish('notes', 'note_changed', null, { trace })
    await publisher.publish('notes', 'note_changed', null)
    expect(asked[0]?.body).toMatchObject({ trace })
    expect(asked[1]?.body).not.toHaveProperty('trace')
  })

  it('leaves data out that was not given, and gives every message an id of its own', async () => {
    const { runtime, asked } = await startHandRelay((response) => json(response, 202, taken))
    const publisher = createCooperativeSitePublisher({ runtime })
    await publisher.publish('notes', 'note_changed')
    await publisher.publish('notes', 'note_changed', null)
    expect(asked.map(({ body }) => body?.payload)).toEqual([
      { name: 'note_changed' },
      { name: 'note_changed', data: null },
    ])
    expect(new Set(asked.map(({ body }) => body?.message_id)).size).toBe(2)
  })

  it.each([
    ['returns', async () => ({ 'x-host-key': 'k' })],
    ['assigns', (headers: Headers) => void Object.assign(headers, { 'x-host-key': 'k' })],
  ])('takes credentials that authorize %s instead of setting them', async (_how, authorize) => {
    const { runtime, asked } = await startHandRelay((response) => json(response, 202, taken))
    await createCooperativeSitePublisher({ runtime: { ...runtime, authorize } }).publish('notes', 'note_changed')
    expect(asked[0]?.headers['x-host-key']).toBe('k')
  })

  it('resolves when the relay retained the message and did not publish it', async () => {
    const retained = { ...taken, published: false, not_published_reason: 'event_not_allowed' }
    const { runtime } = await startHandRelay((response) => json(response, 202, retained))
    await expect(createCooperativeSitePublisher({ runtime }).publish('notes', 'x')).resolves.toEqual(retained)
  })

  it('tries a lost reply and a 503 again, with the same message and the identity of that moment', async () => {
    const { runtime, asked } = await startHandRelay((response, n) => {
      if (n === 0) response.destroy()
      else if (n === 1) json(response, 503, { code: 'unavailable' })
      else json(response, 202, taken)
    })
    await createCooperativeSitePublisher({ runtime }).publish('notes', 'note_changed')
    expect(new Set(asked.map(({ body }) => body?.message_id)).size).toBe(1)
    expect(asked.map(({ body }) => body?.instance_id)).toEqual(['boot-1', 'boot-2', 'boot-3'])
  })

  it('gives up after three attempts with what the relay said', async () => {
    const { runtime, asked } = await startHandRelay((response) => json(response, 503, { code: 'unavailable' }))
    const given = createCooperativeSitePublisher({ runtime }).publish('notes', 'note_changed')
    await expect(given).rejects.toMatchObject({ name: 'RelayError', code: 'unavailable', status: 503 })
    expect(asked).toHaveLength(3)
  })

  it('rejects with unreachable when the connection is refused', async () => {
    const { runtime } = await startHandRelay(() => {})
    const unreachable = { ...runtime, baseUrl: 'http://127.0.0.1:1/relay' }
    const given = createCooperativeSitePublisher({ runtime: unreachable }).publish('notes', 'note_changed')
    await expect(given).rejects.toMatchObject({ code: 'unreachable', status: null })
  })

  it.each([
    [400, { code: 'invalid_json' }, 'invalid_json'],
    [401, { code: 'unauthenticated' }, 'unauthenticated'],
    [409, { code: 'stale_instance' }, 'stale_instance'],
    [409, 'no problem at all', 'stale_instance'],
    [413, { code: 'body_too_large' }, 'body_too_large'],
    [500, { code: 'internal' }, 'internal'],
    [200, taken, 'unexpected_answer'],
    [202, 'no object', 'unexpected_answer'],
    [202, {}, 'unexpected_answer'],
    [202, { ...taken, published: 'yes' }, 'unexpected_answer'],
    [202, { ...taken, not_published_reason: 7 }, 'unexpected_answer'],
    [202, { ...taken, first: {} }, 'unexpected_answer'],
    [202, { ...taken, pad: 'x'.repeat(131_072) }, 'unexpected_answer'],
  ])('takes %i as an answer, at once', async (status, body, code) => {
    const { runtime, asked } = await startHandRelay((response) => json(response, status, body))
    const given = createCooperativeSitePublisher({ runtime }).publish('notes', 'note_changed')
    await expect(given).rejects.toMatchObject({ code, status })
    expect(asked).toHaveLength(1)
  })

  it('never follows a redirect, which would take the credentials along', async () => {
    const elsewhere = await startHandRelay((response) => json(response, 202, taken))
    const { runtime, asked } = await startHandRelay((response) =>
      json(response, 307, {}, { location: `${elsewhere.url}/messages` }),
    )
    const given = createCooperativeSitePublisher({ runtime }).publish('notes', 'note_changed')
    await expect(given).rejects.toMatchObject({ code: 'redirected', status: 307 })
    expect([asked.length, elsewhere.asked.length]).toEqual([1, 0])
  })

  it('ends within ten seconds when the relay takes connections and never answers', async () => {
    useFakeTimers()
    let attempts = 0
    const runtime = {
      identity: () => ({ client_id: 'notes', instance_id: 'b' }),
      baseUrl: 'http://relay.test',
      authorize: () => {},
      fetch: () => {
        attempts++
        return new Promise<Response>(() => {})
      },
    }
    const given = createCooperativeSitePublisher({ runtime }).publish('notes', 'note_changed')
    const refused = expect(given).rejects.toMatchObject({ code: 'timeout', status: null })
    await vi.advanceTimersByTimeAsync(10_000)
    await refused
    expect(attempts).toBe(3)
    expect(ourTimers()).toEqual([])
  })

  it('ends at once when its caller aborts, during a request and between two', async () => {
    const { runtime, asked } = await startHandRelay((response, n) => {
      if (n > 0) json(response, 503, {})
    })
    const publisher = createCooperativeSitePublisher({ runtime })
    const reason = new Error('closing')
    for (const seen of [1, 2]) {
      const left = new AbortController()
      const given = publisher.publish('notes', 'note_changed', undefined, { signal: left.signal })
      const refused = expect(given).rejects.toBe(reason)
      await vi.waitFor(() => expect(asked).toHaveLength(seen), { timeout: 300_000 })
      left.abort(reason)
      await refused
    }
    await expect(publisher.publish('n', 'x', null, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(asked).toHaveLength(2)
  })

  it('refuses a runtime that does not say where its relay is', () => {
    const runtime = { identity: () => ({ client_id: 'c', instance_id: 'i' }), authorize() {} }
    expect(() => createCooperativeSitePublisher({ runtime } as never)).toThrow(
      /^Missing required option "runtime.baseUrl" \(http\(s\) URL /,
    )
  })

  it.each([
    [{ messageID: 'x' }, /^Unknown option "messageID"\. Did you mean "messageId"\?/],
    [{ messageId: 7 }, /^Invalid option "messageId": expected a string, got 7/],
    ['m-1', /^Invalid options: expected an object/],
  ])('refuses the options %j before anything is sent', async (options, reason) => {
    const { runtime, asked } = await startHandRelay((response) => json(response, 202, taken))
    const given = createCooperativeSitePublisher({ runtime }).publish('notes', 'x', null, options as never)
    await expect(given).rejects.toThrow(reason)
    await expect(given).rejects.toThrow(TypeError)
    expect(asked).toHaveLength(0)
  })

  it('says what of the message the relay could not read, the first of it in its message', async () => {
    const errors = [
      { in: 'body', name: 'message_id', reason: 'must not be empty' },
      { in: 'body', name: 'x', reason: 'is unknown' },
    ]
    const many = [...errors, ...Array.from({ length: 8 }, () => errors[1])]
    const { runtime } = await startHandRelay((response) => json(response, 422, { code: 'invalid_body', errors: many }))
    const given = createCooperativeSitePublisher({ runtime }).publish('notes', 'x')
    const message = 'invalid_body (422): message_id must not be empty'
    await expect(given).rejects.toMatchObject({ code: 'invalid_body', errors: many.slice(0, 8), message })
  })

  it.each([
    ['no list', 'x'],
    ['no such records', [{ name: 'x' }]],
  ])('believes no errors that are %s', async (_what, errors) => {
    const { runtime } = await startHandRelay((response) => json(response, 422, { code: 'invalid_body', errors }))
    const given = createCooperativeSitePublisher({ runtime }).publish('notes', 'x')
    await expect(given).rejects.toMatchObject({ errors: undefined, message: 'invalid_body (422)' })
  })

  it("passes on what the runtime's own functions throw", async () => {
    const { runtime, asked } = await startHandRelay((response) => json(response, 202, taken))
    const offline = new Error('not connected')
    const identity = async () => {
      throw offline
    }
    const given = createCooperativeSitePublisher({ runtime: { ...runtime, identity } }).publish('notes', 'x')
    await expect(given).rejects.toBe(offline)
    expect(asked).toHaveLength(0)
  })

  it.each(['', '.', '..'])('refuses the site id %j', async (siteId) => {
    const { runtime } = await startHandRelay((response) => json(response, 202, taken))
    await expect(createCooperativeSitePublisher({ runtime }).publish(siteId, 'x')).rejects.toThrow(TypeError)
  })
})

describe('RelayError', () => {
  it('is an error that a host can tell from others', () => {
    expect(new RelayError('stale_instance', 409)).toBeInstanceOf(Error)
    expect(String(new RelayError('stale_instance', 409))).toBe('RelayError: stale_instance (409)')
  })
})
