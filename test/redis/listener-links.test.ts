/** A listener whose client fails: it recovers, and reports that messages were missed. */
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { createEcho, listen } from '../../src/redis/store/listener.js'
import type { Store } from '../../src/redis/store/store.js'
import { FakeClient } from './fake-subscriber.js'

beforeEach(() => {
  vi.useFakeTimers()
  return () => void vi.useRealTimers()
})

const second = () => vi.advanceTimersByTimeAsync(1_000)

/** A listener over `fake`, whose echoes come while it is not deaf. */
function open(fake: FakeClient) {
  const state = { isDeaf: false }
  const store = {
    client: fake.client,
    commandTimeoutMs: 5_000,
    key: (shard: number, ...parts: string[]) => [shard, ...parts].join(':'),
    async command([, channel = '', message = '']: string[]) {
      if (!state.isDeaf) fake.say(channel, message)
      return 1
    },
  } as unknown as Store
  const told: boolean[] = []
  const listening = listen(store, (isUp) => told.push(isUp))
  onTestFinished(() => listening.close())
  return { listening, state, told }
}

/** Lets it find out that it is deaf. */
async function deafen(fake: FakeClient, state: { isDeaf: boolean }) {
  const links = fake.links.length
  state.isDeaf = true
  while (fake.links.length === links) await second()
  state.isDeaf = false
}

it('is reopened however its client ends', async () => {
  const fake = new FakeClient()
  const { listening, state } = open(fake)
  const heard: string[] = []
  await listening.subscribe(0, 'a', (message) => heard.push(message))
  fake.isEnded = true
  await deafen(fake, state)
  await second()
  expect(listening.isHearing('a')).toBe(true)
  fake.say('a', 'x')
  expect(heard).toEqual(['x'])
})

it('reports that it is connected when a failed subscription on a new connection succeeds', async () => {
  const fake = new FakeClient()
  const { listening, state, told } = open(fake)
  for (const channel of ['a', 'b']) await listening.subscribe(0, channel, () => {})
  fake.answer = async (channel) => {
    if (channel === 'b') throw new Error('not now')
  }
  await deafen(fake, state)
  expect(told).toEqual([false, true])
  await second()
  expect(told).toEqual([false, true])
  fake.answer = async () => {}
  await second()
  expect(told).toEqual([false, true, true])
  await second()
  expect(told).toEqual([false, true, true])
})

it('leaves the result of a first subscription to its caller', async () => {
  const fake = new FakeClient()
  const { listening, told } = open(fake)
  await listening.subscribe(0, 'a', () => {})
  let asked = 0
  let go: (value?: unknown) => void = () => {}
  const answered = new Promise((resolve) => {
    go = resolve
  })
  fake.answer = () => {
    asked++
    return answered
  }
  const subscribed = listening.subscribe(0, 'b', () => {})
  await second()
  go()
  await subscribed
  expect([asked, told]).toEqual([1, []])
})

it('waits at most two seconds for a connection that is being reopened', async () => {
  const fake = new FakeClient()
  const { listening, state } = open(fake)
  for (let n = 0; n < 500; n++) await listening.subscribe(0, `c${n}`, () => {})
  fake.answer = () => new Promise(() => {})
  await deafen(fake, state)
  let isOver = false
  listening.renewed().then(() => {
    isOver = true
  })
  await vi.advanceTimersByTimeAsync(1_999)
  expect(isOver).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(isOver).toBe(true)
})

it('counts a missed probe once while it cannot send another', async () => {
  let isAway = false
  const command = async () => {
    if (isAway) throw new Error('away')
    return 1
  }
  const echo = createEcho({ command } as unknown as Store, 'echo')
  await echo.send()
  isAway = true
  for (let n = 0; n < 5; n++) await echo.send()
  expect(echo.isLost).toBe(false)
  isAway = false
  for (let n = 0; n < 3; n++) await echo.send()
  expect(echo.isLost).toBe(true)
})

it("waits for a subscription as long as the store's command timeout", async () => {
  const fake = new FakeClient()
  const { listening } = open(fake)
  fake.answer = () => new Promise(() => {})
  const subscribed = listening.subscribe(0, 'a', () => {}).catch((error: unknown) => error)
  let outcome: unknown
  void subscribed.then((error) => {
    outcome = error
  })
  await vi.advanceTimersByTimeAsync(4_999)
  expect(outcome).toBeUndefined()
  await vi.advanceTimersByTimeAsync(1)
  expect(outcome).toMatchObject({ code: 'unavailable', detail: 'subscription timed out after 5000 ms' })
})
