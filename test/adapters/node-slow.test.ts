/** Holds the server of our own on Node against whoever keeps a connection alive by a byte now and then. */
import type { Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type FetchHandler, type NodeServerOptions, startNodeServer } from '../../src/adapters/node.js'
import { open } from './wire.js'

// More than any socket of this machine takes ahead of its reader.
const LARGE = 'x'.repeat(16_777_216)
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
  it('has so long for its headers', async () => {
    const { port } = await start(readAll, { headersMs: 300, requestMs: NEVER_MS, stallMs: NEVER_MS })
    const { socket, isClosed } = await connect(port)
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ')
    trickle(socket)
    socket.resume()
    await expect.poll(isClosed).toBe(true)
  })

  it('has so long for its request', async () => {
    const { port } = await start(readAll, { headersMs: 300, requestMs: 600, stallMs: NEVER_MS })
    const { socket, isClosed } = await connect(port)
    socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n`)
    trickle(socket)
    socket.resume()
    await expect.poll(isClosed).toBe(true)
  })

  it('is cut off all the same where it takes nothing of an answer and sends ahead', async () => {
    let asked = 0
    const ended: Promise<unknown>[] = []
    const handler: FetchHandler = (request) => {
      asked++
      ended.push(new Promise((resolve) => request.signal.addEventListener('abort', resolve)))
      return new Response(LARGE)
    }
    const { port } = await start(handler, { headersMs: NEVER_MS, requestMs: NEVER_MS, stallMs: 500 })
    const { socket } = await connect(port)
    socket.pause()
    const get = 'GET / HTTP/1.1\r\nHost: localhost\r\n'
    socket.write(`${get}\r\n`)
    await expect.poll(() => asked).toBe(1)
    // A second request, whole, and then a third that never is.
    socket.write(`${get}\r\n${get}X-Long: `)
    trickle(socket)
    await ended[0]
    expect(asked).toBe(1)
  })
})
