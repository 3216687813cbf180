/** Applications in processes of their own: the stream of their commands, and their replies, as the relay serves them. */

import { createParser } from 'eventsource-parser'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createCommandStream } from '../../src/cooperative-site/applications/stream.js'
import { type CooperativeSiteRouterOptions, createCooperativeSiteRouter } from '../../src/cooperative-site/index.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { createWorld, invokeRequest, type World } from './world.js'

/** Resolves when `check` no longer throws. */
const until = (check: () => unknown) => vi.waitFor(check, { timeout: 300_000 })

const BODY = { instance_id: 'laptop-2', actions: ['archive_note'] }
const ASK = { signal: new AbortController().signal }

/** A world whose relay lets applications connect. */
async function createOpenWorld(options: Partial<CooperativeSiteRouterOptions> = {}) {
  const facilities = createMemoryFacilities()
  const { connections, dispatcher } = facilities
  return createWorld({ connections, dispatcher, ...options }, facilities)
}

interface Frame {
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: read by the assertions, field by field
  data: any
}

/** Connects alice's laptop, and reads the frames of its stream when asked to. */
async function connect(world: World, { user = 'alice', client = 'laptop', ...body }: Record<string, unknown> = {}) {
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  const response = await world.relay(
    new Request(`http://relay.test/relay/clients/${client}/commands`, {
      method: 'POST',
      headers: { authorization: `Bearer ${user}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...BODY, ...body }),
      signal: controller.signal,
    }),
  )
  if (response.status !== 200) throw Object.assign(new Error(), await response.json())
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  const frames: Frame[] = []
  const comments: string[] = []
  const parser = createParser({
    onEvent: ({ event = 'message', data }) => frames.push({ event, data: JSON.parse(data) }),
    onComment: (comment) => comments.push(comment),
  })
  return {
    controller,
    comments,
    /** The next frame; `undefined` at the end. */
    async next(): Promise<Frame | undefined> {
      while (frames.length === 0) {
        const { done, value } = await reader.read()
        if (done) return undefined
        parser.feed(decoder.decode(value, { stream: true }))
      }
      return frames.shift()
    },
  }
}

const reply = async (world: World, command_id: string, body: object, user = 'alice', client = 'laptop') => {
  const response = await world.ask(user, 'POST', `/clients/${client}/commands/${command_id}`, { body })
  return { status: response.status, body: await response.json() }
}

const invoke = async (world: World, signal = ASK.signal) => {
  const response = await world.relay(invokeRequest(world.session_id, signal))
  return { status: response.status, body: await response.json() }
}

const statusOf = async ({ facilities }: World, instance_id: string) => {
  const { items } = await facilities.connections.inspector.listConnections({}, { limit: 100, cursor: null }, {
    ...ASK,
    budget: 1_000,
  } as never)
  return items.find((item) => item.instance_id === instance_id)
}

describe('an application that is connected', () => {
  it('is in the registry with its actions, runs what a viewer invokes, and is disconnected with its stream', async () => {
    const world = await createOpenWorld()
    const application = await connect(world, { metadata: { version: 3 } })
    expect(await application.next()).toEqual({
      event: 'ready',
      data: {
        connection_id: expect.any(String),
        user_id: 'alice',
        client_id: 'laptop',
        instance_id: 'laptop-2',
        heartbeat_ms: 15_000,
      },
    })
    expect(await statusOf(world, 'laptop-2')).toMatchObject({
      status: 'connected',
      client_type: 'console',
      actions: ['archive_note'],
      metadata: { version: 3 },
    })

    const invoked = invoke(world)
    const command = await application.next()
    expect(command).toEqual({
      event: 'command',
      data: {
        command_id: expect.any(String),
        action: 'archive_note',
        payload: { id: 7, __cooperative_site_session_id: world.session_id, __cooperative_site_id: 'notes' },
        attempt: 1,
        remaining_ms: expect.toSatisfy((ms: number) => ms > 0 && ms <= 60_000),
      },
    })
    const { command_id } = command?.data ?? {}
    const acknowledged = { status: 200, body: { accepted: true } }
    expect(await reply(world, command_id, { instance_id: 'laptop-2' })).toEqual(acknowledged)
    const outcome = { ok: true, result: { archived: 'x'.repeat(300_000) } }
    expect(await reply(world, command_id, { instance_id: 'laptop-2', outcome })).toEqual(acknowledged)
    expect(await invoked).toMatchObject({ status: 200, body: { status: 'succeeded', result: outcome.result } })
    expect(await reply(world, command_id, { instance_id: 'laptop-2', outcome: { ok: true, result: 1 } })).toEqual({
      status: 200,
      body: { accepted: false },
    })

    application.controller.abort()
    await until(async () =>
      expect(await statusOf(world, 'laptop-2')).toMatchObject({
        status: 'disconnected',
        ended_reason: 'stream_closed',
      }),
    )
    expect(await invoke(world)).toMatchObject({ status: 503, body: { code: 'connector_unavailable' } })
  })

  it('fails an action with its own error', async () => {
    const world = await createOpenWorld()
    const application = await connect(world)
    await application.next()
    const invoked = invoke(world)
    const { command_id } = (await application.next())?.data ?? {}
    const error = { code: 'no_such_note', message: 'gone' }
    await reply(world, command_id, { instance_id: 'laptop-2', outcome: { ok: false, error } })
    expect(await invoked).toMatchObject({ status: 200, body: { status: 'failed', error } })
  })

  it('gets a cancel frame when the viewer disconnects', async () => {
    const world = await createOpenWorld()
    const application = await connect(world)
    await application.next()
    const viewer = new AbortController()
    const invoked = invoke(world, viewer.signal)
    const { command_id } = (await application.next())?.data ?? {}
    viewer.abort()
    expect(await application.next()).toEqual({ event: 'cancel', data: { command_id } })
    await invoked
  })

  it('gets a command whose id begins like the cancellation of another one', async () => {
    const { deliver, frames, start } = createCommandStream(() => {})
    const user = { user_id: 'alice', client_id: 'laptop' }
    const times = { deadline_at: '2026-01-01T00:00:00.000Z', remaining_ms: 1_000 }
    const command = { ...user, action: 'add', payload: null, attempt: 1, ...times }
    const cancelled = new AbortController()
    start({ ...user, connection_id: 'c', instance_id: 'i', heartbeat_ms: 1 })
    const first = deliver({ ...command, command_id: 'a' }, cancelled)
    for (const _ of ['ready', 'a']) await frames.next()
    await first
    const second = deliver({ ...command, command_id: 'cancel a' }, new AbortController())
    cancelled.abort()
    const texts = [await frames.next(), await frames.next()].map(({ value }) => new TextDecoder().decode(value))
    expect(texts.map((text) => /^event: (\w+)/m.exec(text)?.[1])).toEqual(['command', 'cancel'])
    await second
  })

  it('does not count a command that it has not read as delivered', async () => {
    const world = await createOpenWorld()
    const application = await connect(world)
    const viewer = new AbortController()
    const invoked = invoke(world, viewer.signal)
    const key = { user_id: 'alice', client_id: 'laptop' }
    const delivery = world.facilities.dispatcher.inspector
    const commands = () =>
      delivery.listCommands?.(key as never, { limit: 10, cursor: null }, { ...ASK, budget: 100 } as never)
    await until(async () => expect((await commands())?.items).toHaveLength(1))
    viewer.abort()
    await invoked
    expect(await application.next()).toMatchObject({ event: 'ready' })
    // The command was withdrawn before it was read, so neither it nor a cancel frame follows.
    await world.relay.close()
    expect(await application.next()).toEqual({ event: 'end', data: { reason: 'shutdown' } })
    expect(await application.next()).toBeUndefined()
  })

  it('keeps its connection alive by reading heartbeats', async () => {
    const world = await createOpenWorld({ heartbeatMs: 5 })
    const application = await connect(world)
    await application.next()
    const reading = application.next()
    await until(() => expect(application.comments.length).toBeGreaterThan(2))
    expect(await world.facilities.connections.currentInstance({ user_id: 'alice', client_id: 'laptop' })).toBe(
      'laptop-2',
    )
    await world.relay.close()
    expect(await reading).toEqual({ event: 'end', data: { reason: 'shutdown' } })
    expect(await statusOf(world, 'laptop-2')).toMatchObject({ status: 'disconnected', ended_reason: 'shutdown' })
  })

  it('receives the end of its stream when a newer instance takes over, and does not take over again when it reconnects', async () => {
    const world = await createOpenWorld({ heartbeatMs: 5 })
    const older = await connect(world)
    await older.next()
    const newer = await connect(world, { instance_id: 'laptop-3' })
    expect(await newer.next()).toMatchObject({ event: 'ready', data: { instance_id: 'laptop-3' } })
    expect(await older.next()).toEqual({ event: 'end', data: { reason: 'superseded' } })
    await expect(connect(world, { reconnect: true })).rejects.toMatchObject({ status: 409, code: 'stale_instance' })
    const invoked = invoke(world)
    const { command_id } = (await newer.next())?.data ?? {}
    await reply(world, command_id, { instance_id: 'laptop-3', outcome: { ok: true, result: null } })
    expect(await invoked).toMatchObject({ status: 200 })
  })

  it('receives the end of a stream that another one of the same instance replaces', async () => {
    const world = await createOpenWorld({ heartbeatMs: 5 })
    const first = await connect(world)
    await first.next()
    const second = await connect(world, { reconnect: true })
    await second.next()
    expect(await first.next()).toEqual({ event: 'end', data: { reason: 'replaced' } })
    const current = await world.facilities.connections.currentInstance({ user_id: 'alice', client_id: 'laptop' })
    expect(current).toBe('laptop-2')
  })

  it('receives the end of its stream when the registry no longer has its connection', async () => {
    const world = await createOpenWorld({ heartbeatMs: 5 })
    const application = await connect(world)
    const { connection_id } = (await application.next())?.data ?? {}
    await world.facilities.connections.disconnect(connection_id)
    expect(await application.next()).toEqual({ event: 'end', data: { reason: 'expired' } })
  })
})

describe('the relay refuses', () => {
  it('applications where it was not given the registry and the dispatcher', async () => {
    const world = await createWorld()
    for (const path of ['/clients/laptop/commands', '/clients/laptop/commands/c-1']) {
      const response = await world.ask('alice', 'POST', path, { body: BODY })
      expect([response.status, (await response.json()).code]).toEqual([501, 'operation_absent'])
    }
  })

  it('a caller that is not a host, and a body with unknown fields', async () => {
    const world = await createOpenWorld()
    expect((await world.ask(null, 'POST', '/clients/laptop/commands', { body: BODY })).status).toBe(401)
    const body = { ...BODY, instance: 'x' }
    const response = await world.ask('alice', 'POST', '/clients/laptop/commands', { body })
    expect([response.status, (await response.json()).code]).toEqual([422, 'invalid_body'])
  })

  it('more applications of a user than streamsPerHost, until one has gone', async () => {
    const world = await createOpenWorld({ streamsPerHost: 1 })
    const first = await connect(world)
    await first.next()
    await expect(connect(world, { client: 'desk' })).rejects.toMatchObject({ status: 429, code: 'share_exceeded' })
    await connect(world, { user: 'bob', client: 'desk' })
    first.controller.abort()
    await connect(world, { client: 'desk' })
  })

  it('a reply of another user or instance', async () => {
    const world = await createOpenWorld()
    const application = await connect(world)
    await application.next()
    const invoked = invoke(world)
    const { command_id } = (await application.next())?.data ?? {}
    const outcome = { ok: true, result: 'forged' }
    const refused = { status: 200, body: { accepted: false } }
    expect(await reply(world, command_id, { instance_id: 'laptop-2', outcome }, 'bob')).toEqual(refused)
    expect(await reply(world, command_id, { instance_id: 'other', outcome })).toEqual(refused)
    await reply(world, command_id, { instance_id: 'laptop-2', outcome: { ok: true, result: 'own' } })
    expect(await invoked).toMatchObject({ body: { result: 'own' } })
  })

  it('an application that cannot be attached, and disconnects it again', async () => {
    const world = await createOpenWorld({
      dispatcher: { attach: () => Promise.reject(new Error('the store is down')) },
    })
    await expect(connect(world)).rejects.toMatchObject({ status: 500, code: 'internal' })
    await until(async () => expect(await statusOf(world, 'laptop-2')).toMatchObject({ status: 'disconnected' }))
  })

  it('options of which one is missing', async () => {
    const { facilities, ...world } = await createWorld()
    const { connections, dispatcher } = facilities
    const { sites, sessions, policy, bus, connector } = world
    const ports = { sites, sessions, policy, bus, connector, ingest: facilities.ingest }
    const authenticators = { authenticateHost: () => null, authenticateViewer: () => null }
    const create = (more: object) => () => createCooperativeSiteRouter({ ...ports, ...authenticators, ...more })
    expect(create({ connections })).toThrow('Missing required option "dispatcher"')
    expect(create({ dispatcher })).toThrow('Missing required option "connections"')
    expect(create({ connections, dispatcher, connector: { call: async () => null } })).toThrow(
      'Invalid option "connector": expected createDispatchConnector()',
    )
  })
})
