/** A proxy for a store whose connections can die silently: no byte passes any more, and no side is notified. */
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'

export interface SilentLink {
  /** Where clients connect instead of to the store. */
  readonly port: number
  /** Makes every connection die, including new ones, or only those with subscriptions. */
  silence(which?: 'all' | 'subscribers'): void
  /** New connections work again. Dead ones stay dead. */
  heal(): void
  /** Resets every connection. */
  reset(): void
  /** Number of open connections. */
  readonly connections: number
  close(): Promise<void>
}

interface Connection {
  isDead: boolean
  isSubscriber: boolean
}

/** A proxy on a free port before the store on `port`. */
export async function startSilentLink(port: number): Promise<SilentLink> {
  const sockets = new Set<Socket>()
  const connections = new Set<Connection>()
  let isSilent = false

  function keep(socket: Socket, other: () => Socket) {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.once('close', () => {
      sockets.delete(socket)
      other().destroy()
    })
  }

  const server = createServer((near) => {
    const connection = { isDead: isSilent, isSubscriber: false }
    const far = createConnection(port, '127.0.0.1')
    keep(near, () => far)
    keep(far, () => near)
    connections.add(connection)
    near.once('close', () => connections.delete(connection))
    near.on('data', (chunk) => {
      connection.isSubscriber ||= /ssubscribe/i.test(chunk.toString('latin1'))
      if (!connection.isDead) far.write(chunk)
    })
    far.on('data', (chunk) => !connection.isDead && near.write(chunk))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  const reset = () => {
    for (const socket of sockets) socket.destroy()
  }

  return {
    port: (server.address() as { port: number }).port,
    silence(which = 'all') {
      isSilent = which === 'all'
      for (const connection of connections) connection.isDead ||= isSilent || connection.isSubscriber
    },
    heal() {
      isSilent = false
    },
    reset,
    get connections() {
      return connections.size
    },
    async close() {
      server.close()
      reset()
      await once(server, 'close')
    },
  }
}
