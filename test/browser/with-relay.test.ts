/** Holds the three clients of cooperative sites against the relay itself, over real sockets. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { toNodeHandler } from '../../src/adapters/node.js'
import { createCooperativeSiteClient } from '../../src/browser/index.js'
import { startCooperativeSiteControlServer } from '../../src/control-server/index.js'
import {
  ActionFailure,
  createCooperativeSiteEventBus,
  createCooperativeSiteRouter,
  createSessionPolicy,
  createSessionRegistry,
  createSiteRegistry,
} from '../../src/cooperative-site/index.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { createCooperativeSitePublisher, createRemoteSiteRegistry } from '../../src/publisher/index.js'

const TOKEN = 'correct-horse-battery'
const notes = {
  mode: 'cooperative',
  event_names: ['note_changed'],
  action_names: ['add_note'],
  capability_profile: { action_invocation: true },
}

const userOf = (request: Request) => {
  const user_id = /^Bearer (alice|bob|carol)$/.exec(request.headers.get('authorization') ?? '')?.[1]
  return user_id === undefined ? null : { user_id }
}

/** A relay with an application of alice's behind it, and a session that bob may view and use. */
async function startAll() {
  const facilities = createMemoryFacilities()
  const sites = createSiteRegistry()
  const sessions = createSessionRegistry({ sites })
  const relay = createCooperativeSiteRouter({
    sites,
    sessions,
    bus: createCooperativeSiteEventBus(),
    ingest: facilities.ingest,
    policy: createSessionPolicy({ sessions }),
    connector: {
      async call(_client, { parameters }) {
        if (parameters.text === undefined) throw new ActionFailure('no_text', 'Say something')
        return { text: parameters.text }
      },
    },
    authenticateHost: userOf,
    authenticateViewer: userOf,
    prefix: '/relay',
  })
  const server = createServer(toNodeHandler(relay)).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.on('listening', resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/relay`
  onTestFinished(async () => {
    await relay.close()
    server.close()
    server.closeAllConnections()
    await facilities.close()
  })

  const instance = { user_id: 'alice', client_id: 'notes-app', instance_id: 'life-1', client_type: 'console' as const }
  await facilities.connections.connect(instance)
  const runtime = {
    identity: () => instance,
    baseUrl,
    authorize: (headers: Headers) => headers.set('authorization', 'Bearer alice'),
  }
  const publisher = createCooperativeSitePublisher({ runtime })
  const control = await startCooperativeSiteControlServer({
    token: TOKEN,
    sites: createRemoteSiteRegistry({ runtime }),
    publisher,
    onError: null,
  })
  onTestFinished(async () => void (await control.close()))
  const ask = (method: string, path: string, body?: unknown) =>
    fetch(control.url + path, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  expect((await ask('PUT', '/sites/notes', notes)).status).toBe(201)

  const connector = { user_id: 'alice', client_id: 'notes-app' }
  const { session_id: sessionId } = await sessions.open({ site_id: 'notes', owner: 'alice', connector })
  await sessions.activate(sessionId)
  await sessions.share(sessionId, { user_id: 'bob', rights: ['view', 'invoke'] })

  /** A viewer that writes down what it hears. */
  function watch(viewer: string) {
    const left = new AbortController()
    onTestFinished(() => left.abort())
    const heard: [string, unknown][] = []
    const hear = (what: string) => (frame: unknown) => void heard.push([what, frame])
    const headers = { authorization: `Bearer ${viewer}` }
    const client = createCooperativeSiteClient({ baseUrl, sessionId, headers })
    const callbacks = { onEvent: hear('event'), onGap: hear('gap'), onReady: hear('ready'), onEnd: hear('end') }
    const ended = client.subscribe({ ...callbacks, signal: left.signal })
    const hears = (count: number) => expect.poll(() => heard.length).toBe(count)
    return { client, ended, heard, hears }
  }
  return { ask, facilities, publisher, relay, runtime, sessions, sites, sessionId, watch, instance }
}

describe('an event that a local program sends to the control server', () => {
  it('reaches the viewers of the site', async () => {
    const { ask, watch } = await startAll()
    const bob = watch('bob')
    await bob.hears(1)
    expect(bob.heard[0]).toMatchObject(['ready', { site_id: 'notes', replay: false, queue_limit: 100 }])
    const answer = await ask('POST', '/sites/notes/events', { name: 'note_changed', data: { id: 7 } })
    expect([answer.status, await answer.json()]).toMatchObject([202, { published: true, not_published_reason: null }])
    await bob.hears(2)
    expect(bob.heard[1]).toMatchObject(['event', { name: 'note_changed', site_id: 'notes', seq: 1, data: { id: 7 } }])
  })

  it('is accepted once, however often it is sent', async () => {
    const { ask, watch } = await startAll()
    const bob = watch('bob')
    await bob.hears(1)
    const event = { name: 'note_changed', message_id: 'm-1' }
    await ask('POST', '/sites/notes/events', event)
    expect(await (await ask('POST', '/sites/notes/events', event)).json()).toMatchObject({
      published: false,
      not_published_reason: 'duplicate',
    })
    await bob.hears(2)
  })

  it('is retained and shown once when the reply is lost and the application reconnects as a new instance', async () => {
    const { facilities, instance, runtime, watch } = await startAll()
    const bob = watch('bob')
    await bob.hears(1)
    let lives = 1
    const lossy: typeof fetch = async (...request) => {
      const response = await fetch(...request)
      if (lives > 1) return response
      await facilities.connections.connect({ ...instance, instance_id: `life-${++lives}` })
      throw new TypeError('the connection was lost')
    }
    const publisher = createCooperativeSitePublisher({
      runtime: { ...runtime, identity: () => ({ ...instance, instance_id: `life-${lives}` }), fetch: lossy },
    })
    const answer = await publisher.publish('notes', 'note_changed')
    expect(answer).toMatchObject({ accepted: true, duplicate: true, not_published_reason: 'duplicate' })
    await bob.hears(2)
    const sample = { stream: answer.stream, limit: 10 }
    const ask = { signal: new AbortController().signal }
    const { items } = await facilities.history.inspector.readMessages(sample, ask)
    expect(items).toMatchObject([{ message_id: answer.message_id, instance_id: 'life-1' }])
  })

  it('is refused under an identity that a newer instance has replaced', async () => {
    const { ask, facilities, publisher, instance } = await startAll()
    await facilities.connections.connect({ ...instance, instance_id: 'life-2' })
    const stale = { code: 'stale_instance', status: 409 }
    await expect(publisher.publish('notes', 'note_changed')).rejects.toMatchObject(stale)
    expect((await ask('POST', '/sites/notes/events', { name: 'note_changed' })).status).toBe(502)
  })
})

describe('a viewer', () => {
  it("invokes an action and gets its result, or the application's error", async () => {
    const { client } = (await startAll()).watch('bob')
    const done = await client.invoke('add_note', { text: 'milk' })
    expect(done).toMatchObject({ action: 'add_note', status: 'succeeded', result: { text: 'milk' }, error: null })
    const failed = await client.invoke('add_note', {})
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'no_text', message: 'Say something' } })
    await expect(client.invoke('drop_all', {})).rejects.toMatchObject({ code: 'action_not_allowed', status: 403 })
  })

  it('is disconnected when its session is closed, and when its right to view is revoked', async () => {
    const { sessions, sessionId, watch } = await startAll()
    const bob = watch('bob')
    const alice = watch('alice')
    await bob.hears(1)
    await alice.hears(1)
    await sessions.unshare(sessionId, 'bob')
    await bob.ended
    expect(bob.heard[1]).toEqual(['end', { reason: 'policy_revoked' }])
    await sessions.close(sessionId)
    await alice.ended
    expect(alice.heard[1]).toEqual(['end', { reason: 'session_closed' }])
  })

  it('is refused sessions of other users', async () => {
    const { watch } = await startAll()
    await expect(watch('carol').ended).rejects.toMatchObject({ code: 'session_not_found', status: 404 })
    await expect(watch('missing').ended).rejects.toMatchObject({ code: 'unauthenticated', status: 401 })
  })

  it('is notified of a shutdown', async () => {
    const { relay, watch } = await startAll()
    const bob = watch('bob')
    await bob.hears(1)
    await relay.close()
    await bob.hears(2)
    expect(bob.heard[1]).toEqual(['end', { reason: 'shutdown' }])
  })
})

describe('the remote registry', () => {
  it('leaves the sites of other owners unchanged', async () => {
    const { ask, sites } = await startAll()
    await sites.put({ mode: 'observe', site_id: 'theirs', owner: 'bob' })
    expect(await (await ask('PUT', '/sites/theirs', notes)).json()).toMatchObject({ code: 'owner_mismatch' })
    expect((await ask('DELETE', '/sites/theirs')).status).toBe(404)
    expect((await ask('POST', '/sites/theirs/events', { name: 'x' })).status).toBe(404)
    expect((await ask('DELETE', '/sites/notes')).status).toBe(204)
    expect(await sites.get('notes')).toBeNull()
  })
})
