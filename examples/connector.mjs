/** An action's way through the connector: its command, its acknowledgement and its reply. `node --test examples/connector.mjs` */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
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

const waiter = await dispatcher.attach(client, actions.deliver(client, connector))
// #endregion

const seen = []
actions.handle('add_note', { parameters: z.object({ text: z.string() }) }, (parameters, context) => {
  seen.push([parameters, context.correlation_id])
  return { id: 1 }
})

// #region signal
actions.handle('export_notes', { parameters: z.looseObject({}) }, async (_parameters, { signal }) => {
  for (let page = 1; ; page++) {
    signal.throwIfAborted() // the viewer disconnected, or the time is up
    await exportPage(page, { signal })
  }
})
// #endregion

const pages = new EventEmitter()
async function exportPage(_page, { signal }) {
  pages.emit('exported', signal)
  await setTimeout(1)
}

test('the viewer gets what the handler returned', async () => {
  const parameters = { text: 'milk', __cooperative_site_session_id: 's-1', __cooperative_site_id: 'notes' }
  const { user_id, client_id } = client
  const call = { action: 'add_note', parameters, timeout_ms: 5_000, signal: new AbortController().signal }
  assert.deepEqual(await connector.call({ user_id, client_id }, call), { id: 1 })
  assert.deepEqual(seen, [[parameters, seen[0][1]]])
  const command = { user_id, client_id, command_id: seen[0][1] }
  const { acknowledgement } = await dispatcher.inspector.status(command, { signal: new AbortController().signal })
  assert.equal(acknowledgement.state, 'acknowledged')
})

test('a handler stops when the viewer disconnects', async () => {
  const { user_id, client_id } = client
  const viewer = new AbortController()
  const parameters = { __cooperative_site_session_id: 's-1', __cooperative_site_id: 'notes' }
  const request = { action: 'export_notes', parameters, timeout_ms: 60_000, signal: viewer.signal }
  const call = connector.call({ user_id, client_id }, request)
  const [signal] = await once(pages, 'exported')
  viewer.abort()
  await assert.rejects(call)
  if (!signal.aborted) await once(signal, 'abort')
  await waiter.detach()
  await facilities.close()
})
