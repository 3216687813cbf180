/** The connector when a facility does not answer: what is said to the viewer is so, and what was cut off can be finished. */
import { describe, expect, it } from 'vitest'
import { createDispatchConnector, type DispatchConnectorOptions } from '../../src/cooperative-site/index.js'
import type { Command } from '../../src/internal/contract/delivery-dispatch.js'
import { Refusal } from '../../src/internal/refusal.js'
import { deferred } from './deferred.js'
import { createWorld, laptop, type World } from './world.js'

const ask = { signal: new AbortController().signal }
const COMMANDS = 'users/alice/clients/laptop/commands'
const lost = () => new Refusal('unavailable', 'the reply is lost', { outcome: 'unknown' })
const unsent = () => new Refusal('unavailable', 'the link is down', { outcome: 'not_run' })

/** A connector whose facilities are spoilt as told, and alice's laptop, which gets what is delivered. */
async function createLossy(spoil: (facilities: World['facilities']) => Partial<DispatchConnectorOptions>) {
  const world = await createWorld()
  const { facilities } = world
  const connector = createDispatchConnector({ ...facilities, ...spoil(facilities) })
  const delivered: Command[] = []
  const first = deferred<Command>()
  await facilities.dispatcher.attach(laptop, (command) => {
    delivered.push(command)
    first.resolve(command)
  })
  const call = (timeout_ms = 1_000, signal: AbortSignal = ask.signal) =>
    connector.call(
      { user_id: 'alice', client_id: 'laptop' },
      { action: 'archive_note', parameters: { id: 7 }, timeout_ms, signal, command_id: 'k'.repeat(32) },
    )
  const reply = (correlation_id: string, result: unknown = 1, instance_id = laptop.instance_id) =>
    connector.reply({ ...laptop, instance_id, correlation_id, outcome: { ok: true, result } })
  const evidence = async () => {
    const key = { user_id: 'alice', client_id: 'laptop', command_id: 'k'.repeat(32) }
    const { items } = await facilities.history.inspector.readMessages({ stream: COMMANDS, limit: 10 }, ask)
    return {
      call: await facilities.rpc.inspector.getPending(key.command_id, ask),
      command: (await facilities.dispatcher.inspector.status(key, ask))?.terminal?.state,
      history: items.map(({ kind, payload }) => [kind, payload]),
    }
  }
  return { connector, delivered, first: first.promise, call, reply, evidence }
}

/** `work`, whose reply is lost the first `times` times: it was done all the same. */
const losing = <Args extends unknown[], T>(work: (...args: Args) => T | Promise<T>, times = 1) => {
  let left = times
  return async (...args: Args): Promise<T> => {
    const answer = await work(...args)
    if (left-- > 0) throw lost()
    return answer
  }
}

const done = {
  call: null,
  command: 'resulted',
  history: [
    ['command', { action: 'archive_note', parameters: { id: 7 } }],
    ['result', { ok: true, result: 1 }],
  ],
}

