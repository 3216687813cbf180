/** An MCP server of your own, whose sessions and calls are shown. `node examples/mcp-sessions.mjs` */
import { createServer } from 'node:http'
import { McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'

const { connections, rpc } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections, rpc }),
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }), // SERVICE_ADMIN_KEY, or this machine only
  prefix: '/ops/diagnostics',
})

/** Look up the user of your token here. This example trusts the headers. */
function whoIs({ headers }) {
  const [user_id, client_id] = [headers.get('x-user'), headers.get('x-client')]
  return { user_id, client_id, instance_id: crypto.randomUUID(), client_type: 'console' }
}

function createTools() {
  const server = new McpServer({ name: 'tools', version: '1' })
  server.registerTool('report', {}, () => new Promise(() => {})) // never replies
  return server
}

// #region before
const sessions = new Map()
async function openSession() {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => crypto.randomUUID(),
    onsessioninitialized: (id) => sessions.set(id, transport),
  })
  await createTools().connect(transport)
  return transport
}

// #endregion

// #region after
import { followMcpSessions } from 'relayscope/follow'

const follower = followMcpSessions({ connections, calls: rpc, identify: (_transport, request) => whoIs(request) })
async function openFollowed(request) {
  const transport = await openSession()
  follower.add(transport, request)
  return transport
}
// #endregion

async function mcp(request) {
  const transport = sessions.get(request.headers.get('mcp-session-id')) ?? (await openFollowed(request))
  return transport.handleRequest(request)
}
const [mount, mountMcp] = [toNodeHandler(diagnostics), toNodeHandler(mcp)]
const server = createServer((request, response) => mount(request, response, () => mountMcp(request, response)))
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/rpc/pending`)
})
