/** The clients that the host starts: each a process of its own, and none left behind. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { delay } from './client/relay-client.mjs'

const PROGRAM = fileURLToPath(new URL('console-client.mjs', import.meta.url))
// A client that is stopped or stuck does not hear a request to leave.
const GRACE_MS = 2_000

/**
 * Starts one process per client: a console client, or its own `program` with its own `env`. `onExit(client)` is called
 * when one ends by itself or is killed, `onMessage(client, message)` when one has something to say.
 */
export function startClients({ url, clients, ticketFor, onExit, onMessage = () => {} }) {
  const children = clients.map((client) => {
    const env = { RELAY_URL: url, RELAY_TICKET: ticketFor(client), RELAY_CLIENT_ID: client.client_id, ...client.env }
    if (client.clumsy) env.RELAY_CLUMSY = '1'
    // The administrator's key is none of a client's business.
    const { SERVICE_ADMIN_KEY, ...inherited } = process.env
    // The channel of fork() is how a client learns that the host is gone.
    const child = fork(client.program ?? PROGRAM, { env: { ...inherited, ...env } })
    child.on('message', (message) => onMessage(client, message))
    child.on('exit', (code, signal) => onExit({ ...client, pid: child.pid }, signal ?? code))
    return child
  })

  return {
    pids: children.map(({ pid }) => pid),
    /** Asks all of them to leave, and ends those that do not. */
    async close() {
      const alive = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
      const ended = Promise.all(alive.map((child) => once(child, 'exit')))
      for (const child of alive) child.kill('SIGTERM')
      const patience = new AbortController()
      await Promise.race([ended, delay(GRACE_MS, patience.signal)])
      patience.abort()
      for (const child of alive) child.kill('SIGKILL')
      await ended
    },
  }
}
