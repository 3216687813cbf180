/** What the ingest does with messages that are under way at once, and with claims of a message that is not retained. */
import { describe, expect, it } from 'vitest'
import type { AppendInput, HistoryMessage } from '../../src/internal/contract/history.js'
import { createIngest, createIngestOver } from '../../src/internal/contract/ingest.js'

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
    ['leaves another claim unchanged', false, 0],
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
