/** Calls whose application disconnects before it answers. */
import { describe, expect, it, vi } from 'vitest'
import { createDispatchConnector } from '../../src/cooperative-site/index.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'
import { deferred } from './deferred.js'
import { createWorld, laptop } from './world.js'

const ask = { signal: new AbortController().signal }
const CALL_MS = 60_000

/** Bob's call that has arrived at alice's laptop; `leave` ends the laptop's connection. */
async function createCall() {
  useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const facilities = createMemoryFacilities()
  let isDown = false
  const currentInstance: typeof facilities.connections.currentInstance = async (client) => {
    if (isDown) throw new Error('the registry is down')
    return facilities.connections.currentInstance(client)
  }
  const connector = createDispatchConnector({ ...facilities, connections: { currentInstance } })
  const world = await createWorld({ connector }, facilities)
  const arrived = deferred<string>()
  await facilities.dispatcher.attach(laptop, ({ command_id }) => arrived.resolve(command_id))
  const ended = vi.fn()
  const path = `/sessions/${world.session_id}/actions/archive_note`
  const response = world.ask('bob', 'POST', path, { body: { parameters: { id: 7 }, timeout_ms: CALL_MS } })
  void response.then(ended)
  const command_id = await arrived.promise
  const page = { limit: 1, cursor: null }
  const { items } = await facilities.connections.inspector.listConnections({}, page, ask)
  const { connection_id } = items[0] as { connection_id: string }
  return {
    facilities,
    connector,
    response,
    ended,
    command_id,
    leave: () => facilities.connections.disconnect(connection_id, 'stream_closed'),
    fail: (now: boolean) => {
      isDown = now
    },
    connect: (instance_id: string) =>
      facilities.connections.connect({ ...laptop, instance_id, client_type: 'console' }),
    reply: () => connector.reply({ ...laptop, correlation_id: command_id, outcome: { ok: true, result: 7 } }),
  }
}

describe('a call whose application disconnects', () => {
  it('ends with an unknown outcome when it does not come back, and its command is cancelled', async () => {
    const { facilities, response, ended, command_id, leave, reply } = await createCall()
    await leave()
    await vi.advanceTimersByTimeAsync(1_900)
    expect(ended).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1_500)
    expect(ended).toHaveBeenCalledOnce()
    const answer = await response
    expect(answer.status).toBe(504)
    expect(await answer.json()).toMatchObject({
      title: 'The application disconnected before it answered',
      code: 'application_disconnected',
      outcome: 'unknown',
    })
    const key = { user_id: 'alice', client_id: 'laptop', command_id }
    expect((await facilities.dispatcher.inspector.status(key, ask))?.terminal).toMatchObject({
      state: 'cancelled',
      reason: 'application_disconnected',
    })
    expect(await facilities.rpc.inspector.getPending(command_id, ask)).toBeNull()
    expect(await reply()).toBe(false)
  })

  it.each(['laptop-1', 'laptop-2'])('waits for its answer when it comes back in time, as %s', async (instance_id) => {
    const { response, ended, leave, connect, reply } = await createCall()
    await leave()
    await vi.advanceTimersByTimeAsync(1_900)
    await connect(instance_id)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(ended).not.toHaveBeenCalled()
    expect(await reply()).toBe(true)
    expect(await (await response).json()).toMatchObject({ status: 'succeeded', result: 7 })
    // Nothing watches the client of a call that has ended.
    expect(ourTimers().filter((place) => place.includes('client-watch'))).toEqual([])
  })

  it('waits while the registry does not answer: that says nothing of the application', async () => {
    const { ended, response, fail, reply } = await createCall()
    fail(true)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(ended).not.toHaveBeenCalled()
    fail(false)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await reply()).toBe(true)
    expect((await response).status).toBe(200)
  })
})
