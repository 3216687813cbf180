/** A client that leaves is told to whoever listened, even when the request was collected as garbage meanwhile. */
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import type { FetchHandler } from '../../src/adapters/handler.js'
import { toNodeHandler } from '../../src/adapters/node.js'
import { serve } from './server.js'
import { open, requestText } from './wire.js'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

async function collectAll(): Promise<void> {
  for (let n = 0; n < 3; n++) {
    collect()
    // What a weak reference was read for stays until the task that read it ends.
    await new Promise(setImmediate)
  }
}

type Handler = (request: Request) => Promise<Response>

it.each<[string, (handler: Handler) => FetchHandler]>([
  ['a handler', (handler) => handler],
  ['a handler with reply', (handler) => Object.assign(handler, { reply: handler })],
])('aborts the request.signal of %s that holds nothing of its request', async (_, toHandler) => {
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
  await collectAll()
  const left = once(told, 'left')
  socket.destroy()
  expect(await left).toHaveLength(1)
})
