/** Errors reported to the host for a failing handler, by adapter: the client receives 500 and nothing else. */
import { request } from 'node:http'
import { Hono } from 'hono'
import { expect, it, onTestFinished } from 'vitest'
import { toDenoHandler } from '../../src/adapters/deno.js'
import { toHonoHandler } from '../../src/adapters/hono.js'
import { type FetchHandler, type MountOptions, startNodeServer } from '../../src/adapters/node.js'

type Serve = (handler: FetchHandler, options: MountOptions) => Promise<(path: string) => Promise<Response>>

const node: Serve = async (handler, options) => {
  const server = await startNodeServer(handler, options)
  onTestFinished(async () => void (await server.close()))
  return (path) => fetch(server.url + path)
}
const hono: Serve = async (handler, options) => {
  const app = new Hono().use(toHonoHandler(handler, options))
  return async (path) => app.request(path)
}
const deno: Serve = async (handler, options) => {
  const serve = toDenoHandler(handler, options)
  return (path) => serve(new Request(`http://localhost${path}`))
}

const thrown = new Error('planted-secret')
const failures: [what: string, handler: FetchHandler, error: unknown][] = [
  [
    'throws',
    () => {
      throw thrown
    },
    thrown,
  ],
  ['rejects', () => Promise.reject(thrown), thrown],
  ['answers nothing', () => undefined as never, expect.any(TypeError)],
]

for (const [name, serve] of Object.entries({ node, hono, deno }))
  it.each(failures)(`${name} reports a handler that %s, with method and path`, async (_, handler, error) => {
    const told: unknown[] = []
    const ask = await serve(handler, { onError: (...args) => told.push(args) })
    const answer = await ask('/a/b?key=secret')
    expect(answer.status).toBe(500)
    expect(await answer.text()).not.toContain('secret')
    expect(told).toEqual([[error, { route: null, method: 'GET', path: '/a/b' }]])
  })

it('no error is reported for a client that has disconnected', async () => {
  const told: unknown[] = []
  let arrived = () => {}
  const isThere = new Promise<void>((resolve) => (arrived = resolve))
  let failed = () => {}
  const hasFailed = new Promise<void>((resolve) => (failed = resolve))
  const handler: FetchHandler = ({ signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        reject(signal.reason)
        failed()
      })
      arrived()
    })
  const server = await startNodeServer(handler, { onError: (error) => told.push(error) })
  onTestFinished(async () => void (await server.close()))
  const asked = request(server.url).on('error', () => {})
  asked.end()
  await isThere
  asked.destroy()
  await hasFailed
  await new Promise(setImmediate)
  expect(told).toEqual([])
})
