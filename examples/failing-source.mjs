/** A host's own test of what it does when a source fails or hangs. `node --test examples/failing-source.mjs` */

// #region test
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeyAuth, createDiagnosticsRouter, Refusal } from 'relayscope'
import { createFakeInspectors } from 'relayscope/testing'

/** A relay with one connection, whose registry lists its connections by `listConnections`. */
function relay(listConnections) {
  const { registry, ...others } = createFakeInspectors({ connections: [{ user_id: 'ada' }] })
  assert(registry) // there, because its world has connections
  const inspectors = { ...others, registry: { ...registry, listConnections } }
  return createDiagnosticsRouter({ inspectors, auth: apiKeyAuth('test-key'), deadlineMs: 500, onError: null })
}
const ask = (router) => router(new Request('http://relay/connections', { headers: { 'x-admin-key': 'test-key' } }))

test('a source that fails', async () => {
  const fails = () => Promise.reject(new Refusal('unavailable'))
  assert.equal((await ask(relay(fails))).status, 503)
})

test('a source that hangs', async () => {
  const hangs = () => new Promise(() => {})
  assert.equal((await ask(relay(hangs))).status, 504)
})
// #endregion
