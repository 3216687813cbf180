/** Abort listeners are called when a client disconnects, even after the request object was garbage-collected. */
import { once } from 'node:events'
import { expect, it } from 'vitest'
import type { FetchHandler } from '../../src/adapters/handler.js'
import { toNodeHandler } from '../../src/adapters/node.js'
import { collectGarbage } from '../garbage.js'
import { serve } from './server.js'
import { open, requestText } from './wire.js'

type Handler = (request: Request) => Promise<Response>

it.each<[string, (handler: Handler) => FetchHandler]>([
  ['a handler', (handler) => handler],
  ['a handler with reply', (handler) => Object.assign(handler, { reply: handler })],
])('aborts the request.signal of %s that keeps no reference to its request', async (_, toHandler) => {
  const told = new EventTarget()
  const tell = (what: string) => told.dispatchEvent(new Event(what))
  const port = await serve(
    toNodeHandler(
      toHandler(({ signal }) => {
        signal.addEventListener('abort', () => tell('left'))
        tell('arrived')
        return new Promise(() => {})
      }),
    ),
  )
  const socket = await open(port)
  const arrived = once(told, 'arrived')
  socket.write(requestText(port, 'GET /late'))
  await arrived
  await collectGarbage()
  const left = once(told, 'left')
  socket.destroy()
  expect(await left).toHaveLength(1)
})
