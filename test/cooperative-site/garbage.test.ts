/** A viewer that leaves is noticed even when its request was collected as garbage meanwhile. */
import { expect, it } from 'vitest'
import { collectGarbage } from '../garbage.js'
import { createWorld } from './world.js'

it('ends the stream of a viewer whose request was garbage-collected', async () => {
  const world = await createWorld()
  const viewer = new AbortController()
  const watch = () =>
    world.relay(
      new Request(`http://relay.test/relay/sessions/${world.session_id}/events`, {
        headers: { authorization: 'Bearer bob' },
        signal: viewer.signal,
      }),
    )
  const answer = await watch()
  expect([answer.status, world.relay.streams]).toEqual([200, 1])
  await collectGarbage()
  viewer.abort()
  expect(world.relay.streams).toBe(0)
})

it('cancels the action of a viewer whose request was garbage-collected', async () => {
  let called = () => {}
  const calling = new Promise<void>((resolve) => {
    called = resolve
  })
  const cancelled: unknown[] = []
  const world = await createWorld({
    connector: {
      call: (_call, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            cancelled.push(signal.reason)
            reject(signal.reason)
          })
          called()
        }),
    },
  })
  const viewer = new AbortController()
  const invoke = () =>
    world.relay(
      new Request(`http://relay.test/relay/sessions/${world.session_id}/actions/add_note`, {
        method: 'POST',
        headers: { authorization: 'Bearer bob', 'content-type': 'application/json' },
        body: '{"parameters":{"text":"milk"}}',
        signal: viewer.signal,
      }),
    )
  const answer = invoke()
  await calling
  await collectGarbage()
  viewer.abort()
  await answer
  expect(cancelled).toHaveLength(1)
})
