/** Receives what the relay of this process does, over `node:diagnostics_channel`. `node --test examples/diagnostics-channels.mjs` */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemoryFacilities } from 'relayscope/memory'

const spans = []
const startSpan = (name, { trace }) => spans.push({ name, trace })

// #region subscribe
import { subscribe } from 'node:diagnostics_channel'

subscribe('tracing:relayscope:call:start', (call) => startSpan(call.action, { trace: call.trace }))
subscribe('tracing:relayscope:deliver:asyncEnd', ({ command_id, attempt, error }) => {
  if (error !== undefined) console.warn(`attempt ${attempt} of command ${command_id} failed`, error)
})
// #endregion

test('a subscriber receives the calls of this process', async () => {
  const facilities = createMemoryFacilities()
  const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  await facilities.rpc.open({ action: 'tabs.list', user_id: 'ada', client_id: 'laptop', timeout_ms: 1_000, trace })
  await facilities.close()
  assert.deepEqual(spans, [{ name: 'tabs.list', trace }])
})
