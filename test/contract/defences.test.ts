/** Single defences of ingest, history and bus, each of which could be weakened without another test's notice. */
import { describe, expect, it } from 'vitest'
import type { AppendInput, HistoryMessage } from '../../src/contract/history.js'
import { HistoryOptions } from '../../src/contract/history.js'
import { createIngest, createIngestOver } from '../../src/contract/ingest.js'
import { readOptions } from '../../src/contract/options.js'
import { publishOnce } from '../../src/cooperative-site/events/publish-once.js'
import { createSpilling } from '../../src/spill/spilling.js'
import { event } from './event-bus.js'

const message: AppendInput = {
  message_id: 'm',
  stream: 'log',
  kind: 'event',
  user_id: 'ann',
  client_id: 'c',
  instance_id: 'i',
}
const connections = { isCurrentInstance: async () => true }
const retained = { message: message as unknown as HistoryMessage, isNew: true }

describe('messages under way', () => {
  it.each([
    ['stream', { stream: 'other' }],
    ['user', { user_id: 'bob', stream: 'users/ann/log' }],
  ])('of one id in another %s are two', async (_, change) => {
    const streams: string[] = []
    let go = () => {}
    const held = new Promise<void>((resolve) => {
      go = resolve
    })
    const ingest = createIngestOver(connections, async ({ stream }) => {
      streams.push(stream)
      await held
      return retained
    })
    const answers = Promise.all([ingest(message), ingest({ ...message, ...change })])
    await new Promise((resolve) => setImmediate(resolve))
    go()
    expect(await answers).toEqual([
      { accepted: true, duplicate: false },
      { accepted: true, duplicate: false },
    ])
    expect(new Set(streams).size).toBe(2)
  })

  it.each([
    ['gives its claim back', true, 1],
    ['leaves the claim of somebody else', false, 0],
  ])('whose append fails %s', async (_, isFirst, times) => {
    let released = 0
    const ingest = createIngest({
      connections,
      deduplicator: { claim: async () => isFirst, release: async () => ++released > 0 },
      history: {
        append: async () => {
          throw new Error('no')
        },
      },
    })
    await expect(ingest(message)).rejects.toThrow('no')
    expect(released).toBe(times)
  })
})

describe('a bus that does not know what it has had', () => {
  const createBus = () => {
    const published: unknown[] = []
    let isDown = false
    const bus = {
      async publish(_: string, given: unknown) {
        if (isDown) throw new Error('down')
        return published.push(given)
      },
    }
    const publish = (n: number, owner = 'ann') => publishOnce(bus, { owner, topic: `t-${owner}`, event: event(n) })
    return {
      published,
      publish,
      set isDown(value: boolean) {
        isDown = value
      },
    }
  }

  it('has an event whose publication failed when it comes again', async () => {
    const bus = createBus()
    bus.isDown = true
    await expect(bus.publish(1)).rejects.toThrow('down')
    bus.isDown = false
    expect([await bus.publish(1), await bus.publish(1)]).toEqual([true, false])
    expect(bus.published).toHaveLength(1)
  })

  it('is remembered ten thousand events of, and of others those of whoever has few', async () => {
    const bus = createBus()
    await bus.publish(0, 'bob')
    for (let n = 0; n <= 10_000; n++) await bus.publish(n)
    expect([await bus.publish(0, 'bob'), await bus.publish(10_000)]).toEqual([false, false])
    expect(await bus.publish(0)).toBe(true)
  })
})

it('a message that does not fit into a record is no bound of a history', () => {
  expect(() => readOptions(HistoryOptions, { inlineBytes: 65_537 })).toThrow(RangeError)
  expect(readOptions(HistoryOptions, { inlineBytes: 65_536 }).inlineBytes).toBe(65_536)
})

describe('a payload that is put aside', () => {
  it('has so long, and is deleted at once and when it has arrived all the same', async () => {
    const deleted: string[] = []
    let arrive = () => {}
    let given: AbortSignal | undefined
    const spill = {
      put(_ref: string, _text: string, options?: { signal: AbortSignal }) {
        given = options?.signal
        return new Promise<void>((resolve) => {
          arrive = resolve
        })
      },
      get: () => null,
      delete: (ref: string) => void deleted.push(ref),
    }
    const { put } = createSpilling({ spill, inlineBytes: 1, spillMs: 5 })
    await expect(put('r', 'text')).rejects.toMatchObject({ name: 'Refusal', code: 'unavailable' })
    expect([given?.aborted, deleted]).toEqual([true, ['r']])
    arrive()
    await new Promise((resolve) => setImmediate(resolve))
    expect(deleted).toEqual(['r', 'r'])
  })
})
