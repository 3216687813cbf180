/** A host's own test of what it does when a source fails or hangs. `node --test examples/failing-source.mjs` */

// #region test
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeyAuth, createDiagnosticsRouter, Refusal } from 'relayscope'
import { createFakeInspectors } from 'relayscope/testing'

/** A router over one connection whose registry uses `listConnections`. */
function relay(listConnections) {
  const { registry, ...others } = createFakeInspectors({ connections: [{ user_id: 'ada' }] })
  assert(registry) // present, because the world has connections
  const inspectors = { ...others, registry: { ...registry, listConnections } }
  return createDiagnosticsRouter({ inspectors, auth: apiKeyAuth('test-key'), deadlineMs: 500, onError: null })
}
const get = (router) => router(new Request('http://relay/connections', { headers: { 'x-admin-key': 'test-key' } }))

test('returns 503 if a source fails', async () => {
  const fails = () => Promise.reject(new Refusal('unavailable'))
  assert.equal((await get(relay(fails))).status, 503)
})

test('returns 504 if a source hangs', async () => {
  const hangs = () => new Promise(() => {})
  assert.equal((await get(relay(hangs))).status, 504)
})
// #endregion
