/** A host's own unit test, with fakes instead of a relay. `node --test examples/unit-test.mjs` */

// #region test
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeyAuth, createDiagnosticsRouter } from 'relayscope'
import { createFakeInspectors } from 'relayscope/testing'

/** The code under test: it requests the backlog and turns the answer into a sentence. */
async function backlogOf(fetch, key) {
  const response = await fetch(
    new Request('http://relay/ops/diagnostics/delivery/summary', { headers: { 'x-admin-key': key } }),
  )
  if (response.status === 501) return 'this relay has no delivery'
  if (!response.ok) return `refused: ${(await response.json()).code}`
  return `${(await response.json()).due_commands} commands are due`
}

const relay = (world) =>
  createDiagnosticsRouter({
    inspectors: createFakeInspectors(world),
    auth: apiKeyAuth('test-key'),
    prefix: '/ops/diagnostics',
  })

test('returns the number of due commands', async () => {
  assert.equal(await backlogOf(relay({ delivery: { summary: { due_commands: 3 } } }), 'test-key'), '3 commands are due')
})

test('distinguishes a relay without delivery from a wrong key', async () => {
  assert.equal(await backlogOf(relay({}), 'test-key'), 'this relay has no delivery')
  assert.equal(await backlogOf(relay({}), 'other'), 'refused: forbidden')
})
// #endregion
