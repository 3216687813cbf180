/** A page that is kept up to date: what changes, how old it is, and whether that is all. `node --test examples/watching.mjs` */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeyAuth, createDiagnosticsRouter } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { startNodeServer } from 'relayscope/node'

const key = 'the-key-of-the-operator'

// #region watch
import { watch } from 'relayscope/browser'

/** Watches until `left` aborts, and draws each time. */
async function show(url, left, draw) {
  await watch(`${url}/ops/diagnostics/watch`, {
    views: ['/connections?status=connected', '/findings'],
    headers: { 'x-admin-key': key },
    signal: left.signal,
    onChange(lists) {
      for (const [view, { items, asOf, stale, complete }] of Object.entries(lists))
        draw(view, items, { asOf, stale, complete })
    },
  })
}
// #endregion

test('a client that connects appears on the page', async () => {
  const facilities = createMemoryFacilities()
  const { connections, dispatcher } = facilities
  const diagnostics = createDiagnosticsRouter({
    ...memoryComposition({ connections, dispatcher }), // findings need the dispatcher
    auth: apiKeyAuth(key),
    prefix: '/ops/diagnostics',
  })
  const server = await startNodeServer(diagnostics, { host: '127.0.0.1' })
  const left = new AbortController()
  try {
    const shown = defer()
    const over = show(server.url, left, (view, items, { stale }) => {
      if (view.startsWith('/connections') && items.length === 1 && !stale) shown.resolve(items[0])
    })
    await connections.connect({
      user_id: 'ada',
      client_id: 'laptop',
      instance_id: 'run-1',
      client_type: 'web',
    })
    assert.equal((await shown.promise).user_id, 'ada')
    left.abort()
    await over
  } finally {
    left.abort()
    await server.close()
    await facilities.close()
  }
})

/** A promise, and what resolves it. */
function defer() {
  let resolve
  const promise = new Promise((done) => {
    resolve = done
  })
  return { promise, resolve }
}
