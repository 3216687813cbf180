import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Command } from '../../src/contract/delivery-dispatch.js'
import { createActionHandlers, createDispatchConnector } from '../../src/cooperative-site/index.js'
import { deferred } from './deferred.js'
import { createWorld, laptop, type World } from './world.js'

const ask = { signal: new AbortController().signal }
const COMMANDS = 'users/alice/clients/laptop/commands'

/** Alice's laptop, attached as an ordinary client that runs handlers and replies. */
async function attach(
  { facilities, connector }: World,
  onCommand?: (command: Command, signal: AbortSignal) => unknown,
) {
  const handlers = createActionHandlers()
  handlers.handle('archive_note', { parameters: z.looseObject({ id: z.int() }) }, ({ id }) => ({ archived: id }))
  return facilities.dispatcher.attach(laptop, async (command, { signal }) => {
    if (onCommand) return void onCommand(command, signal)
    const { command_id, action, payload } = command
    await facilities.dispatcher.acknowledge({ ...laptop, command_id })
    const call = { action, parameters: payload as Record<string, unknown>, correlation_id: command_id }
    const outcome = await handlers.execute(call, { signal })
    await connector.reply({ ...laptop, correlation_id: command_id, outcome })
  })
}

const call = (
  { connector }: World,
  change: { signal?: AbortSignal; timeout_ms?: number; command_id?: string } = {},
) => {
  return connector.call(
    { user_id: 'alice', client_id: 'laptop' },
    { action: 'archive_note', parameters: { id: 7 }, timeout_ms: 1_000, signal: ask.signal, ...change },
  )
}

