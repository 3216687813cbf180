import { describe, expect, it, onTestFinished, vi } from 'vitest'
import * as z from 'zod'
import { createActionHandlers, createDispatchConnector } from '../../src/cooperative-site/index.js'
import type { Command } from '../../src/internal/contract/delivery-dispatch.js'
import { Refusal } from '../../src/internal/refusal.js'
import { deferred } from './deferred.js'
import { attachWaitingHandler, createWorld, invokeRequest, laptop, type World } from './world.js'

const ask = { signal: new AbortController().signal }
const COMMANDS = 'users/alice/clients/laptop/commands'

/** Alice's laptop, attached as an ordinary client that runs handlers and replies. */
async function attach(
  { facilities, connector }: World,
  onCommand?: (command: Command, signal: AbortSignal) => unknown,
) {
  const handlers = createActionHandlers()
  handlers.handle('archive_note', { parameters: z.looseObject({ id: z.int() }) }, ({ id }) => ({ archived: id }))
  const deliver = handlers.deliver(laptop, connector)
  return facilities.dispatcher.attach(laptop, (command, options) => {
    if (onCommand) return void onCommand(command, options.signal)
    return deliver(command, options)
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

/** A client whose replies are answered one after the other with what is given. */
function createReplying(answers: unknown[], remaining_ms = 1e9, acknowledged: unknown = true, signal = ask.signal) {
  const onError = vi.fn()
  const handlers = createActionHandlers({ onError })
  handlers.handle('archive_note', { parameters: z.looseObject({}) }, () => 7)
  const answer = async (given: unknown) => {
    if (given instanceof Error) throw given
    return given
  }
  const outcomes: unknown[] = []
  const deliver = handlers.deliver(laptop, {
    acknowledge: () => answer(acknowledged),
    reply: (reply) => answer(answers[outcomes.push(reply) - 1]),
  })
  const { user_id, client_id } = laptop
  const command = {
    command_id: 'c-1',
    user_id,
    client_id,
    payload: {},
    attempt: 1,
    // An instant that has passed, by the clock of this process: only the time that remains counts.
    deadline_at: '2000-01-01T00:00:00.000Z',
    remaining_ms,
  }
  return {
    outcomes,
    onError,
    handlers,
    deliver: (action = 'archive_note') => void deliver({ ...command, action }, { signal }),
  }
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

  it('ends an unanswered call as timed out and expired, and counts no cancellation', async () => {
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

  it('shows the action in pending calls and delivery while it runs, and records two messages', async () => {
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
    // A result implies the acknowledgement that the client never sent.
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

  it('shows the trace of an invocation with its call, its command and both recorded messages', async () => {
    const world = await createWorld()
    const { rpc, history, dispatcher } = world.facilities
    const delivered = deferred<Command>()
    await attach(world, delivered.resolve)
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const path = `/sessions/${world.session_id}/actions/archive_note`
    const response = world.ask('bob', 'POST', path, { body: { parameters: { id: 7 }, trace } })
    const { command_id } = await delivered.promise
    const shown = { trace, trace_id: '4bf92f3577b34da6a3ce929d0e0e4736' }
    expect(await rpc.inspector.getPending(command_id, ask)).toMatchObject(shown)
    const page = { limit: 10, cursor: null }
    const pending = await rpc.inspector.listPending({ trace_id: shown.trace_id }, page, ask)
    expect(pending.items).toMatchObject([{ correlation_id: command_id }])
    const listed = await dispatcher.inspector.listCommands?.({ trace_id: shown.trace_id }, page, ask)
    expect(listed?.items).toMatchObject([{ command_id, ...shown }])
    const outcome = { ok: true as const, result: null }
    await world.connector.reply({ ...laptop, correlation_id: command_id, outcome })
    expect((await response).status).toBe(200)
    const { items } = await history.inspector.readMessages({ stream: COMMANDS, limit: 10 }, ask)
    expect(items.map(({ kind }) => kind)).toEqual(['command', 'result'])
    for (const item of items) expect(item).toMatchObject(shown)
  })

  it.each([
    ['reads the trace of a call that another connector opened', undefined],
    ['records a result without its trace if that cannot be read', new Error('lost')],
  ])('%s', async (_, failure) => {
    const world = await createWorld()
    const { history, dispatcher } = world.facilities
    const delivered = deferred<Command>()
    await attach(world, delivered.resolve)
    const onError = vi.fn()
    const status = async (...given: Parameters<typeof dispatcher.inspector.status>) => {
      if (failure) throw failure
      return dispatcher.inspector.status(...given)
    }
    const other = createDispatchConnector({
      ...world.facilities,
      dispatcher: { ...dispatcher, inspector: { ...dispatcher.inspector, status } },
      onError,
    })
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const path = `/sessions/${world.session_id}/actions/archive_note`
    const response = world.ask('bob', 'POST', path, { body: { parameters: { id: 7 }, trace } })
    const { command_id } = await delivered.promise
    const reply = { ...laptop, correlation_id: command_id, outcome: { ok: true as const, result: null } }
    expect(await other.reply(reply)).toBe(true)
    await response
    const { items } = await history.inspector.readMessages({ stream: COMMANDS, limit: 10 }, ask)
    expect(items.find(({ kind }) => kind === 'result')?.trace).toBe(failure ? undefined : trace)
    expect(onError.mock.calls).toEqual(failure ? [[failure]] : [])
  })

  it('aborts the signal of the handler when the viewer disconnects', async () => {
    const world = await createWorld()
    const { onError, started, aborted } = await attachWaitingHandler(world, laptop)
    const viewer = new AbortController()
    const { session_id, relay } = world
    const response = relay(invokeRequest(session_id, viewer.signal))
    expect(await started).toBe(false)
    viewer.abort()
    expect(await aborted).toBe(true)
    await response
    // Stopping because of the signal is no error.
    expect(onError).not.toHaveBeenCalled()
  })

  it('runs a slow handler without holding up other commands of the client', async () => {
    const world = await createWorld()
    const handlers = createActionHandlers()
    const release = deferred<null>()
    handlers.handle('archive_note', { parameters: z.looseObject({ id: z.int() }) }, ({ id }) =>
      id === 7 ? release.promise : release.resolve(null),
    )
    await world.facilities.dispatcher.attach(laptop, handlers.deliver(laptop, world.connector))
    const client = { user_id: 'alice', client_id: 'laptop' }
    const of = (id: number) => ({ action: 'archive_note', parameters: { id }, timeout_ms: 30_000, signal: ask.signal })
    expect(await Promise.all([world.connector.call(client, of(7)), world.connector.call(client, of(8))])).toEqual([
      null,
      null,
    ])
  })

  it('retries a reply until it is answered', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { outcomes, onError, deliver } = createReplying([new Refusal('unavailable'), new Error('link lost'), true])
    deliver()
    await vi.advanceTimersByTimeAsync(500)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(outcomes).toEqual(
      [1, 2, 3].map(() => ({ ...laptop, correlation_id: 'c-1', outcome: { ok: true, result: 7 } })),
    )
    expect(onError).not.toHaveBeenCalled()
  })

  it.each([
    ['is refused for good', { error: new Refusal('payload_too_large'), remaining_ms: 1e9 }],
    ['fails after the deadline', { error: new Refusal('unavailable'), remaining_ms: 0 }],
  ])('reports a reply that %s, once', async (_what, { error, remaining_ms }) => {
    const { outcomes, onError, deliver } = createReplying([error], remaining_ms)
    deliver()
    await vi.waitFor(() => expect(onError).toHaveBeenCalledOnce(), { timeout: 300_000 })
    expect(onError).toHaveBeenCalledWith(error, expect.objectContaining({ correlation_id: 'c-1' }))
    expect(outcomes).toHaveLength(1)
  })

  it('sends no reply for a command whose signal aborted: its handler may have had its effect', async () => {
    const aborted = new AbortController()
    const { outcomes, handlers, deliver } = createReplying([true], undefined, true, aborted.signal)
    handlers.handle('wait', { parameters: z.looseObject({}) }, () => aborted.abort())
    deliver('wait')
    await vi.waitFor(() => expect(aborted.signal.aborted).toBe(true))
    const { outcomes: others, deliver: again } = createReplying([true])
    again()
    await vi.waitFor(() => expect(others).toHaveLength(1))
    expect(outcomes).toEqual([])
  })

  it('runs a command whose acknowledgement was lost, and does not reply to a repeated one', async () => {
    const lost = new Refusal('unavailable')
    const { outcomes, onError, deliver } = createReplying([true, true], undefined, lost)
    deliver()
    await vi.waitFor(() => expect(outcomes).toHaveLength(1), { timeout: 300_000 })
    expect(onError).toHaveBeenCalledWith(lost, expect.objectContaining({ action: 'archive_note' }))
    deliver()
    await vi.waitFor(() => expect(onError).toHaveBeenCalledTimes(2), { timeout: 300_000 })
    expect(outcomes).toHaveLength(1)
  })

  it('maps the error of a reply to the failure that viewers read', async () => {
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
  ])('settles both call and command, and records it, when the reply holds %s', async (_, outcome, kept) => {
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

  it.each([null, 'ok', {}, { ok: 'yes' }])('keeps waiting when %j is passed as a reply', async (none) => {
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

  it('answers connector_unavailable when the client is not connected, or has no consumer', async () => {
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

  it('is attempted once even if delivery fails, and then its outcome is unknown', async () => {
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

  it.each(['before', 'while'])('leaves no command of a viewer that disconnects %s it is dispatched', async (moment) => {
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

  it('cancels the command when the viewer disconnects', async () => {
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

  it('refuses parameters that are not JSON', async () => {
    const world = await createWorld()
    await attach(world)
    const large = world.connector.call(
      { user_id: 'alice', client_id: 'laptop' },
      { action: 'archive_note', parameters: { text: 'x'.repeat(70_000) }, timeout_ms: 1_000, signal: ask.signal },
    )
    await expect(large).rejects.toMatchObject({ name: 'ActionFailure', code: 'parameters_too_large' })
  })

  it('delivers nothing to a client that is not in the registry, even if a consumer is attached', async () => {
    const { facilities } = await createWorld()
    const delivered: unknown[] = []
    await facilities.dispatcher.attach(laptop, (command) => void delivered.push(command))
    const dispatched: unknown[] = []
    const connector = createDispatchConnector({
      ...facilities,
      connections: { currentInstance: async () => null },
      dispatcher: {
        ...facilities.dispatcher,
        dispatch(input) {
          dispatched.push(input)
          return facilities.dispatcher.dispatch(input)
        },
      },
    })
    const call = { action: 'archive_note', parameters: {}, timeout_ms: 50, signal: ask.signal }
    const client = { user_id: 'alice', client_id: 'laptop' }
    await expect(connector.call(client, call)).rejects.toMatchObject({ code: 'connector_unavailable' })
    expect([dispatched, delivered]).toEqual([[], []])
  })
})
