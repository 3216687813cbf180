/** An inspector's signal aborts when the client disconnects, even after the request object was garbage-collected. */
import { expect, it } from 'vitest'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { collectGarbage } from '../garbage.js'

it.each([
  ['looks at its signal at once', Promise.resolve()],
  ['looks at its signal later', new Promise(setImmediate)],
])('aborts the signal of an inspector that %s', async (_, first) => {
  let left = () => {}
  const told = new Promise<void>((resolve) => {
    left = resolve
  })
  let looked = () => {}
  const scan = new Promise<void>((resolve) => {
    looked = resolve
  })
  const inspectors = createFakeInspectors({ connections: [] })
  const listConnections = async (_filter: unknown, _page: unknown, ask: { signal: AbortSignal }) => {
    await first
    ask.signal.addEventListener('abort', left)
    looked()
    return new Promise<never>(() => {})
  }
  const router = createDiagnosticsRouter({
    inspectors: { ...inspectors, registry: Object.assign({}, inspectors.registry, { listConnections }) },
    auth: noopAuth(),
  })
  const caller = new AbortController()
  const ask = () => router(new Request('http://localhost/connections', { signal: caller.signal }))
  const answer = ask()
  await scan
  await collectGarbage()
  caller.abort()
  await told
  expect((await answer).status).toBe(504)
})
