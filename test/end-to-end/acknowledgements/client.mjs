/** A client that answers all requests of its host: `node client.mjs socket.io|json-rpc|mcp <port> <name>`. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { io } from 'socket.io-client'
import { WebSocket } from 'ws'

const [, , kind, port, name] = process.argv
const url = `http://127.0.0.1:${port}`
/** The test waits for it. */
const answered = () => console.log(url)

const CLIENTS = {
  'socket.io'() {
    const socket = io(url, { auth: { name }, transports: ['websocket'] })
    socket.on('sync', (acknowledge) => {
      acknowledge('ok')
      answered()
    })
  },

  'json-rpc'() {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/${name}`)
    socket.on('message', (data) => {
      const { id } = JSON.parse(String(data))
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, result: null }))
      answered()
    })
  },

  async mcp() {
    const client = new Client(
      { name, version: '1' },
      { capabilities: { roots: {} }, versionNegotiation: { mode: 'legacy' } },
    )
    client.setRequestHandler('roots/list', () => {
      answered()
      return { roots: [] }
    })
    const requestInit = { headers: { 'x-client': name } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
  },
}

await CLIENTS[kind]()
