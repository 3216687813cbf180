/** Requests that fail on their own: the client has disconnected, or the request is invalid. */
import { expect, it } from 'vitest'
import { createSubject, createWatched, get, KEY, never, ORIGIN, PREFIX, SECRET } from './subject.js'

it('a client that leaves aborts the signal, and the router still settles', async () => {
  const controller = new AbortController()
  const signals: AbortSignal[] = []
  const { router } = createWatched({}, ({ args }) => {
    signals.push((args.at(-1) as { signal: AbortSignal }).signal)
    controller.abort(new Error(SECRET))
    return never()
  })
  const answer = await get(router, '/connections', { signal: controller.signal })
  expect(answer.text).not.toContain(SECRET)
  expect(signals.map((signal) => signal.aborted)).toEqual([true])
})

it('a client that has left before it asks is answered without an unhandled rejection', async () => {
  const request = new Request(`${ORIGIN}${PREFIX}/users`, {
    headers: { 'x-admin-key': KEY },
    signal: AbortSignal.abort(),
  })
  expect((await createSubject()(request)).status).toBeGreaterThanOrEqual(200)
})

it.each([undefined, null, {}, { url: 'nonsense' }])('an invalid request is answered, not thrown: %j', async (given) => {
  expect((await createSubject()(given as Request)).status).toBeGreaterThanOrEqual(404)
})
