/** Bounds the connections of a Node server, including pipelined requests and clients that do not read. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface ConnectionBounds {
  /**
   * Maximum open connections. Beyond it the longest idle one is closed, then one that does not read, then one that has
   * pipelined requests.
   */
  connections: number
  /** Maximum pipelined requests per connection; a connection that exceeds it is closed. */
  pipelined: number
  /** How long a connection may take nothing while bytes wait for it. */
  stallMs: number
}

type Listener = (req: IncomingMessage, res: ServerResponse) => void

interface Connection {
  /** Requests without a complete response: the first is being served, the others wait. */
  waiting: (() => void)[]
}

interface BoundConnections {
  /** Serves the requests of a connection one at a time, so that at most one response is buffered. */
  listener: Listener
  /** Destroys every connection that has no request under way, and from now on each one once it has been answered. */
  release(): void
  /** Destroys the remaining connections. @returns how many there were. */
  cut(): number
}

/** Holds the connections of `server` within `bounds`. */
export function boundConnections(server: Server, listener: Listener, bounds: ConnectionBounds): BoundConnections {
  const { connections, pipelined, stallMs } = bounds
  // In the order in which they last became idle, so that the first idle one is so for longest.
  const open = new Map<Socket, Connection>()
  let releasing = false

  const isIdle = ([, { waiting }]: [Socket, Connection]) => waiting.length === 0
  const isStalled = ([socket]: [Socket, Connection]) => socket.writableLength > 0
  const isAhead = ([, { waiting }]: [Socket, Connection]) => waiting.length > 1

  server.on('connection', (socket: Socket) => {
    if (open.size >= connections) {
      const [evicted] = [...open].find(isIdle) ?? [...open].find(isStalled) ?? [...open].find(isAhead) ?? [socket]
      open.delete(evicted)
      evicted.destroy()
      if (evicted === socket) return
    }
    open.set(socket, { waiting: [] })
    socket.on('close', () => open.delete(socket))
  })

  server.setTimeout(stallMs, (socket: Socket) => {
    const waits = (open.get(socket)?.waiting.length ?? 0) > 0
    // It waits for us, and not we for it.
    if (waits && socket.writableLength === 0) socket.setTimeout(stallMs)
    else socket.destroy()
  })

  function answered(socket: Socket, connection: Connection): void {
    const { waiting } = connection
    waiting.shift()
    if (releasing) socket.destroySoon()
    if (releasing || socket.destroyed) return
    if (waiting.length === 0) {
      open.delete(socket)
      open.set(socket, connection)
      // In the next event-loop round, so that new requests of other connections go first.
    } else setImmediate(() => socket.destroyed || waiting[0]?.())
  }

  return {
    listener(req, res) {
      const { socket } = req
      const connection = open.get(socket)
      // Node has already parsed further requests from the same chunk.
      if (connection === undefined || socket.destroyed) return
      const { waiting } = connection
      if (waiting.length === pipelined) return void socket.destroy()
      waiting.push(() => listener(req, res))
      res.on('close', () => answered(socket, connection))
      if (waiting.length === 1) listener(req, res)
    },
    release() {
      releasing = true
      for (const entry of open) if (isIdle(entry)) entry[0].destroy()
    },
    cut() {
      const left = open.size
      for (const socket of [...open.keys()]) socket.destroy()
      return left
    },
  }
}
