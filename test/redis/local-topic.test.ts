/** What a topic hears before it knows where it stands: no more than its readers can be given, and a gap for the rest. */
import { expect, it } from 'vitest'
import type { Subscription } from '../../src/contract/event-bus.js'
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

it('gives its readers the newest of what it heard too early, and tells them what it left out', () => {
  const { local, reader } = open(2)
  for (let seq = 3; seq <= 7; seq++) local.hear(message('e', seq))
  local.place({ epoch: 'e', seq: 7 })
  expect(taken(reader)).toEqual([overflow(3, 5), 6, 7])
  expect(reader.position).toEqual({ epoch: 'e', seq: 7 })
})

it('gives its readers all of it where that is no more than they can be given', () => {
  const { local, reader } = open(3)
  for (let seq = 3; seq <= 5; seq++) local.hear(message('e', seq))
  local.place({ epoch: 'e', seq: 4 })
  expect(taken(reader)).toEqual([3, 4, 5])
})

it('does not look at what it has left out', () => {
  const { local, reported } = open(2)
  for (let seq = 1; seq <= 10; seq++) local.hear(message('e', seq, seq > 8 ? undefined : 'no event'))
  local.place({ epoch: 'e', seq: 10 })
  expect(reported).toEqual([])
})

it('takes nothing of a former epoch for a gap in this one', () => {
  const { local, reader } = open(2)
  for (let seq = 1; seq <= 5; seq++) local.hear(message('former', seq))
  for (let seq = 1; seq <= 4; seq++) local.hear(message('e', seq))
  local.place({ epoch: 'e', seq: 4 })
  expect(taken(reader)).toEqual([overflow(1, 2), 3, 4])
})
