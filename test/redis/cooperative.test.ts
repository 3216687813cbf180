/** Cooperative sites on two nodes of one deployment: the application is at one, its viewers are at the other. */
import { expect, it, onTestFinished } from 'vitest'
import * as z from 'zod'
import {
  type CooperativeSiteRouterOptions,
  createActionHandlers,
  createCooperativeSiteRouter,
  createDispatchConnector,
  createSessionPolicy,
} from '../../src/cooperative-site/index.js'
import type { SiteMessageAnswer } from '../../src/internal/contract/ingest.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createRedisEventBus } from '../../src/redis/event-bus/facility.js'
import { createRedisSessionRegistry } from '../../src/redis/sessions/facility.js'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import { notes } from '../contract/sites.js'
import { attachWaitingHandler, changed, invokeRequest, laptop, whoAsks } from '../cooperative-site/world.js'
import { countCommands } from './counted-client.js'
import { describeStores, type Place } from './matrix.js'

function createNode(place: Place, nodeId: string, options: Partial<CooperativeSiteRouterOptions>) {
  const facilities = createRedisFacilities({ ...place, nodeId })
  const sites = createRedisSiteRegistry(place)
  const sessions = createRedisSessionRegistry({ ...place, sites })
  const bus = createRedisEventBus(place)
  const connector = createDispatchConnector(facilities)
  const relay = createCooperativeSiteRouter({
    sites,
    sessions,
    bus,
    ingest: facilities.ingest,
    connector,
    connections: facilities.connections,
    dispatcher: facilities.dispatcher,
    policy: createSessionPolicy({ sessions }),
    authenticateHost: whoAsks,
    authenticateViewer: whoAsks,
    ...options,
  })
  onTestFinished(async () => {
    await relay.close()
    await Promise.all([facilities.close(), sessions.disconnect(), bus.close()])
  })
  const ask = (
    user: string,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    signal = new AbortController().signal,
  ) =>
    relay(
      new Request(`http://relay.test${path}`, {
        method,
        headers: { authorization: `Bearer ${user}`, 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal,
      }),
    )
  return { facilities, sites, sessions, connector, relay, ask }
}

/** Two nodes; alice's laptop is connected to the first, and bob may watch and act. */
async function createWorld(place: Place, options: Partial<CooperativeSiteRouterOptions> = {}) {
  const [a, b] = [createNode(place, 'a', options), createNode(place, 'b', options)]
  await a.sites.put(notes)
  await a.facilities.connections.connect({ ...laptop, client_type: 'console' })
  const { session_id } = await a.sessions.open({
    site_id: 'notes',
    owner: 'alice',
    connector: { user_id: 'alice', client_id: 'laptop' },
  })
  await a.sessions.activate(session_id)
  await a.sessions.share(session_id, { user_id: 'bob', rights: ['view', 'invoke'] })
  return { a, b, session_id }
}

const CONTEXT = { signal: new AbortController().signal }
const PAGE = { limit: 10, cursor: null }

type Node = ReturnType<typeof createNode>

/** Reads Bob's event stream until it contains the expected events. */
async function watch(node: Node, session_id: string, headers: Record<string, string> = {}) {
  const response = await node.ask('bob', 'GET', `/sessions/${session_id}/events`, undefined, headers)
  expect(response.status).toBe(200)
  return createReading(response)
}

/** Reads a stream until it contains a text. */
function createReading(response: Response) {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = ''
  return {
    async until(pattern: RegExp): Promise<RegExpExecArray> {
      for (;;) {
        const found = pattern.exec(text)
        if (found) return found
        const { value, done } = await reader.read()
        if (done) throw new Error(`the stream has ended: ${text}`)
        text += decoder.decode(value, { stream: true })
      }
    },
    get text() {
      return text
    },
    cancel: () => reader.cancel(),
  }
}

describeStores('cooperative sites over two nodes', (kind, place) => {
  it('deliver an event published on one node to a viewer on the other, once', async () => {
    const { a, b, session_id } = await createWorld(place())
    const [near, far] = [await watch(a, session_id), await watch(b, session_id)]
    await Promise.all([near.until(/event: ready/), far.until(/event: ready/)])
    const message = changed({ note: 7 })
    const accepted = await a.ask('alice', 'POST', '/messages', message)
    expect(accepted.status).toBe(202)
    expect(await accepted.json()).toMatchObject({ accepted: true, published: true })
    expect(await (await b.ask('alice', 'POST', '/messages', message)).json()).toMatchObject({
      duplicate: true,
      published: false,
    })
    await a.ask('alice', 'POST', '/messages', changed({ note: 8 }))
    const ids = []
    for (const stream of [near, far]) {
      const [, id] = await stream.until(/id: (\S+)\nevent: site_event\ndata: .*"note":8/)
      ids.push(id)
      expect(stream.text.match(/"note":7/g)).toHaveLength(1)
      await stream.cancel()
    }
    expect(ids[0]).toBe(ids[1])
  })

  it('run an action of an application that is connected to one node for a viewer at the other', async () => {
    const { a, b, session_id } = await createWorld(place())
    const left = new AbortController()
    onTestFinished(() => left.abort())
    const hello = { instance_id: 'laptop-2', actions: ['archive_note'] }
    const opened = await a.ask('alice', 'POST', '/clients/laptop/commands', hello, {}, left.signal)
    const commands = createReading(opened)
    await commands.until(/event: ready/)
    const invoked = b.ask('bob', 'POST', `/sessions/${session_id}/actions/archive_note`, { parameters: { id: 7 } })
    const [, command_id] = await commands.until(/event: command\ndata: \{"command_id":"([^"]+)"/)
    // A load balancer may send the reply to the other node.
    const reply = { instance_id: 'laptop-2', outcome: { ok: true, result: { archived: 7 } } }
    const replied = await b.ask('alice', 'POST', `/clients/laptop/commands/${command_id}`, reply)
    expect(await replied.json()).toEqual({ accepted: true })
    expect(await (await invoked).json()).toMatchObject({ status: 'succeeded', result: { archived: 7 } })
    left.abort()
    const { connections } = b.facilities
    await expect.poll(() => connections.currentInstance({ user_id: 'alice', client_id: 'laptop' })).toBeNull()
  })

  it('deliver events published on both at the same time to every viewer, once and at one position', async () => {
    const { a, b, session_id } = await createWorld(place())
    const [near, far] = [await watch(a, session_id), await watch(b, session_id)]
    await Promise.all([near.until(/event: ready/), far.until(/event: ready/)])
    const messages = Array.from({ length: 10 }, (_, note) => changed({ note }))
    const both = await Promise.all(
      messages.map((message) =>
        Promise.all(
          [a, b].map(async (node) => {
            const response = await node.ask('alice', 'POST', '/messages', message)
            return { status: response.status, ...((await response.json()) as SiteMessageAnswer) }
          }),
        ),
      ),
    )
    for (const answers of both) {
      for (const answer of answers) expect(answer).toMatchObject({ status: 202, accepted: true })
      const [first, second] = [...answers].sort((x, y) => Number(x.duplicate) - Number(y.duplicate))
      expect(first).toMatchObject({ duplicate: false, published: true, not_published_reason: null })
      expect(second).toMatchObject({ duplicate: true, first: { client_id: 'laptop' } })
      // The first of them at the bus has published it.
      expect([
        [true, null],
        [false, 'duplicate'],
      ]).toContainEqual([second?.published, second?.not_published_reason])
    }
    await a.ask('alice', 'POST', '/messages', changed({ note: 'last' }))
    const seen = []
    for (const stream of [near, far]) {
      await stream.until(/"note":"last"/)
      const events = [...stream.text.matchAll(/id: (\S+)\nevent: site_event\ndata: .*"note":("last"|\d+)/g)]
      seen.push(events.map(([, id, note]) => `${id} ${note}`))
      expect(events.map(([, , note]) => note).sort()).toEqual(['"last"', ...messages.map((_, note) => `${note}`)])
      expect(stream.text).not.toContain('event: gap')
      await stream.cancel()
    }
    expect(seen[0]).toEqual(seen[1])
  })

  it('deliver to a viewer that moves to the other node exactly what it missed', async () => {
    const { a, b, session_id } = await createWorld(place())
    const near = await watch(a, session_id)
    const [, seen] = await near.until(/id: (\S+)\nevent: ready/)
    await near.cancel()
    for (let n = 0; n < 3; n++) await a.ask('alice', 'POST', '/messages', changed())
    const far = await watch(b, session_id, { 'last-event-id': seen as string })
    const [, data] = await far.until(/event: gap\ndata: (.*)\n/)
    expect(JSON.parse(data as string)).toMatchObject({ reason: 'resume', dropped: 3, first_seq: 1, last_seq: 3 })
    await far.cancel()
  })

  it('deliver an action from a viewer on one node to the application on the other, and its result back', async () => {
    const { a, b, session_id } = await createWorld(place())
    const handlers = createActionHandlers()
    handlers.handle('archive_note', { parameters: z.looseObject({ id: z.int() }) }, ({ id }) => ({ archived: id }))
    await a.facilities.dispatcher.attach(laptop, handlers.deliver(laptop, a.connector))
    const invoke = () => b.ask('bob', 'POST', `/sessions/${session_id}/actions/archive_note`, { parameters: { id: 7 } })
    const response = await invoke()
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ status: 'succeeded', result: { archived: 7 }, error: null })
    await a.sessions.suspend(session_id)
    expect((await invoke()).status).toBe(409)
  })

  it('abort the signal of the handler on one node when the viewer on the other disconnects', async () => {
    const { a, b, session_id } = await createWorld(place())
    const { started, aborted } = await attachWaitingHandler(a, laptop)
    const viewer = new AbortController()
    const response = b.relay(invokeRequest(session_id, viewer.signal, ''))
    expect(await started).toBe(false)
    viewer.abort()
    expect(await aborted).toBe(true)
    await response
  })

  it('end a call on one node whose application disconnected from the other, and cancel its command', async () => {
    const { a, b, session_id } = await createWorld(place())
    const { started, aborted } = await attachWaitingHandler(a, laptop)
    const response = b.relay(invokeRequest(session_id, new AbortController().signal, ''))
    await started
    const { items } = await a.facilities.connections.inspector.listConnections({}, PAGE, CONTEXT)
    await a.facilities.connections.disconnect(items[0]?.connection_id ?? '', 'stream_closed')
    const { status, code, outcome } = await (await response).json()
    expect({ status, code, outcome }).toEqual({ status: 504, code: 'application_disconnected', outcome: 'unknown' })
    expect(await aborted).toBe(true)
    const commands = await b.facilities.dispatcher.inspector.listCommands?.({}, PAGE, CONTEXT)
    expect(commands?.items).toMatchObject([{ terminal: { state: 'cancelled', reason: 'application_disconnected' } }])
  })

  it('refuse a viewer more streams than its limit, until one of them ends', async () => {
    const { a, session_id } = await createWorld(place(), { streamsPerViewerInSession: 1 })
    const first = await watch(a, session_id)
    await first.until(/event: ready/)
    const ask = () => a.ask('bob', 'GET', `/sessions/${session_id}/events`)
    const refused = await ask()
    expect([refused.status, (await refused.json()).code]).toEqual([429, 'share_exceeded'])
    await first.cancel()
    const again = await watch(a, session_id)
    await again.until(/event: ready/)
    await again.cancel()
  })

  // Counted at the one client that `countCommands` wraps.
  if (kind === 'node-redis')
    it('send the same commands for a session that does not exist as for one of other users', async () => {
      const own = place()
      const { session_id } = await createWorld(own)
      const counted = countCommands(own.client)
      const sessions = createRedisSessionRegistry({ ...own, client: counted.client })
      onTestFinished(() => sessions.disconnect())
      const node = createNode(own, 'c', { sessions, policy: createSessionPolicy({ sessions }) })
      const costOf = async (id: string) => {
        await sessions.get(id)
        counted.reset()
        expect((await node.ask('mallory', 'GET', `/sessions/${id}/events`)).status).toBe(404)
        // The clock of the store is read again now and then, whatever is asked.
        return counted.names.filter((name) => name !== 'TIME')
      }
      const absent = await costOf('guessed')
      expect(absent).toContain('GET')
      expect(await costOf(session_id)).toEqual(absent)
    })

  it('end a stream on one node when its session ends on the other', async () => {
    const { a, b, session_id } = await createWorld(place())
    const far = await watch(b, session_id)
    await far.until(/event: ready/)
    await a.sessions.close(session_id)
    await far.until(/"reason":"session_closed"/)
    expect((await b.ask('bob', 'GET', `/sessions/${session_id}/events`)).status).toBe(409)
  })
})
