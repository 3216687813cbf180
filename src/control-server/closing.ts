/** Ends an HTTP server: nobody waits for sockets that say nothing. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

// What is under way when the server is closed may still be answered.
const GRACE_MS = 2_000

/**
 * @returns a function that closes `server`: sockets without a request at once, the others within 2 s. Node alone would
 * wait for sockets that have never sent anything.
 */
export function createClosing(server: Server): () => Promise<void> {
  const idle = new Set<Socket>()
  let closed: Promise<void> | undefined
  server.on('connection', (socket: Socket) => {
    idle.add(socket)
    socket.on('close', () => idle.delete(socket))
  })
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket)
    response.on('close', () => {
      if (closed) socket.destroySoon()
      else if (!socket.destroyed) idle.add(socket)
    })
  })
  return () => {
    closed ??= new Promise((resolve) => {
      const grace = setTimeout(() => server.closeAllConnections(), GRACE_MS)
      server.close(() => {
        clearTimeout(grace)
        resolve()
      })
      for (const socket of idle) socket.destroy()
    })
    return closed
  }
}
