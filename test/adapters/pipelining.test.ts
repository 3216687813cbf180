/** Several requests on one connection, sent before the first is answered. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from 'undici'
import { afterEach, expect, it } from 'vitest'
import type { FetchHandler } from '../../src/adapters/handler.js'
import { toNodeHandler } from '../../src/adapters/node.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { serve } from './server.js'
import { open as connected } from './wire.js'

const DEPTH = 10

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

it('answers pipelined requests in their order, each with its own answer', async () => {
  const router = createDiagnosticsRouter({ inspectors: createFakeInspectors({ connections: [] }), auth: noopAuth() })
  const server = createServer(toNodeHandler(router))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => new Promise((resolve) => server.close(resolve)))
  const client = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { pipelining: DEPTH })
  ends.push(() => client.close())

  const paths = Array.from({ length: DEPTH }, (_, i) => (i % 2 === 0 ? '/connections' : `/connections/c${i}`))
  const answers = await Promise.all(paths.map((path) => client.request({ method: 'GET', path })))
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(paths.map((_, i) => (i % 2 === 0 ? 200 : 404)))
  for (const [i, { body }] of answers.entries()) {
    const read = (await body.json()) as { items?: unknown; code?: string }
    expect(i % 2 === 0 ? read.items : read.code).toEqual(i % 2 === 0 ? [] : 'not_found')
  }
})

/** A request that keeps its connection open. */
const kept = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

it.each<[string, (stream: ReadableStream<Uint8Array>) => FetchHandler]>([
  ['a Response', (stream) => () => new Response(stream)],
  [
    'chunks',
    (stream) => {
      const reader = stream.getReader()
      const body = { next: () => reader.read(), return: async () => ({ done: true, value: await reader.cancel() }) }
      return Object.assign(() => new Response(), { reply: () => ({ status: 200, headers: {}, body: body as never }) })
    },
  ],
])('ends every requested stream of %s when its connection closes', async (_, toHandler) => {
  const open: string[] = []
  const told = new EventTarget()
  const begin = (name: string) =>
    new ReadableStream<Uint8Array>({
      start: (controller) => {
        open.push(name)
        controller.enqueue(new Uint8Array(1))
      },
      cancel: () => {
        open.splice(open.indexOf(name), 1)
        told.dispatchEvent(new Event(open.length === 0 ? 'none' : 'some'))
      },
    })
  let handled = 0
  const port = await serve((req, res) => {
    toNodeHandler(toHandler(begin(req.url ?? '')))(req, res)
    if (++handled === 3) told.dispatchEvent(new Event('all'))
  })
  const socket = await connected(port)
  const all = once(told, 'all')
  socket.write(['/1', '/2', '/3'].map(kept).join(''))
  await all
  const none = once(told, 'none')
  socket.destroy()
  await none
  expect(open).toEqual([])
})

it('aborts the signal of a queued request when its connection closes', async () => {
  const told = new EventTarget()
  const port = await serve(
    toNodeHandler(({ url, signal }) => {
      const name = new URL(url).pathname.slice(1)
      signal.addEventListener('abort', () => told.dispatchEvent(new Event(`${name} left`)))
      told.dispatchEvent(new Event(`${name} came`))
      return new Promise(() => {})
    }),
  )
  const socket = await connected(port)
  const came = once(told, 'second came')
  socket.write(kept('/first') + kept('/second'))
  await came
  const left = Promise.all([once(told, 'first left'), once(told, 'second left')])
  socket.destroy()
  expect(await left).toHaveLength(2)
})
