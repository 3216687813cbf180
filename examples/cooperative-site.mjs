/** A complete cooperative site: a host, an application with one event and two actions, a page. `node examples/cooperative-site.mjs` */

// #region site
import { readFile } from 'node:fs/promises'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import {
  ActionFailure,
  createActionHandlers,
  createCooperativeSiteRouter,
  createDispatchConnector,
  createSessionPolicy,
} from 'relayscope/cooperative-site'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { startNodeServer } from 'relayscope/node'
import { createCooperativeSitePublisher } from 'relayscope/publisher'
import * as z from 'zod'

// The host. `grace` runs the application, `vera` views it. Replace `users` by your own authentication.
const facilities = createMemoryFacilities()
const { sites, sessions, subscriptions, bus, ingest, connections, dispatcher } = facilities
const users = new Map(Object.entries({ 'token-of-grace': 'grace', 'token-of-vera': 'vera' }))
function authenticate(request) {
  const user_id = users.get(request.headers.get('authorization')?.replace('Bearer ', '') ?? '')
  return user_id ? { user_id } : null
}
const connector = createDispatchConnector(facilities) // an action becomes a command for the application
const policy = createSessionPolicy({ sessions })
// With `connections` and `dispatcher`, applications in processes of their own can connect.
const ports = { sites, sessions, subscriptions, bus, ingest, connector, policy, connections, dispatcher }
const authenticators = { authenticateHost: authenticate, authenticateViewer: authenticate }
const relay = createCooperativeSiteRouter({ ...ports, ...authenticators, prefix: '/relay' })
const auth = resolveAdminAuth({ strict: true, host: '127.0.0.1' })
// Only what this program feeds: the routes of `contexts` and `browserWindows` return 501.
const { rpc, history, deduplicator } = facilities
const fed = { connections, dispatcher, rpc, history, deduplicator, sites, sessions, subscriptions }
const diagnostics = createDiagnosticsRouter({ ...memoryComposition(fed), auth, prefix: '/ops/diagnostics' })

// `relayscope/browser` is one file without imports: serve it as it is, or bundle it.
const browser = await readFile(new URL(import.meta.resolve('relayscope/browser')))
const server = await startNodeServer(serve, { host: '127.0.0.1', port: Number(process.env.PORT ?? 8080) })
function serve(request, info) {
  const { pathname } = new URL(request.url)
  for (const router of [relay, diagnostics]) if (router.owns(pathname)) return router(request, info)
  if (pathname === '/relayscope.js') return new Response(browser, { headers: { 'content-type': 'text/javascript' } })
  return new Response(page(), { headers: { 'content-type': 'text/html' } })
}

await sites.put({
  site_id: 'notes',
  owner: 'grace',
  mode: 'cooperative',
  event_names: ['note_changed'],
  action_names: ['list_notes', 'archive_note'],
  capability_profile: { action_invocation: true },
})
const application = { user_id: 'grace', client_id: 'notes-app' }
const { session_id } = await sessions.open({ site_id: 'notes', owner: 'grace', connector: application })
await sessions.activate(session_id)
await sessions.share(session_id, { user_id: 'vera', rights: ['view', 'invoke'] })

// The application, here in the host's process. In its own process, it would call `connectApplication`.
const notes = new Map(['milk', 'bread'].map((text, id) => [id, text]))
const client = { ...application, instance_id: crypto.randomUUID() }
const publisher = createCooperativeSitePublisher({
  runtime: {
    baseUrl: `${server.url}/relay`,
    identity: () => client,
    authorize: (headers) => headers.set('authorization', 'Bearer token-of-grace'),
  },
})
const actions = createActionHandlers()
actions.handle('list_notes', { parameters: z.strictObject({}) }, () => [...notes])
actions.handle('archive_note', { parameters: z.strictObject({ id: z.int() }) }, async ({ id }) => {
  if (!notes.delete(id)) throw new ActionFailure('no_such_note', 'The note is already archived')
  publisher.publish('notes', 'note_changed', { id }).catch(console.error)
  return { id }
})
const { connection_id } = await connections.connect({ ...client, client_type: 'console', actions: actions.names })
setInterval(() => connections.heartbeat(connection_id).catch(console.error), 30_000)
// For each command: acknowledge, run the handler, reply. `context.signal` aborts when the viewer disconnects.
await dispatcher.attach(client, actions.deliver(client, connector))

// The page. It fetches the list again on every event. The token is after `#`, which is not sent to a server.
function page() {
  return `<!doctype html><meta charset="utf-8"><title>Notes</title><ul id="notes"></ul><p id="message"></p>
<script type="module">
import { createCooperativeSiteClient } from '/relayscope.js'
const headers = { authorization: 'Bearer ' + location.hash.slice(1) }
const site = createCooperativeSiteClient({ baseUrl: '/relay', sessionId: '${session_id}', headers })
async function invoke(action, parameters) {
  try {
    const { status, result, error } = await site.invoke(action, parameters)
    message.textContent = status === 'succeeded' ? '' : error.code // the application's own error
    return result
  } catch ({ code, outcome }) {
    message.textContent = outcome === 'unknown' ? code + ': it may have happened' : code // the relay's error
  }
}
async function refresh() {
  const items = ((await invoke('list_notes')) ?? []).map(([id, text]) => {
    const item = document.createElement('li')
    item.textContent = text
    item.onclick = () => invoke('archive_note', { id })
    return item
  })
  notes.replaceChildren(...items)
}
site.subscribe({ onReady: refresh, onEvent: refresh, onGap: refresh, onEnd: ({ reason }) => (message.textContent = reason) })
</script>`
}

console.log(`open ${server.url}/#token-of-vera, click a note, and look at ${server.url}/ops/diagnostics/sessions`)
process.once('SIGTERM', async () => {
  await relay.close() // streams end with `shutdown`, pending calls end
  await connections.disconnect(connection_id, 'shutdown')
  await server.close()
  await facilities.close()
  process.exit()
})
// #endregion
