/** Several requests on one connection, sent before the first is answered. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from 'undici'
import { afterEach, expect, it } from 'vitest'
import { toNodeHandler } from '../../src/adapters/node.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'

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
