/** A whole relay over WebSocket that can be looked at. `node examples/websocket/main.mjs` */
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { WebSocketServer } from 'ws'
import { feed } from './feed.mjs'

const facilities = createMemoryFacilities()
const { connections, contexts, dispatcher } = facilities
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections, contexts, dispatcher }), // only what `feed` writes to
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const heartbeatMs = Number(process.env.HEARTBEAT_MS ?? 30_000)
// Look up the user of your cookie or token here. This example trusts the query.
const userOf = (request) => new URL(request.url, 'ws://relay').searchParams.get('user')

// #region main
const mount = toNodeHandler(diagnostics)
const server = createServer((req, res) => mount(req, res, () => work(req, res)))
const closeAll = feed(new WebSocketServer({ server }), facilities, { userOf, heartbeatMs })

/** `POST /sync/ada/laptop` sends a command to that client. 202 means admitted, and no more than that. */
function work(req, res) {
  const [, action, user_id, client_id] = req.url.split('/')
  const command = { user_id, client_id, action, command_id: crypto.randomUUID(), deadline_ms: 60_000 }
  const answer = (status, body) => res.writeHead(status).end(JSON.stringify(body))
  facilities.dispatcher.dispatch(command).then(
    (evidence) => answer(evidence.admission.state === 'admitted' ? 202 : 409, evidence),
    ({ code = 'internal' }) => answer(422, { code }),
  )
}
// #endregion

// #region ending
process.once('SIGTERM', async () => {
  server.close() // accept no new connections
  await closeAll() // close every socket and write its disconnect
  await facilities.close() // stop the loops and release the store
  process.exit()
})
// #endregion

server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/`)
})
