/**
 * What a topic receives before its position is known: its readers get at most what fits in the ring, and a gap for the
 * rest.
 */
import { MessageChannel } from 'node:worker_threads'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Subscription } from '../../src/internal/contract/event-bus.js'
import { createLocalTopic } from '../../src/redis/event-bus/local-topic.js'
import { event } from '../contract/event-bus.js'

const message = (epoch: string, seq: number, text = JSON.stringify(event(seq))) => `${epoch}\n${seq}\n${text}`

function open(queueSize: number) {
  const reported: unknown[] = []
  const local = createLocalTopic('t', queueSize, (error) => reported.push(error))
  return { local, reported, reader: local.topic.subscribe() }
}

/** All that a reader is given now: gaps, and what events carry. */
function taken(reader: Subscription): unknown[] {
  const items: unknown[] = []
  for (let next = reader.take(); next; next = reader.take())
    items.push(...(next.type === 'gap' ? [next] : next.events.map(({ data }) => data)))
  return items
}

const overflow = (first_seq: number, last_seq: number) => ({
  type: 'gap',
  reason: 'overflow',
  dropped: last_seq - first_seq + 1,
  first_seq,
  last_seq,
})

it('drops unknown fields of another writer', () => {
  const { local, reader } = open(2)
  local.place({ epoch: 'e', seq: 0 })
  local.hear(message('e', 1, JSON.stringify({ ...event(1), secret: 'x' })))
  expect(reader.take()).toEqual({ type: 'run', events: [{ ...event(1), seq: 1 }] })
})

it('gives its readers the newest early messages, and a gap for the dropped ones', () => {
  const { local, reader } = open(2)
  for (let seq = 3; seq <= 7; seq++) local.hear(message('e', seq))
  local.place({ epoch: 'e', seq: 7 })
  expect(taken(reader)).toEqual([overflow(3, 5), 6, 7])
  expect(reader.position).toEqual({ epoch: 'e', seq: 7 })
})

it('gives its readers all early messages if they fit', () => {
  const { local, reader } = open(3)
  for (let seq = 3; seq <= 5; seq++) local.hear(message('e', seq))
  local.place({ epoch: 'e', seq: 4 })
  expect(taken(reader)).toEqual([3, 4, 5])
})

it('gives a reader no event published here before it subscribed, although the position was unknown', () => {
  const { local, reader } = open(3)
  local.hear(message('e', 4))
  local.topic.published({ epoch: 'e', seq: 4 })
  const late = local.topic.subscribe()
  local.place({ epoch: 'e', seq: 4 })
  expect([taken(late), late.position]).toEqual([[], { epoch: 'e', seq: 4 }])
  local.hear(message('e', 5))
  expect([taken(reader), taken(late)]).toEqual([[4, 5], [5]])
})

it('gives a reader all events of another epoch than the one published here', () => {
  const { local } = open(3)
  local.topic.published({ epoch: 'former', seq: 9 })
  const late = local.topic.subscribe()
  local.place({ epoch: 'e', seq: 0 })
  local.hear(message('e', 1))
  const next = local.topic.subscribe()
  local.hear(message('e', 2))
  expect([taken(late), taken(next)]).toEqual([[1, 2], [2]])
  local.topic.published({ epoch: 'e', seq: 9 })
  local.hear(message('later', 1))
  const last = local.topic.subscribe()
  local.hear(message('later', 2))
  expect(taken(last)).toEqual([2])
})

it('does not parse dropped messages', () => {
  const { local, reported } = open(2)
  for (let seq = 1; seq <= 10; seq++) local.hear(message('e', seq, seq > 8 ? undefined : 'no event'))
  local.place({ epoch: 'e', seq: 10 })
  expect(reported).toEqual([])
})

it('reports no gap because of an earlier epoch', () => {
  const { local, reader } = open(2)
  for (let seq = 1; seq <= 5; seq++) local.hear(message('former', seq))
  for (let seq = 1; seq <= 4; seq++) local.hear(message('e', seq))
  local.place({ epoch: 'e', seq: 4 })
  expect(taken(reader)).toEqual([overflow(1, 2), 3, 4])
})

