/** Holds the subscription of the browser client, over real sockets. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { CooperativeSiteError, createCooperativeSiteClient } from '../../src/browser/index.js'
import { event, listen, startRelay } from './listening.js'
import { answerJson, frame, openStream, ready } from './relay.js'

afterEach(() => {
  vi.useRealTimers()
})

describe('subscribe', () => {
  it('refuses misspelt listeners, a call without onEvent, and unknown options', async () => {
    const client = createCooperativeSiteClient({ baseUrl: 'http://relay.test', sessionId: 's' })
    expect(() => client.subscribe({ onevent() {} } as never)).toThrow(
      /Unknown option "onevent"\. Did you mean "onEvent"\?/,
    )
    expect(() => client.subscribe({ onReady() {} } as never)).toThrow(/Missing required option "onEvent" \(function\)/)
    await expect(client.invoke('a', {}, { timeout: 3 } as never)).rejects.toThrow(
      /Unknown option "timeout"\. Did you mean "timeoutMs"\?/,
    )
  })

  it('requests the stream of its session and reports ready, events and gaps in order', async () => {
    const relay = await startRelay()
    const { hears, heard } = listen(relay, { headers: () => ({ 'x-viewer': 'v' }) })
    const visit = await relay.visit(0)
    expect(visit.request.url).toBe('/relay/sessions/a%20b/events')
    expect(visit.request.headers).toMatchObject({ accept: 'text/event-stream', 'x-viewer': 'v' })
    expect(visit.request.headers['last-event-id']).toBeUndefined()
    const gap = { reason: 'overflow', dropped: 2, dropped_total: 2, first_seq: 2, last_seq: 3 }
    openStream(visit, ready() + frame('site_event', event(1)) + frame('gap', gap) + frame('novelty', {}))
    const traced = { ...event(4), trace: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }
    visit.response.write(`: heartbeat\n\n${frame('site_event', traced)}`)
    expect(await hears(4)).toEqual(['ready', 'event', 'gap', 'event'])
    expect(heard[1]?.[1]).toEqual(event(1))
    expect(heard[2]?.[1]).toEqual(gap)
    expect(heard[3]?.[1]).toEqual(traced)
  })

  it('reconnects after a lost connection with the last position and fresh headers', async () => {
    const relay = await startRelay()
    let token = 0
    const { hears } = listen(relay, { headers: () => ({ 'x-token': String(token++) }) })
    const first = await relay.visit(0)
    openStream(first, ready() + frame('site_event', event(7), 'e:7'))
    await hears(2)
    first.response.destroy()
    const second = await relay.visit(1)
    expect(second.request.headers).toMatchObject({ 'last-event-id': 'e:7', 'x-token': '1' })
    openStream(second, ready())
    expect(await hears(3)).toEqual(['ready', 'event', 'ready'])
  })

  it.each([500, 502, 503, 408, 429])('retries after %i', async (status) => {
    const relay = await startRelay((visit, n) => {
      if (n === 0) answerJson(visit, status, { code: 'internal' })
      else openStream(visit, ready())
    })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { hears, heard } = listen(relay)
    await relay.visit(0)
    while (heard.length === 0) {
      await vi.advanceTimersByTimeAsync(1_000)
      // The network has no clock to advance: on a busy machine the client would give up each answer before it comes.
      await pause(20)
    }
    expect(await hears(1)).toEqual(['ready'])
  })

  it.each([
    [401, 'unauthenticated'],
    [403, 'forbidden'],
    [404, 'session_not_found'],
    [422, 'invalid_path'],
  ])('stops on %i and reports its code', async (status, code) => {
    const relay = await startRelay((visit) => answerJson(visit, status, { code }))
    const { ended, heard } = listen(relay)
    await expect(ended).rejects.toMatchObject({ name: 'CooperativeSiteError', code, status })
    expect(heard).toEqual([['end', { reason: 'refused', error: expect.any(CooperativeSiteError) }]])
    expect(relay.visits).toHaveLength(1)
  })

  it('stops on a response that is not an event stream', async () => {
    const relay = await startRelay((visit) => answerJson(visit, 200, 'welcome to the captive portal'))
    await expect(listen(relay).ended).rejects.toMatchObject({ code: 'unexpected_answer', status: 200 })
  })

  it.each([302, 307])('never follows a %i, whose target would get the credentials', async (status) => {
    const elsewhere = await startRelay((visit) => openStream(visit, ready()))
    const relay = await startRelay((visit) => answerJson(visit, status, {}, { location: `${elsewhere.url}/x` }))
    await expect(listen(relay).ended).rejects.toMatchObject({ code: 'redirected' })
    expect(elsewhere.visits).toHaveLength(0)
  })

  it.each([
    'session_closed',
    'session_expired',
    'policy_revoked',
    'something_new',
  ])('stops on end: %s', async (reason) => {
    const relay = await startRelay((visit) =>
      openStream(visit, ready() + frame('end', { reason }) + frame('site_event', event(1))),
    )
    const { ended, heard } = listen(relay)
    await expect(ended).resolves.toBeUndefined()
    expect(heard.map(([what]) => what)).toEqual(['ready', 'end'])
    expect(heard[1]?.[1]).toEqual({ reason })
    expect(relay.visits).toHaveLength(1)
  })

  it('times out on a relay that never answers, and retries', async () => {
    const relay = await startRelay()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    listen(relay)
    await relay.visit(0)
    await vi.advanceTimersByTimeAsync(37_500)
    await vi.advanceTimersByTimeAsync(1_500)
    await relay.visit(1)
    expect(relay.visits).toHaveLength(2)
  })

  it('reports nothing after an abort, even from the same chunk, and resolves', async () => {
    const relay = await startRelay((visit) => {
      openStream(visit, ready() + frame('site_event', event(1)) + frame('site_event', event(2)))
    })
    const { ended, heard, left } = listen(relay, { onEvent: () => left.abort() })
    await expect(ended).resolves.toBeUndefined()
    expect(heard.map(([what]) => what)).toEqual(['ready', 'event'])
    const visit = await relay.visit(0)
    if (!visit.response.destroyed) await new Promise((resolve) => visit.response.on('close', resolve))
  })

  it('ends immediately between two connections, even if fetch ignores its signal', async () => {
    const left = new AbortController()
    let calls = 0
    const fetch = async () => {
      calls++
      throw new TypeError('down')
    }
    const client = createCooperativeSiteClient({ baseUrl: 'http://relay.test', sessionId: 'x', fetch })
    const ended = client.subscribe({ onEvent: () => {}, signal: left.signal })
    setTimeout(() => left.abort(), 20)
    await ended
    expect(calls).toBe(1)
    const deaf = createCooperativeSiteClient({
      baseUrl: 'http://relay.test',
      sessionId: 'x',
      fetch: () => new Promise(() => {}),
    })
    const later = new AbortController()
    setTimeout(() => later.abort(), 20)
    await deaf.subscribe({ onEvent: () => {}, signal: later.signal })
  })

  it('cancels a body from a fetch that ignores its signal', async () => {
    const left = new AbortController()
    const isCancelled = new Promise<void>((resolve) => {
      const fetch = async () =>
        new Response(new ReadableStream({ cancel: () => resolve() }), {
          headers: { 'content-type': 'text/event-stream' },
        })
      const client = createCooperativeSiteClient({ baseUrl: 'http://relay.test', sessionId: 'x', fetch })
      client.subscribe({ onEvent: () => {}, signal: left.signal })
    })
    setTimeout(() => left.abort(), 20)
    await isCancelled
  })

  it('may be ignored by callers that use onEnd: its rejection is handled', async () => {
    const relay = await startRelay((visit) => answerJson(visit, 404, { code: 'session_not_found' }))
    const client = createCooperativeSiteClient({ baseUrl: relay.url, sessionId: 'x' })
    // An unhandled rejection fails the whole run.
    const end = await new Promise((onEnd) => {
      client.subscribe({ onEvent: () => {}, onEnd })
    })
    expect(end).toMatchObject({ reason: 'refused', error: { code: 'session_not_found' } })
  })

  it('reports a callback that throws and a frame with invalid JSON, and continues', async () => {
    const reported: unknown[] = []
    vi.stubGlobal('reportError', (error: unknown) => reported.push(error))
    onTestFinished(() => void vi.unstubAllGlobals())
    const broken = new Error('of the page')
    const relay = await startRelay((visit) => {
      openStream(visit, `${ready()}event: gap\ndata: {{\n\nevent: ready\ndata: null\n\n`)
      visit.response.write(frame('site_event', event(1)) + frame('site_event', event(2)))
    })
    const { hears } = listen(relay, {
      onEvent: () => {
        throw broken
      },
    })
    expect(await hears(3)).toEqual(['ready', 'event', 'event'])
    await vi.waitFor(() => expect(reported).toHaveLength(4), { timeout: 300_000 })
    expect(reported.slice(2)).toEqual([broken, broken])
    expect(reported[0]).toMatchObject({ code: 'unexpected_answer' })
  })

  it('skips and reports a frame that does not match its schema', async () => {
    const reported: unknown[] = []
    vi.stubGlobal('reportError', (error: unknown) => reported.push(error))
    onTestFinished(() => void vi.unstubAllGlobals())
    const relay = await startRelay((visit) => {
      openStream(visit, ready())
      visit.response.write(frame('site_event', { ...event(1), name: 7 }) + frame('gap', { reason: 'overflow' }))
      visit.response.write(frame('site_event', { ...event(1), trace: 7 }))
      visit.response.write(frame('end', { reason: 7 }) + frame('weather', {}) + frame('site_event', event(2)))
    })
    const { hears } = listen(relay)
    expect(await hears(2)).toEqual(['ready', 'event'])
    expect(reported).toMatchObject(Array.from({ length: 4 }, () => ({ code: 'unexpected_answer' })))
  })

  it('never sends a position that is not a valid header value', async () => {
    const relay = await startRelay()
    const { hears } = listen(relay)
    const visit = await relay.visit(0)
    openStream(visit, ready() + frame('site_event', event(1), 'é\u2028'))
    await hears(2)
    visit.response.destroy()
    expect((await relay.visit(1)).request.headers['last-event-id']).toBe('e:0')
  })
})

describe('the client', () => {
  it('has exactly two operations', () => {
    const client = createCooperativeSiteClient({ baseUrl: '/relay', sessionId: 'x' })
    expect(Object.keys(client).sort()).toEqual(['invoke', 'subscribe'])
  })

  it.each(['', '.', '..'])('refuses the session id %j, which would escape the path', (sessionId) => {
    expect(() => createCooperativeSiteClient({ baseUrl: '/relay', sessionId })).toThrow(TypeError)
  })
})
