/** Observes a deployment from outside: `node examples/observer/main.mjs redis://127.0.0.1:6379 prod [port]` */
const [url = 'redis://127.0.0.1:6379', deploymentId = 'prod', port = '4780'] = process.argv.slice(2)

// #region observer
import { createServer } from 'node:http'
import { createClient } from 'redis'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { toNodeHandler } from 'relayscope/node'
import { redisComposition } from 'relayscope/redis'

const client = createClient({ url })
client.on('error', (error) => console.error(`the store: ${error.message}`))
// Not awaited: while the store is down, requests get 503.
client.connect().catch(() => {})

const diagnostics = createDiagnosticsRouter({
  ...redisComposition({ client, deploymentId, onError: console.error }),
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
})
const server = createServer(toNodeHandler(diagnostics)).listen(Number(port), '127.0.0.1')
// #endregion

server.on('listening', () => console.log(`http://127.0.0.1:${server.address().port}/users`))
process.on('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
  client.destroy()
})