describe('a connector whose facilities do not answer', () => {
  it.each([1, 2])("returns the application's reply even if %s replies of the dispatcher are lost", async (times) => {
    const world = await createLossy(({ dispatcher }) => ({
      dispatcher: { ...dispatcher, dispatch: losing(dispatcher.dispatch, times) },
    }))
    const result = world.call()
    const { command_id } = await world.first
    // The client replies when the call knows no more than that it may have been sent.
    await new Promise((resolve) => setImmediate(resolve))
    expect(await world.reply(command_id)).toBe(true)
    expect(await result).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    const found = await world.evidence()
    expect({ ...found, history: found.history.sort() }).toEqual(done)
    expect(world.delivered).toHaveLength(1)
  })

  it('never claims that a command did not run when its admission is unknown', async () => {
    const world = await createLossy(({ dispatcher }) => ({
      dispatcher: { ...dispatcher, dispatch: losing(dispatcher.dispatch, 2) },
    }))
    await expect(world.call(500)).rejects.toMatchObject({ code: 'timeout' })
    expect(world.delivered).toHaveLength(1)
  })

  it('does not treat a refusal of the second attempt as one of the first', async () => {
    let asked = 0
    const world = await createLossy(({ dispatcher }) => ({
      dispatcher: {
        ...dispatcher,
        async dispatch() {
          throw asked++ === 0 ? lost() : unsent()
        },
      },
    }))
    await expect(world.call(500)).rejects.toMatchObject({ code: 'timeout' })
  })

  it.each<[string, (facilities: World['facilities']) => Partial<DispatchConnectorOptions>]>([
    ['who is connected', () => ({ connections: { currentInstance: () => Promise.reject(lost()) } })],
    [
      'who is connected, by a throw',
      () => ({
        connections: {
          currentInstance: () => {
            throw new Error('x')
          },
        },
      }),
    ],
    ['a call', ({ rpc }) => ({ rpc: { ...rpc, open: () => Promise.reject(unsent()) } })],
    ['a command', ({ dispatcher }) => ({ dispatcher: { ...dispatcher, dispatch: () => Promise.reject(unsent()) } })],
  ])('reports that nothing ran when it could not be dispatched for %s', async (_, spoil) => {
    const world = await createLossy(spoil)
    await expect(world.call()).rejects.toMatchObject({ name: 'Refusal', code: 'connector_unavailable' })
    expect(await world.evidence()).toEqual({ call: null, command: undefined, history: [] })
  })

  it.each<[string, (facilities: World['facilities']) => Partial<DispatchConnectorOptions>]>([
    ['call', ({ rpc }) => ({ rpc: { ...rpc, settle: losing(rpc.settle) } })],
    ['command', ({ dispatcher }) => ({ dispatcher: { ...dispatcher, settle: losing(dispatcher.settle) } })],
    [
      'command, which was not settled',
      ({ dispatcher }) => {
        let asked = 0
        const settle: typeof dispatcher.settle = (input) => {
          if (asked++ === 0) throw lost()
          return dispatcher.settle(input)
        }
        return { dispatcher: { ...dispatcher, settle } }
      },
    ],
    [
      'history',
      ({ history }) => {
        let results = 0
        const append: typeof history.append = (message) => {
          if (message.kind === 'result' && results++ === 0) throw lost()
          return history.append(message)
        }
        return { history: { append } }
      },
    ],
  ])('finishes a reply that is sent again after the answer of the %s was lost', async (_, spoil) => {
    const world = await createLossy(spoil)
    const result = world.call()
    const { command_id } = await world.first
    await expect(world.reply(command_id)).rejects.toMatchObject({ code: 'unavailable' })
    await world.reply(command_id)
    expect(await result).toBe(1)
    expect(await world.evidence()).toEqual(done)
    // Whatever comes later changes nothing any more.
    expect(await world.reply(command_id, 'another')).toBe(false)
    expect(await world.evidence()).toEqual(done)
  })

  it('records no result of another client, nor one after the end of the call', async () => {
    const world = await createLossy(() => ({}))
    const controller = new AbortController()
    const result = world.call(1_000, controller.signal)
    const { command_id } = await world.first
    expect(await world.reply(command_id, 'forged', 'laptop-2')).toBe(false)
    controller.abort()
    await expect(result).rejects.toMatchObject({ code: 'cancelled' })
    await new Promise((resolve) => setImmediate(resolve))
    expect(await world.reply(command_id, 'late')).toBe(false)
    expect(await world.evidence()).toMatchObject({ command: 'cancelled', history: [['command', {}]] })
  })

  it('treats undefined, the result of a repeated call, as no reply', async () => {
    const world = await createLossy(() => ({}))
    const result = world.call()
    const { command_id } = await world.first
    expect(await world.connector.reply({ ...laptop, correlation_id: command_id, outcome: undefined })).toBe(false)
    expect(await world.reply(command_id)).toBe(true)
    expect(await result).toBe(1)
  })

  it('retries recording a command, and never fails the call because of it', async () => {
    const told: unknown[] = []
    const world = await createLossy(() => ({
      history: { append: () => Promise.reject(new Refusal('payload_too_large')) },
      onError: (error) => told.push(error),
    }))
    const result = world.call()
    const { command_id } = await world.first
    await expect(world.reply(command_id)).rejects.toMatchObject({ code: 'payload_too_large' })
    expect(await result).toBe(1)
    expect(told).toEqual([expect.objectContaining({ code: 'payload_too_large' })])
  })

  it('does not record a command whose admission is unknown', async () => {
    const { facilities } = await createWorld()
    const appended: unknown[] = []
    const connector = createDispatchConnector({
      ...facilities,
      history: {
        append(input) {
          appended.push(input)
          return facilities.history.append(input)
        },
      },
      dispatcher: {
        ...facilities.dispatcher,
        async dispatch() {
          throw new Refusal('unavailable', 'the reply is lost', { outcome: 'unknown' })
        },
      },
    })
    const call = { action: 'archive_note', parameters: {}, timeout_ms: 50, signal: ask.signal }
    const client = { user_id: 'alice', client_id: 'laptop' }
    await expect(connector.call(client, call)).rejects.toMatchObject({ code: 'timeout' })
    expect(appended).toEqual([])
  })

  it('settles no command by a reply to a call whose state is unknown', async () => {
    const { facilities } = await createWorld()
    const { inspector: _, ...rpc } = facilities.rpc
    const connector = createDispatchConnector({ ...facilities, rpc })
    await facilities.dispatcher.attach(laptop, () => {})
    const key = { user_id: 'alice', client_id: 'laptop', command_id: 'no-action' }
    await facilities.dispatcher.dispatch({ ...key, action: 'wake_up', payload: null })
    const reply = { ...laptop, correlation_id: key.command_id, outcome: { ok: true as const, result: 1 } }
    expect(await connector.reply(reply)).toBe(false)
    expect(await facilities.dispatcher.inspector.status(key, ask)).toMatchObject({ terminal: null })
  })
})
