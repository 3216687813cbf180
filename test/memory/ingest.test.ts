import { expect, it } from 'vitest'
import { createIngest } from '../../src/internal/contract/ingest.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { ingestBattery } from '../contract/ingest.js'

ingestBattery('memory', (options) => createMemoryFacilities(options))

const message = {
  user_id: 'ann',
  client_id: 'desk',
  instance_id: 'i',
  message_id: 'm',
  stream: 'log',
  kind: 'event',
} as const
const connections = { isCurrentInstance: async () => true }

it('loses no message with a custom history whose append and release fail', async () => {
  const held: string[] = []
  let isFailing = true
  const claimed = new Set<string>()
  const ingest = createIngest({
    connections,
    deduplicator: {
      claim: async ({ message_id }) => !claimed.has(message_id) && claimed.add(message_id).size > 0,
      release: () => Promise.reject(new Error('down')),
    },
    history: {
      append: async ({ message_id }) => {
        if (isFailing) throw new Error('down')
        if (!held.includes(message_id)) held.push(message_id)
        return undefined as never
      },
    },
  })
  await expect(ingest(message)).rejects.toThrow('down')
  isFailing = false
  expect(await ingest(message)).toEqual({ accepted: true, duplicate: true, first: null })
  expect(held).toEqual(['m'])
})
