/** A server of server-sent events whose clients are shown. `node examples/event-streams.mjs` */
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what the integration feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})

/** Look up the user of your cookie or token here. This example trusts the query. */
function whoIs({ url }) {
  const { user, client, instance } = Object.fromEntries(new URL(url, 'http://host').searchParams)
  return { user_id: user, client_id: client, instance_id: instance, client_type: 'web' }
}

// #region before
function sendEvents(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const timer = setInterval(() => response.write(': ping\n\n'), 5_000)
  response.on('close', () => clearInterval(timer))
}

// #endregion

// #region after
import { followEventStreams } from 'relayscope/follow'

const streams = followEventStreams({ connections, identify: (response) => whoIs(response.req) })
function events(_request, response) {
  sendEvents(response)
  streams.add(response)
}
// #endregion

const mount = toNodeHandler(diagnostics)
const server = createServer((request, response) => mount(request, response, () => events(request, response)))
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/connections`)
})
