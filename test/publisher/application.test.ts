/** `connectApplication` against the relay itself, over real sockets. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest'
import * as z from 'zod'
import { toNodeHandler } from '../../src/adapters/node.js'
import { createCooperativeSiteClient, type SiteEvent } from '../../src/browser/index.js'
import {
  ActionFailure,
  type CooperativeSiteRouterOptions,
  createActionHandlers,
} from '../../src/cooperative-site/index.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { type ApplicationActions, type ApplicationOptions, connectApplication } from '../../src/publisher/index.js'
import { deferred } from '../cooperative-site/deferred.js'
import { createWorld } from '../cooperative-site/world.js'
import { json, startHandRelay } from './relay.js'

/** Resolves when `check` no longer throws. */
const until = (check: () => unknown) => vi.waitFor(check, { timeout: 300_000 })

const NOTES = 'notes'

/** A relay on a real port that lets applications connect. */
async function startRelay(options: Partial<CooperativeSiteRouterOptions> = {}, port = 0) {
  const facilities = createMemoryFacilities()
  const { connections, dispatcher } = facilities
  const world = await createWorld({ connections, dispatcher, ...options }, facilities)
  const server = createServer(toNodeHandler(world.relay)).listen(port, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/relay`
  const viewer = createCooperativeSiteClient({
    baseUrl: url,
    sessionId: world.session_id,
    headers: { authorization: 'Bearer bob' },
  })
  const currentInstance = (client_id = 'laptop') => connections.currentInstance({ user_id: 'alice', client_id })
  return { ...world, server, url, viewer, currentInstance }
}

/** Connects alice's laptop; it ends with the test. */
async function connect(url: string, options: Partial<ApplicationOptions> = {}) {
  const application = await connectApplication(url, {
    clientId: 'laptop',
    site: NOTES,
    headers: { authorization: 'Bearer alice' },
    onError: null,
    ...options,
  })
  onTestFinished(() => application.close())
  return application
}

/** Actions of which one ends only when its signal aborts. */
function createWaiting() {
  const actions = createActionHandlers({ onError: null })
  const started = deferred<AbortSignal>()
  const go = deferred<void>()
  actions.handle('archive_note', { parameters: z.looseObject({}) }, async (_parameters, { signal }) => {
    started.resolve(signal)
    await Promise.race([go.promise, once(signal, 'abort')])
    return { done: !signal.aborted }
  })
  return { actions, started: started.promise, go: go.resolve }
}

describe('a connected application', () => {
  it('publishes events to viewers and runs the actions that they invoke', async () => {
    const relay = await startRelay()
    const actions = createActionHandlers()
    actions.handle('archive_note', { parameters: z.strictObject({ id: z.int() }) }, ({ id }) => {
      expectTypeOf(id).toBeNumber()
      if (id === 0) throw new ActionFailure('no_such_note', 'gone')
      return { archived: id }
    })
    const application = await connect(relay.url, { actions, metadata: { version: '1.2' } })
    expect(application.connected).toBe(true)
    expect(await relay.currentInstance()).toBe(application.instanceId)

    const events: SiteEvent[] = []
    const left = new AbortController()
    onTestFinished(() => left.abort())
    await new Promise<void>((onReady) => {
      relay.viewer.subscribe({ onReady: () => onReady(), onEvent: (event) => events.push(event), signal: left.signal })
    })
    expect(await application.publish('note_changed', { id: 7 })).toMatchObject({ accepted: true, published: true })
    await until(() => expect(events).toMatchObject([{ name: 'note_changed', data: { id: 7 } }]))

    expect(await relay.viewer.invoke('archive_note', { id: 7 })).toMatchObject({
      status: 'succeeded',
      result: { archived: 7 },
    })
    expect(await relay.viewer.invoke('archive_note', { id: 0 })).toMatchObject({
      status: 'failed',
      error: { code: 'no_such_note', message: 'gone' },
    })
    expect(await relay.viewer.invoke('archive_note', { id: 'seven' })).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_parameters' },
    })

    await application.close()
    await application.closed
    expect(application.connected).toBe(false)
    await until(async () => expect(await relay.currentInstance()).toBeNull())
    await expect(application.publish('note_changed')).rejects.toMatchObject({ name: 'RelayError', code: 'closed' })
  })

  it('declares its site, with the actions that it has', async () => {
    const relay = await startRelay()
    const actions = createActionHandlers()
    actions.handle('add_task', { parameters: z.strictObject({}) }, () => null)
    await connect(relay.url, { actions, site: { site_id: 'tasks', event_names: ['task_added'] } })
    expect(await relay.sites.get('tasks')).toMatchObject({
      owner: 'alice',
      mode: 'cooperative',
      event_names: ['task_added'],
      action_names: ['add_task'],
      capability_profile: { action_invocation: true },
    })
    await connect(relay.url, { clientId: 'desk', site: { site_id: 'feed', title: 'Feed' } })
    expect(await relay.sites.get('feed')).toMatchObject({ mode: 'observe', title: 'Feed', action_names: [] })
  })

  it('aborts the signal of an action whose viewer disconnects, and of one whose time is up', async () => {
    const relay = await startRelay()
    const first = createWaiting()
    const application = await connect(relay.url, { actions: first.actions })
    const viewer = new AbortController()
    const invoked = relay.viewer.invoke('archive_note', {}, { signal: viewer.signal }).catch(() => null)
    const signal = await first.started
    viewer.abort()
    await until(() => expect(signal.aborted).toBe(true))
    await invoked
    await application.close()

    const second = createWaiting()
    await connect(relay.url, { actions: second.actions })
    let expired: AbortSignal | undefined
    void second.started.then((started) => {
      expired = started
    })
    // On a busy machine, the time may be up before the handler runs.
    for (let timeoutMs = 50; !expired; timeoutMs *= 2) {
      const late = relay.viewer.invoke('archive_note', {}, { timeoutMs })
      await expect(late).rejects.toMatchObject({ code: 'action_timeout' })
    }
    await until(() => expect(expired?.aborted).toBe(true))
  })

  it('sends the result of a running action before it has closed', async () => {
    const relay = await startRelay()
    const { actions, started, go } = createWaiting()
    const application = await connect(relay.url, { actions })
    const invoked = relay.viewer.invoke('archive_note', {})
    await started
    const closing = application.close()
    go()
    await closing
    expect(await invoked).toMatchObject({ status: 'succeeded', result: { done: true } })
  })

  it('sends a reply again that was lost on the way', async () => {
    const relay = await startRelay()
    const actions = createActionHandlers()
    actions.handle('archive_note', { parameters: z.looseObject({}) }, () => 'done')
    let replies = 0
    const lossy: typeof fetch = async (url, init) => {
      if (!/commands\/./.test(String(url)) || !String(init?.body).includes('outcome')) return fetch(url, init)
      if (++replies === 1) throw new TypeError('the connection was reset')
      return fetch(url, init)
    }
    await connect(relay.url, { actions, fetch: lossy })
    expect(await relay.viewer.invoke('archive_note', {})).toMatchObject({ status: 'succeeded', result: 'done' })
    expect(replies).toBe(2)
  })
})

describe('the connection of an application', () => {
  it('is made again after it was lost, as the same instance, and published events wait for it', async () => {
    const relay = await startRelay()
    const errors = vi.fn()
    const application = await connect(relay.url, { onError: errors })
    relay.server.closeAllConnections()
    await until(() => expect(application.connected).toBe(false))
    const published = application.publish('note_changed', { id: 1 })
    expect(await published).toMatchObject({ published: true })
    expect(application.connected).toBe(true)
    expect(await relay.currentInstance()).toBe(application.instanceId)
    expect(errors).toHaveBeenCalledWith(expect.objectContaining({ code: 'unreachable' }))
  })

  it('is tried again until the relay is there', async () => {
    const { url, server } = await startRelay()
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
    const errors: unknown[] = []
    const tried = deferred<void>()
    const connecting = connect(url, {
      onError(error) {
        errors.push(error)
        tried.resolve()
      },
    })
    await tried.promise
    await startRelay({}, Number(new URL(url).port))
    expect((await connecting).connected).toBe(true)
    expect(errors[0]).toMatchObject({ name: 'RelayError', code: 'unreachable', status: null })
  })

  it('is made again after the relay was shut down, without an error', async () => {
    const { url, server, relay } = await startRelay()
    const errors = vi.fn()
    const application = await connect(url, { clientId: 'desk', onError: errors })
    await relay.close()
    await until(() => expect(application.connected).toBe(false))
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
    const next = await startRelay({}, Number(new URL(url).port))
    await until(() => expect(application.connected).toBe(true))
    expect(await next.currentInstance('desk')).toBe(application.instanceId)
    expect(errors).not.toHaveBeenCalled()
  })

  it('ends for good when another instance takes over', async () => {
    // Long enough that a busy machine does not end a connection for its silence.
    const relay = await startRelay({ heartbeatMs: 2_000 })
    const older = await connect(relay.url)
    const newer = await connect(relay.url)
    await expect(older.closed).rejects.toMatchObject({ name: 'RelayError', code: 'superseded' })
    await expect(older.publish('note_changed')).rejects.toMatchObject({ code: 'superseded' })
    expect(await newer.publish('note_changed')).toMatchObject({ published: true })
  })

  it('uses the headers of that moment, and reports a function of headers that fails', async () => {
    const relay = await startRelay()
    const errors = vi.fn()
    const broken = new Error('no token yet')
    const headers = vi.fn(async () => ({ authorization: 'Bearer alice' })).mockRejectedValueOnce(broken)
    const application = await connect(relay.url, { headers, onError: errors })
    expect(errors).toHaveBeenCalledExactlyOnceWith(broken)
    const before = headers.mock.calls.length
    await application.publish('note_changed')
    expect(headers.mock.calls.length).toBe(before + 1)
  })

  it('lets a bounded number of events wait for it', async () => {
    const relay = await startRelay()
    let isDown = false
    const fetchOrFail: typeof fetch = (url, init) =>
      isDown ? Promise.reject(new TypeError('unreachable')) : fetch(url, init)
    const application = await connect(relay.url, { fetch: fetchOrFail })
    isDown = true
    relay.server.closeAllConnections()
    await until(() => expect(application.connected).toBe(false))
    const waiting = Array.from({ length: 1_000 }, () => application.publish('note_changed'))
    await expect(application.publish('note_changed')).rejects.toMatchObject({ code: 'not_connected' })
    const ended = Promise.allSettled(waiting)
    await application.close()
    for (const call of await ended) expect(call).toMatchObject({ status: 'rejected', reason: { code: 'closed' } })
  })
})

/** A relay of which a test writes the stream; `replies` are the outcomes that it received. */
async function startScripted(heartbeat_ms: number, write: (stream: ServerResponse) => void) {
  const replies = new Map<string, unknown>()
  let streams = 0
  const relay = await startHandRelay((response, n) => {
    const { path = '', body } = relay.asked[n] ?? {}
    const [, command_id] = /commands\/(.+)$/.exec(path) ?? []
    if (command_id) {
      if (body?.outcome) replies.set(command_id, body.outcome)
      return json(response, 200, { accepted: true })
    }
    streams++
    const ready = { connection_id: 'c', user_id: 'alice', client_id: 'laptop', instance_id: 'i', heartbeat_ms }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`retry: 100\nevent: ready\ndata: ${JSON.stringify(ready)}\n\n`)
    write(response)
  })
  return { url: `${relay.url}/relay`, replies, streams: () => streams }
}

const commandFrame = (command_id: string, remaining_ms = 3_600_000) =>
  `event: command\ndata: ${JSON.stringify({ command_id, action: 'wait', payload: {}, attempt: 1, remaining_ms })}\n\n`

describe('an application at a relay that misbehaves', () => {
  it('connects again when it receives nothing for two and a half heartbeats', async () => {
    const relay = await startScripted(20, () => {})
    const errors = vi.fn()
    await connect(relay.url, { onError: errors })
    await until(() => expect(relay.streams()).toBeGreaterThan(1))
    expect(errors).toHaveBeenCalledWith(expect.objectContaining({ name: 'RelayError', code: 'timeout' }))
  })

  it('fails commands as busy beyond a thousand that run', async () => {
    const relay = await startScripted(15_000, (stream) => {
      for (let n = 0; n < 1_001; n++) stream.write(commandFrame(`c-${n}`))
    })
    const execute = vi.fn(() => new Promise<undefined>(() => {}))
    const left = new AbortController()
    void connectApplication(relay.url, {
      clientId: 'laptop',
      site: NOTES,
      actions: { names: ['wait'], execute },
      onError: null,
      signal: left.signal,
    })
    onTestFinished(() => left.abort())
    const busy = { ok: false, error: { code: 'busy', message: null } }
    await until(() => expect([...relay.replies]).toEqual([['c-1000', busy]]))
    expect(execute).toHaveBeenCalledTimes(1_000)
  })

  it('sends no reply for a command whose time passed: its handler may have had its effect', async () => {
    const relay = await startScripted(15_000, (stream) => stream.write(commandFrame('late', 1) + commandFrame('c-2')))
    let hasEnded = false
    const execute: ApplicationActions['execute'] = async ({ correlation_id }, { signal }) => {
      if (correlation_id === 'c-2') {
        await until(() => expect(hasEnded).toBe(true))
        return { ok: true, result: null }
      }
      await until(() => expect(signal.aborted).toBe(true))
      hasEnded = true
      return { ok: false, error: { code: 'cancelled', message: null } }
    }
    await connect(relay.url, { actions: { names: ['wait'], execute } })
    await until(() => expect([...relay.replies.keys()]).toEqual(['c-2']))
  })

  it('ignores frames that it cannot read, and does not run a command twice', async () => {
    const relay = await startScripted(15_000, (stream) => {
      stream.write(
        'event: command\ndata: {"command_id":7}\n\nevent: news\ndata: {}\n\nevent: command\ndata: no JSON\n\n',
      )
      stream.write(commandFrame('c-1') + commandFrame('c-1') + commandFrame('c-2'))
    })
    const actions = createActionHandlers({ onError: null })
    const handler = vi.fn(() => 'done')
    actions.handle('wait', { parameters: z.looseObject({}) }, handler)
    await connect(relay.url, { actions })
    await until(() => expect([...relay.replies.keys()].sort()).toEqual(['c-1', 'c-2']))
    expect(handler).toHaveBeenCalledTimes(2)
  })
})

describe('connectApplication', () => {
  it.each<[string, Partial<ApplicationOptions>, Partial<CooperativeSiteRouterOptions>, object]>([
    ['unknown credentials', { headers: {} }, {}, { code: 'unauthenticated', status: 401 }],
    [
      "another user's site",
      { headers: { authorization: 'Bearer bob' }, site: { site_id: NOTES } },
      {},
      { code: 'owner_mismatch' },
    ],
    [
      'an invalid site',
      { site: { site_id: 'x', event_names: ['not a name'] } },
      {},
      { code: 'invalid_body', status: 422 },
    ],
    [
      'a relay without applications',
      {},
      { connections: undefined, dispatcher: undefined },
      { code: 'operation_absent', status: 501 },
    ],
  ])('rejects for %s', async (_what, options, relayOptions, error) => {
    const { url } = await startRelay(relayOptions)
    await expect(connect(url, options)).rejects.toMatchObject({ name: 'RelayError', ...error })
  })

  it('rejects with the reason of a signal that aborts while it connects', async () => {
    const left = new AbortController()
    const reason = new Error('not needed any more')
    const connecting = connect('http://127.0.0.1:9/relay', { signal: left.signal, onError: () => left.abort(reason) })
    await expect(connecting).rejects.toBe(reason)
    await expect(connect('http://127.0.0.1:9/relay', { signal: left.signal })).rejects.toBe(reason)
  })

  it('closes the application when its signal aborts later', async () => {
    const { url, currentInstance } = await startRelay()
    const left = new AbortController()
    const application = await connect(url, { signal: left.signal })
    left.abort(new Error('bye'))
    await application.closed
    await expect(application.publish('note_changed')).rejects.toThrow('bye')
    await until(async () => expect(await currentInstance()).toBeNull())
  })

  it.each<[string, unknown, string]>([
    ['ftp://relay.example/', { clientId: 'a', site: 'b' }, 'Invalid option "url": expected an http(s) URL'],
    ['http://relay.example/', { site: 'b' }, 'Missing required option "clientId" (string)'],
    ['http://relay.example/', { clientId: 'a' }, 'Missing required option "site" (site id or a site)'],
    [
      'http://relay.example/',
      { clientId: 'a', site: 'b', action: {} },
      'Unknown option "action". Did you mean "actions"?',
    ],
    [
      'http://relay.example/',
      { clientId: 'a', site: { id: 'b' } },
      'Unknown option "site.id". Valid options: site_id, mode, title,',
    ],
    [
      'http://relay.example/',
      { clientId: 'a', site: 'b', actions: {} },
      'Invalid option "actions": expected an object with execute()',
    ],
    ['http://relay.example/', { clientId: '..', site: 'b' }, 'Invalid option "clientId"'],
  ])('refuses %s with %j', async (url, options, message) => {
    await expect(connectApplication(url, options as ApplicationOptions)).rejects.toThrow(message)
    await expect(connectApplication(url, options as ApplicationOptions)).rejects.toBeInstanceOf(TypeError)
  })
})
