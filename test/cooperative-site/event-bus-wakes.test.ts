/** A host whose wake throws: what that does to the others who read the topic. */
import { expect, it, onTestFinished } from 'vitest'
import { createTopic } from '../../src/internal/event-ring/topic.js'
import { flushPromises } from '../bad-hooks.js'
import { event } from '../contract/event-bus.js'

it('wakes the readers after one whose wake() throws, and the same one again', async () => {
  const topic = createTopic({ queueSize: 100, position: { epoch: 'a', seq: 0 } })
  const surfaced: unknown[] = []
  const others = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', (error) => void surfaced.push(error.message))
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException')
    for (const other of others) process.on('uncaughtException', other)
  })
  const wakes = [0, 0]
  const readers = [0, 1].map((n) =>
    topic.subscribe({
      wake() {
        wakes[n] = (wakes[n] as number) + 1
        throw new Error(`mistake ${n}`)
      },
    }),
  )
  const waiting = topic.subscribe().next()
  for (const seq of [1, 2]) {
    for (const reader of readers) expect(reader.take()).toBeUndefined()
    topic.append({ ...event(seq), seq })
    await flushPromises()
    expect(wakes).toEqual([seq, seq])
    for (const reader of readers) expect(reader.take()).toMatchObject({ type: 'run' })
  }
  expect((await waiting).value).toMatchObject({ event: { seq: 1 } })
  expect(surfaced).toEqual(['mistake 0', 'mistake 1', 'mistake 0', 'mistake 1'])
})