describe('when the store is ahead', () => {
  const behind = { epoch: 'e', seq: 2 }
  const lost = (first_seq: number, last_seq: number) => ({
    type: 'gap',
    reason: 'link_lost',
    dropped: last_seq - first_seq + 1,
    first_seq,
    last_seq,
  })

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] })
    return () => void vi.useRealTimers()
  })

  function standing() {
    const opened = open(10)
    opened.local.place({ epoch: 'e', seq: 0 })
    return opened
  }

  it('does not report a loss after two comparisons in quick succession', () => {
    const { local, reader } = standing()
    local.compare(behind)
    vi.advanceTimersByTime(999)
    local.compare(behind)
    for (const seq of [1, 2]) local.hear(message('e', seq))
    expect(taken(reader)).toEqual([1, 2])
  })

  it('reports as lost what was missing for a second, however often it compared, and nothing newer', () => {
    const { local, reader } = standing()
    local.compare(behind)
    vi.advanceTimersByTime(500)
    local.compare({ epoch: 'e', seq: 3 })
    vi.advanceTimersByTime(500)
    local.compare({ epoch: 'e', seq: 4 })
    expect(taken(reader)).toEqual([lost(1, 2)])
    local.hear(message('e', 3))
    expect(taken(reader)).toEqual([3])
    vi.advanceTimersByTime(1_000)
    local.compare({ epoch: 'e', seq: 4 })
    expect(taken(reader)).toEqual([lost(4, 4)])
  })

  it('reports no loss because of an event that was missing in an earlier epoch', () => {
    const { local, reader } = standing()
    local.compare(behind)
    local.hear(message('f', 1))
    vi.advanceTimersByTime(1_000)
    local.compare({ epoch: 'f', seq: 1 })
    local.hear(message('f', 2))
    expect(taken(reader).slice(1)).toEqual([1, 2])
  })
})

describe('after a reconnect', () => {
  const gap = { type: 'gap', reason: 'link_lost' }

  function standing() {
    const opened = open(10)
    opened.local.place({ epoch: 'e', seq: 0 })
    return opened
  }

  it('does not report events in transit as lost', async () => {
    const { local, reader } = standing()
    const relinked = local.relink({ epoch: 'e', seq: 2 })
    expect(taken(reader)).toEqual([])
    local.hear(message('e', 1))
    local.hear(message('e', 2))
    await relinked
    expect(taken(reader)).toEqual([1, 2])
    expect(reader.dropped).toBe(0)
  })

  it('reports missing events after a second, once', async () => {
    const { local, reader } = standing()
    const relinked = local.relink({ epoch: 'e', seq: 2 })
    local.hear(message('e', 1))
    await relinked
    expect(taken(reader)).toEqual([1, { ...gap, dropped: 1, first_seq: 2, last_seq: 2 }])
    local.compare({ epoch: 'e', seq: 2 })
    expect(taken(reader)).toEqual([])
  })

  it('does not report events as lost that arrived while the process was suspended', async () => {
    // Like data in a socket, a message of a port is processed after due timers.
    const { port1, port2 } = new MessageChannel()
    onTestFinished(() => port1.close())
    const { local, reader } = standing()
    port2.once('message', () => local.hear(message('e', 1)))
    await new Promise(setImmediate)
    const relinked = local.relink({ epoch: 'e', seq: 1 })
    port1.postMessage('x')
    for (const end = performance.now() + 1_100; performance.now() < end; );
    await relinked
    expect(taken(reader)).toEqual([1])
    expect(reader.dropped).toBe(0)
  })

  it('reports immediately that the store restarted its count', async () => {
    const { local, reader } = standing()
    await local.relink({ epoch: 'f', seq: 3 })
    expect(taken(reader)).toEqual([{ ...gap, dropped: null, first_seq: null, last_seq: null }])
    expect(reader.position).toEqual({ epoch: 'f', seq: 3 })
  })

  it('does not return to an epoch that has ended in the meantime', async () => {
    const { local, reader } = standing()
    const relinked = local.relink({ epoch: 'e', seq: 2 })
    local.hear(message('f', 1))
    await relinked
    expect(taken(reader)).toEqual([{ ...gap, dropped: null, first_seq: null, last_seq: null }, 1])
    expect(reader.position).toEqual({ epoch: 'f', seq: 1 })
  })
})
