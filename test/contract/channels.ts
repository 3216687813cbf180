/** What both compositions publish on `node:diagnostics_channel`. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel'
import { expect, it, onTestFinished } from 'vitest'
import type { ConnectionRegistry } from '../../src/internal/contract/connections.js'
import type { CommandDispatcher } from '../../src/internal/contract/delivery-dispatch.js'
import type { RpcCorrelator } from '../../src/internal/contract/rpc.js'

interface Facilities {
  connections: Pick<ConnectionRegistry, 'connect'>
  dispatcher: CommandDispatcher
  rpc: RpcCorrelator
  close(): Promise<unknown>
}

/** Receives the messages of these channels until the end of the test. */
export function receive(...names: string[]) {
  const received: [name: string, message: Record<string, unknown>][] = []
  const on = (message: unknown, name: string | symbol) =>
    void received.push([String(name), message as Record<string, unknown>])
  for (const name of names) subscribe(name, on)
  onTestFinished(() => {
    for (const name of names) unsubscribe(name, on)
  })
  return received
}

const ended = (what: string) => `tracing:relayscope:${what}:asyncEnd`
const COMMANDS = ['dispatch', 'deliver', 'acknowledge', 'settle', 'cancel'].map(ended)

const me = { user_id: 'ada', client_id: 'desk' }
const instance = { ...me, instance_id: 'i-1' }

export function channelsBattery(over: string, make: () => Facilities): void {
  function open(): Facilities {
    const facilities = make()
    onTestFinished(async () => void (await facilities.close()))
    return facilities
  }

  it(`publishes each step of a command, without its payload, over ${over}`, async () => {
    const { connections, dispatcher } = open()
    const received = receive(...COMMANDS)
    await connections.connect({ ...instance, client_type: 'web' })
    const delivered: string[] = []
    const attached = await dispatcher.attach(instance, ({ command_id }) => void delivered.push(command_id))
    const key = { ...me, command_id: 'c-1' }
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    await dispatcher.dispatch({ ...key, action: 'sync', payload: { secret: 's3cret' } })
    await expect.poll(() => received.map(([name]) => name)).toContain(ended('deliver'))
    expect(await dispatcher.acknowledge({ ...key, instance_id: 'i-1' })).toBe(true)
    expect(await dispatcher.settle({ ...key, state: 'resulted' })).toBe(true)
    expect(await dispatcher.cancel(key)).toBe(false)
    await dispatcher.dispatch({ ...key, action: 'sync', payload: { secret: 's3cret' }, trace })
    expect(delivered).toEqual(['c-1'])
    expect(received.sort(([a], [b]) => COMMANDS.indexOf(a) - COMMANDS.indexOf(b))).toEqual([
      [ended('dispatch'), { ...key, action: 'sync', state: 'admitted', ended: null }],
      [ended('dispatch'), { ...key, action: 'sync', trace, state: 'admitted', ended: 'resulted' }],
      [ended('deliver'), { ...key, instance_id: 'i-1', action: 'sync', attempt: 1 }],
      [ended('acknowledge'), { ...key, instance_id: 'i-1', state: 'acknowledged', counted: true }],
      [ended('settle'), { ...key, state: 'resulted', counted: true }],
      [ended('cancel'), { ...key, counted: false }],
    ])
    expect(JSON.stringify(received)).not.toContain('s3cret')
    await attached.detach()
  })

  it(`publishes what a call of the dispatcher threw, and throws it, over ${over}`, async () => {
    const { dispatcher } = open()
    const received = receive(...COMMANDS)
    const key = { ...me, command_id: 'c-1' }
    const error = expect.objectContaining({ code: 'invalid_input' })
    await expect(dispatcher.dispatch({ ...key, action: '' })).rejects.toEqual(error)
    await expect(dispatcher.settle({ ...key, state: 'done' as never })).rejects.toEqual(error)
    await expect(dispatcher.cancel(null as never)).rejects.toEqual(error)
    expect(received).toEqual([
      [ended('dispatch'), { ...key, action: '', state: null, ended: null, error }],
      [ended('settle'), { ...key, state: 'done', counted: null, error }],
      [ended('cancel'), { counted: null, error }],
    ])
    await expect(dispatcher.attach(instance, 7 as never)).rejects.toEqual(error)
  })

  it(`publishes a call until its result, with its trace, over ${over}`, async () => {
    const { rpc } = open()
    const received = receive(ended('call'))
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const call = { ...me, instance_id: null, action: 'tabs.list' }
    const first = await rpc.open({ ...me, action: 'tabs.list', timeout_ms: 60_000, trace })
    const second = await rpc.open({ ...me, action: 'tabs.list', timeout_ms: 60_000 })
    expect(received).toEqual([])
    await rpc.settle(first.correlation_id, { ok: true, result: { secret: 's3cret' } })
    await first.result
    await rpc.settle(second.correlation_id, { ok: false, error: new Error('closed') })
    await expect(second.result).rejects.toThrow('closed')
    const [a, b] = [first, second].map(({ correlation_id }) => ({ ...call, correlation_id }))
    expect(received).toEqual([
      [ended('call'), { ...a, trace }],
      [ended('call'), { ...b, error: expect.any(Error) }],
    ])
    received.length = 0
    await expect(rpc.open({ ...me, action: '' })).rejects.toThrow()
    expect(received).toMatchObject([[ended('call'), { ...me, correlation_id: null, error: { code: 'invalid_input' } }]])
    expect(JSON.stringify(received)).not.toContain('s3cret')
  })

  it(`runs what is delivered in the context of who subscribed, with the trace of the command, over ${over}`, async () => {
    const { connections, dispatcher } = open()
    const inside = new AsyncLocalStorage<string | undefined>()
    const { start } = tracingChannel<string | undefined, { trace?: string }>('relayscope:deliver')
    start.bindStore(inside, ({ trace }) => trace)
    onTestFinished(() => void start.unbindStore(inside))
    await connections.connect({ ...instance, client_type: 'web' })
    const seen: unknown[] = []
    const attached = await dispatcher.attach(instance, async ({ command_id, trace }) => {
      await null
      seen.push([command_id, trace, inside.getStore()])
    })
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    await dispatcher.dispatch({ ...me, command_id: 'c-1', action: 'sync', trace })
    await expect.poll(() => seen).toEqual([['c-1', trace, trace]])
    await dispatcher.dispatch({ ...me, command_id: 'c-2', action: 'sync' })
    await expect.poll(() => seen).toContainEqual(['c-2', undefined, undefined])
    await attached.detach()
  })
}
