/** A host's own test that replays an incident: what was wrong then must be found by the code of today. */

// #region test
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { createDiagnosticsRouter, noopAuth } from 'relayscope'
import { incidentComposition } from 'relayscope/incident'

/** The code under test: which clients need a restart. */
async function clientsToRestart(fetch) {
  const response = await fetch(new Request('http://relay/connections?status=disconnected'))
  const { items } = await response.json()
  return items.filter(({ ended_reason }) => ended_reason === 'heartbeat_lost').map(({ client_id }) => client_id)
}

test('finds the client that was stopped in the incident', async () => {
  const file = await readFile(new URL('incident.json', import.meta.url))
  const router = createDiagnosticsRouter({ ...incidentComposition(file), auth: noopAuth(), onError: null })
  assert.deepEqual(await clientsToRestart(router), ['console-1'])
})
// #endregion
