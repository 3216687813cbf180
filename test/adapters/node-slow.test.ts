/** Tests the Node server against clients that keep a connection alive with one byte at a time. */
import type { Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type FetchHandler, type NodeServerOptions, startNodeServer } from '../../src/adapters/node.js'
import { open } from './wire.js'

const TRICKLE_MS = 50
/** Longer than the test would wait. */
const NEVER_MS = 3_600_000

async function start(handler: FetchHandler, options: NodeServerOptions) {
  const server = await startNodeServer(handler, options)
  onTestFinished(async () => void (await server.close()))
  return server
}

/** Opens a connection whose end is noticed, and that is closed whatever happens. */
async function connect(port: number) {
  const socket = await open(port)
  let isClosed = false
  // It may be cut off while it writes.
  socket.on('error', () => {})
  socket.on('close', () => {
    isClosed = true
  })
  onTestFinished(() => void socket.destroy())
  return { socket, isClosed: () => isClosed }
}

/** Sends a byte now and then, for as long as it is taken. */
function trickle(socket: Socket, byte = 'x') {
  const timer = setInterval(() => socket.destroyed || socket.write(byte), TRICKLE_MS)
  onTestFinished(() => clearInterval(timer))
}

const readAll: FetchHandler = async (request) => new Response(await request.text())

describe('a connection that sends a byte now and then', () => {
  it('must finish its headers in time', async () => {
    const { port } = await start(readAll, { headersMs: 300, requestMs: NEVER_MS, stallMs: NEVER_MS })
    const { socket, isClosed } = await connect(port)
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ')
    trickle(socket)
    socket.resume()
    await expect.poll(isClosed).toBe(true)
  })

  it('must finish its request in time', async () => {
    const { port } = await start(readAll, { headersMs: 300, requestMs: 600, stallMs: NEVER_MS })
    const { socket, isClosed } = await connect(port)
    socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n`)
    trickle(socket)
    socket.resume()
    await expect.poll(isClosed).toBe(true)
  })
})
