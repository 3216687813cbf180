/** An action's way through the connector: its command, its acknowledgement and its reply. `node --test examples/connector.mjs` */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemoryFacilities } from 'relayscope/memory'
import * as z from 'zod'

const facilities = createMemoryFacilities()
const { connections, dispatcher } = facilities

const client = { user_id: 'ada', client_id: 'notes', instance_id: 'run-1' }
await connections.connect({ ...client, client_type: 'console' })

// #region deliver
import { createActionHandlers, createDispatchConnector } from 'relayscope/cooperative-site'

const connector = createDispatchConnector(facilities)
const actions = createActionHandlers()

const waiter = await dispatcher.attach(client, async (command) => {
  // To resolve says no more than that the client has it: what it does with it takes as long as it takes.
  handle(command).catch(console.error)
})

async function handle({ action, payload, command_id }) {
  await dispatcher.acknowledge({ ...client, command_id })
  // What the viewer sent, with __cooperative_site_session_id and __cooperative_site_id.
  const outcome = await actions.execute({ action, parameters: payload, correlation_id: command_id })
  if (outcome) await connector.reply({ ...client, correlation_id: command_id, outcome }) // a repeated call has none
}
// #endregion

const seen = []
actions.handle('add_note', { parameters: z.object({ text: z.string() }) }, (parameters, context) => {
  seen.push([parameters, context.correlation_id])
  return { id: 1 }
})

test('the viewer gets what the handler returned', async () => {
  const parameters = { text: 'milk', __cooperative_site_session_id: 's-1', __cooperative_site_id: 'notes' }
  const { user_id, client_id } = client
  const call = { action: 'add_note', parameters, timeout_ms: 5_000, signal: new AbortController().signal }
  assert.deepEqual(await connector.call({ user_id, client_id }, call), { id: 1 })
  assert.deepEqual(seen, [[parameters, seen[0][1]]])
  const command = { user_id, client_id, command_id: seen[0][1] }
  const { acknowledgement } = await dispatcher.inspector.status(command, { signal: new AbortController().signal })
  assert.equal(acknowledgement.state, 'acknowledged')
  await waiter.detach()
  await facilities.close()
})
