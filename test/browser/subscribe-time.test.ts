/** What the subscription does with time: how long it takes silence for life, and when it comes back. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createHandNetwork, event, flushPromises, listen } from './listening.js'
import { frame, ready } from './relay.js'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Moves time, and lets the client do what it does then. */
async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms)
  await flushPromises()
}

describe('subscribe', () => {
  it('reconnects after a shutdown, not before the delay sent by the relay', async () => {
    const network = createHandNetwork()
    const { heard } = listen(network)
    await flushPromises()
    await network.write(`${ready()}retry: 300\n${frame('end', { reason: 'shutdown' })}`)
    await pass(299)
    expect(network.streams).toHaveLength(1)
    // At most half as much again: jitter.
    await pass(151)
    expect(network.streams).toHaveLength(2)
    await network.write(ready())
    expect(heard.map(([what]) => what)).toEqual(['ready', 'end', 'ready'])
  })

  it('treats a connection as dead after two and a half heartbeats without a byte', async () => {
    const network = createHandNetwork()
    const { heard } = listen(network)
    await flushPromises()
    await network.write(ready({ heartbeat_ms: 200 }))
    await pass(499)
    await network.write(frame('site_event', event(1)))
    await pass(499)
    expect(network.cancelled).toBe(0)
    await pass(1)
    expect(network.cancelled).toBe(1)
    await pass(150)
    expect(network.streams).toHaveLength(2)
    await network.write(ready())
    expect(heard.map(([what]) => what)).toEqual(['ready', 'event', 'ready'])
  })

  it('treats heartbeats as a sign of life', async () => {
    const network = createHandNetwork()
    const { heard } = listen(network)
    await flushPromises()
    await network.write(ready({ heartbeat_ms: 200 }))
    for (let beat = 0; beat < 8; beat++) {
      await pass(400)
      await network.write(': heartbeat\n\n')
    }
    await network.write(frame('site_event', event(1)))
    expect(network.streams).toHaveLength(1)
    expect(heard).toHaveLength(2)
  })

  it('does not spin with a heartbeat longer than the maximum of a timer', async () => {
    const network = createHandNetwork()
    const { heard } = listen(network)
    await flushPromises()
    await network.write(ready({ heartbeat_ms: 1e12 }))
    await pass(200)
    await network.write(frame('site_event', event(1)))
    expect(heard.map(([what]) => what)).toEqual(['ready', 'event'])
    expect(network.streams).toHaveLength(1)
  })
})