describe('the connector over dispatcher and correlator', () => {
  it('carries an action from a viewer to the handler and its result back', async () => {
    const world = await createWorld()
    await attach(world)
    const path = `/sessions/${world.session_id}/actions/archive_note`
    const response = await world.ask('bob', 'POST', path, { body: { parameters: { id: 7 } } })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      action: 'archive_note',
      status: 'succeeded',
      result: { archived: 7 },
    })
  })

  it('ends what nobody answers as timed out and expired, and cancels it for nobody', async () => {
    const world = await createWorld()
    const { rpc, dispatcher } = world.facilities
    await attach(world, () => {})
    const path = `/sessions/${world.session_id}/actions/archive_note`
    const response = await world.ask('bob', 'POST', path, { body: { parameters: { id: 7 }, timeout_ms: 100 } })
    expect(await response.json()).toMatchObject({ code: 'action_timeout' })
    await expect.poll(() => rpc.inspector.summary?.(ask)).toMatchObject({ counters: { timed_out: 1, cancelled: 0 } })
    const ends = async () => {
      await dispatcher.reconcile()
      const listed = await dispatcher.inspector.listCommands?.({}, { limit: 10, cursor: null }, ask)
      return listed?.items.map(({ state }) => state)
    }
    await expect.poll(ends).toEqual(['expired'])
  })

  it('shows the action in the pending calls and in delivery while it runs, and leaves two messages', async () => {
    const world = await createWorld()
    const { rpc, dispatcher, history } = world.facilities
    const delivered = deferred<Command>()
    await attach(world, delivered.resolve)
    const result = call(world)
    const command = await delivered.promise
    expect(command).toMatchObject({ action: 'archive_note', payload: { id: 7 }, attempt: 1 })
    const { command_id } = command
    expect(await rpc.inspector.getPending(command_id, ask)).toMatchObject({
      correlation_id: command_id,
      action: 'archive_note',
      instance_id: 'laptop-1',
    })
    const key = { user_id: 'alice', client_id: 'laptop', command_id }
    expect(await dispatcher.inspector.status(key, ask)).toMatchObject({
      admission: { state: 'admitted' },
      terminal: null,
    })
    const reply = { ...laptop, correlation_id: command_id, outcome: { ok: true as const, result: { archived: 7 } } }
    expect(await world.connector.reply({ ...reply, instance_id: 'laptop-0' })).toBe(false)
    expect(await world.connector.reply({ ...reply, user_id: 'mallory' })).toBe(false)
    expect(await world.connector.reply(reply)).toBe(true)
    expect(await world.connector.reply(reply)).toBe(false)
    expect(await result).toEqual({ archived: 7 })
    expect(await rpc.inspector.getPending(command_id, ask)).toBeNull()
    // Whoever has answered has taken it, though he never said so by itself.
    expect(await dispatcher.inspector.status(key, ask)).toMatchObject({
      acknowledgement: { state: 'acknowledged', instance_id: 'laptop-1' },
      terminal: { state: 'resulted' },
    })
    const { items } = await history.inspector.readMessages({ stream: COMMANDS, limit: 10 }, ask)
    expect(items).toMatchObject([
      { kind: 'command', message_id: command_id, payload: { action: 'archive_note', parameters: { id: 7 } } },
      { kind: 'result', message_id: `${command_id}.result`, payload: { ok: true, result: { archived: 7 } } },
    ])
  })

  it('turns the error of a reply into the failure that viewers read', async () => {
    const world = await createWorld()
    await attach(world, async ({ command_id }) =>
      world.connector.reply({
        ...laptop,
        correlation_id: command_id,
        outcome: { ok: false, error: { code: 'note_locked', message: 'In use' } },
      }),
    )
    await expect(call(world)).rejects.toMatchObject({
      name: 'ActionFailure',
      code: 'note_locked',
      publicMessage: 'In use',
    })
  })

  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  const failure = (code: string, message: string | null = null) => ({ ok: false, error: { code, message } })
  it.each<[string, unknown, { ok: boolean }]>([
    ['a failure without an error', { ok: false }, failure('handler_error')],
    ['an error that is a text', { ok: false, error: 'secret' }, failure('handler_error')],
    ['an error that was thrown', { ok: false, error: new Error('secret') }, failure('handler_error')],
    ['an error whose code is a text', { ok: false, error: { code: 'So sorry!', message: 'm' } }, failure('other', 'm')],
    ['a BigInt', { ok: true, result: 1n }, failure('handler_error')],
    ['a cycle', { ok: true, result: cyclic }, failure('handler_error')],
    ['more than a history keeps', { ok: true, result: 'x'.repeat(17_000_000) }, failure('result_too_large')],
    ['no result', { ok: true }, { ok: true, result: null } as { ok: true }],
  ])('settles call and command alike, and records it, when the reply holds %s', async (_, outcome, kept) => {
    const world = await createWorld()
    const { dispatcher, history } = world.facilities
    const delivered = deferred<Command>()
    await attach(world, delivered.resolve)
    // The longest of these replies alone may take a busy machine more than a second to write.
    const result = call(world, { timeout_ms: 60_000 }).then(
      (value) => ({ ok: true, result: value }),
      ({ code, publicMessage }) => failure(code, publicMessage),
    )
    const { command_id } = await delivered.promise
    const reply = { ...laptop, correlation_id: command_id, outcome: outcome as never }
    expect(await world.connector.reply(reply)).toBe(true)
    expect(await result).toEqual(kept)
    const key = { user_id: 'alice', client_id: 'laptop', command_id }
    expect(await dispatcher.inspector.status(key, ask)).toMatchObject({
      terminal: { state: kept.ok ? 'resulted' : 'failed' },
    })
    const { items } = await history.inspector.readMessages({ stream: COMMANDS, limit: 10 }, ask)
    expect(items).toMatchObject([{ kind: 'command' }, { kind: 'result', payload: kept }])
  })

  it.each([null, 'ok', {}, { ok: 'yes' }])('goes on waiting when %j is handed in as a reply', async (none) => {
    const world = await createWorld()
    const delivered = deferred<Command>()
    await attach(world, delivered.resolve)
    const result = call(world)
    const { command_id } = await delivered.promise
    const reply = { ...laptop, correlation_id: command_id, outcome: none as never }
    await expect(world.connector.reply(reply)).rejects.toMatchObject({ code: 'invalid_input' })
    expect(await world.connector.reply({ ...reply, outcome: { ok: true, result: 1 } })).toBe(true)
    expect(await result).toBe(1)
  })

  it('answers connector_unavailable when the client is not connected, or connected and not waiting', async () => {
    const world = await createWorld()
    await expect(call(world)).rejects.toMatchObject({ code: 'connector_unavailable' })
    const other = world.connector.call(
      { user_id: 'alice', client_id: 'phone' },
      { action: 'archive_note', parameters: {}, timeout_ms: 1_000, signal: ask.signal },
    )
    await expect(other).rejects.toMatchObject({ code: 'connector_unavailable' })
    await expect(call(world)).rejects.toMatchObject({ code: 'connector_unavailable' })
    const { rpc, history } = world.facilities
    expect((await rpc.inspector.listPending({}, { limit: 10, cursor: null }, ask)).items).toEqual([])
    // What was never admitted has never happened.
    expect((await history.inspector.readMessages({ stream: COMMANDS, limit: 10 }, ask)).items).toEqual([])
  })

  it('is attempted once, though the hand-over fails, and then its outcome is unknown', async () => {
    const world = await createWorld()
    const delivered = deferred<Command>()
    await attach(world, (command) => {
      delivered.resolve(command)
      throw new Error('the socket broke')
    })
    const result = call(world, { timeout_ms: 1_000 })
    result.catch(() => {})
    const { command_id } = await delivered.promise
    await new Promise((resolve) => setImmediate(resolve))
    const key = { user_id: 'alice', client_id: 'laptop', command_id }
    expect(await world.facilities.dispatcher.inspector.status(key, ask)).toMatchObject({
      attempts: { count: 1 },
      terminal: { state: 'failed', reason: 'attempts_exhausted' },
    })
    await expect(result).rejects.toMatchObject({ code: 'timeout' })
  })

  it.each([
    'before',
    'while',
  ])('sends nothing that outlives a viewer who hangs up %s it is dispatched', async (moment) => {
    const world = await createWorld()
    const { rpc, dispatcher, history } = world.facilities
    const controller = new AbortController()
    const dispatched: string[] = []
    const connector = createDispatchConnector({
      ...world.facilities,
      rpc: {
        ...rpc,
        async open(input) {
          const call = await rpc.open(input)
          if (moment === 'before') controller.abort()
          return call
        },
      },
      dispatcher: {
        ...dispatcher,
        async dispatch(command) {
          dispatched.push(command.command_id)
          const status = await dispatcher.dispatch(command)
          controller.abort()
          return status
        },
      },
    })
    await attach(world, () => {})
    await expect(call({ ...world, connector }, { signal: controller.signal })).rejects.toMatchObject({
      code: 'cancelled',
    })
    await new Promise((resolve) => setImmediate(resolve))
    const { items } = await history.inspector.readMessages({ stream: COMMANDS, limit: 10 }, ask)
    expect(items).toHaveLength(dispatched.length)
    if (moment === 'before') expect(dispatched).toEqual([])
    else {
      const key = { user_id: 'alice', client_id: 'laptop', command_id: dispatched[0] as string }
      expect(await dispatcher.inspector.status(key, ask)).toMatchObject({ terminal: { state: 'cancelled' } })
    }
  })

  it('cancels the command when the viewer hangs up', async () => {
    const world = await createWorld()
    const controller = new AbortController()
    let seen: AbortSignal | undefined
    await attach(world, (_, signal) => {
      seen = signal
      controller.abort()
    })
    await expect(call(world, { signal: controller.signal })).rejects.toMatchObject({ code: 'cancelled' })
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen?.aborted).toBe(true)
  })

  it('runs a command of the same id once: while it is under way, and after it has ended', async () => {
    const world = await createWorld()
    const command_id = 'k'.repeat(32)
    let runs = 0
    await attach(world, async () => {
      runs++
      await expect(call(world, { command_id })).rejects.toMatchObject({ code: 'idempotency_in_progress' })
      await world.connector.reply({ ...laptop, correlation_id: command_id, outcome: { ok: true, result: 1 } })
    })
    expect(await call(world, { command_id })).toBe(1)
    // At once: a call of that id has no reply to wait for.
    await expect(call(world, { command_id, timeout_ms: 120_000 })).rejects.toMatchObject({ code: 'timeout' })
    expect(runs).toBe(1)
  })

  it('refuses parameters that no command can carry', async () => {
    const world = await createWorld()
    await attach(world)
    const large = world.connector.call(
      { user_id: 'alice', client_id: 'laptop' },
      { action: 'archive_note', parameters: { text: 'x'.repeat(70_000) }, timeout_ms: 1_000, signal: ask.signal },
    )
    await expect(large).rejects.toMatchObject({ name: 'ActionFailure', code: 'parameters_too_large' })
  })
})
