/** The topics of one node with a store whose replies are late or missing. */
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { createEventTopics } from '../../src/redis/event-bus/topics.js'
import { shardOf } from '../../src/redis/store/keys.js'
import type { StoreReply } from '../../src/redis/store/reply.js'
import type { Store } from '../../src/redis/store/store.js'
import { event } from '../contract/event-bus.js'
import { FakeClient } from './fake-subscriber.js'

const SHARDS = 2
const LOOK_MS = 2_000

beforeEach(() => {
  vi.useFakeTimers()
  return () => void vi.useRealTimers()
})

/** A name in `shard`. */
function nameIn(shard: number): string {
  for (let n = 0; ; n++) if (shardOf(`t${n}`, SHARDS) === shard) return `t${n}`
}

/** Opens topics, at most one per shard, whose store positions come from `answer`. */
function open() {
  const fake = new FakeClient()
  const errors: unknown[] = []
  const state = { answer: async (_shard: number): Promise<StoreReply> => ['e', 0, 0] }
  const store = {
    client: fake.client,
    deploymentId: 'd',
    now: undefined,
    key: (shard: number, ...parts: string[]) => [shard, ...parts].join(':'),
    async command([, channel = '', message = '']: string[]) {
      fake.say(channel, message)
      return 1
    },
    claimShards: async () => SHARDS,
    heldShards: async () => SHARDS,
    fenced: (shard: number) => state.answer(shard),
    onError: (error: unknown) => errors.push(error),
  } as unknown as Store
  const topics = createEventTopics({ store, queueSize: 10, newId: () => 'fresh' })
  onTestFinished(() => topics.close())
  return { fake, errors, state, topics }
}

/** A reply of the store that is sent when released. */
function later(reply: StoreReply) {
  let go = () => {}
  const answer = new Promise<StoreReply>((resolve) => {
    go = () => resolve(reply)
  })
  return { answer: () => answer, go }
}

const said = (epoch: string, seq: number) => `${epoch}\n${seq}\n${JSON.stringify(event(seq))}`

it('compares the other shards if one fails, in every pass and after a reconnect', async () => {
  const { fake, errors, state, topics } = open()
  const [lost, healthy] = [0, 1].map((shard) => topics.open(nameIn(shard)))
  for (const local of [lost, healthy]) await topics.catchUp(local as never)
  const reader = healthy?.topic.subscribe()
  let seq = 1
  state.answer = async (shard) => {
    if (shard === 0) throw new Error('lost')
    return ['e', seq, 0]
  }
  await vi.advanceTimersByTimeAsync(2 * LOOK_MS)
  expect(reader?.take()).toMatchObject({ type: 'gap', first_seq: 1, last_seq: 1 })
  expect(errors.length).toBeGreaterThan(0)
  seq = 2
  // The first time is the link's own.
  for (const _ of [1, 2]) fake.links[0]?.emit('ready')
  await vi.advanceTimersByTimeAsync(1_001)
  expect(reader?.take()).toMatchObject({ type: 'gap', first_seq: 2, last_seq: 2 })
})

it('does not return to an epoch that ended during the query', async () => {
  const { fake, state, topics } = open()
  const local = topics.open('t')
  await topics.catchUp(local)
  const { answer, go } = later(['e', 0, 0])
  state.answer = answer
  await vi.advanceTimersByTimeAsync(LOOK_MS)
  fake.say(local.channel, said('f', 1))
  go()
  await vi.advanceTimersByTimeAsync(0)
  expect(local.topic.position).toEqual({ epoch: 'f', seq: 1 })
})

it('queries once about messages that are late together', async () => {
  const { fake, state, topics } = open()
  state.answer = async () => ['e', 5, 0]
  const local = topics.open('t')
  await topics.catchUp(local)
  const { answer, go } = later(['e', 5, 0])
  let asked = 0
  state.answer = () => {
    asked++
    return answer()
  }
  for (const seq of [1, 2, 3]) fake.say(local.channel, said('e', seq))
  await vi.advanceTimersByTimeAsync(0)
  expect(asked).toBe(1)
  go()
  await vi.advanceTimersByTimeAsync(0)
  fake.say(local.channel, said('e', 4))
  await vi.advanceTimersByTimeAsync(0)
  expect(asked).toBe(2)
})

it('keeps a topic while a caller waits for it, and forgets it if no reader comes then', async () => {
  const { state, topics } = open()
  const local = topics.open('t')
  await topics.catchUp(local)
  const { answer, go } = later(['e', 0, 0])
  // Its own query gets a reply.
  state.answer = answer
  const prepared = topics.catchUp(local)
  await vi.advanceTimersByTimeAsync(0)
  state.answer = async () => ['e', 0, 0]
  await vi.advanceTimersByTimeAsync(60_000)
  go()
  await prepared
  expect(topics.find('t')).toBe(local)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(topics.find('t')).toBe(local)
  await vi.advanceTimersByTimeAsync(2 * LOOK_MS)
  expect(topics.find('t')).toBeUndefined()
})
