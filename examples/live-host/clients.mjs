/** The clients that the host starts: each a process of its own, and none left behind. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { endAll, own } from './processes.mjs'

const PROGRAM = fileURLToPath(new URL('console-client.mjs', import.meta.url))

/**
 * Starts one process per client: a console client, or its own `program` with its own `env`, which shows its `ticket` at
 * one of the `urls`; each begins at the next. `onExit(client)` is called
 * when one ends by itself or is killed, `onMessage(client, message)` when one has something to say.
 */
export function startClients({ urls, clients, onExit, onMessage = () => {} }) {
  const children = clients.map((client, i) => {
    const first = i % urls.length
    const RELAY_URLS = [...urls.slice(first), ...urls.slice(0, first)].join(' ')
    const env = { RELAY_URLS, RELAY_TICKET: client.ticket, RELAY_CLIENT_ID: client.client_id, ...client.env }
    if (client.clumsy) env.RELAY_CLUMSY = '1'
    // Clients must not get the administrator's key.
    const { SERVICE_ADMIN_KEY, ...inherited } = process.env
    // The channel of fork() is how a client learns that the host is gone.
    const child = own(fork(client.program ?? PROGRAM, { env: { ...inherited, ...env } }))
    child.on('message', (message) => onMessage(client, message))
    child.on('exit', (code, signal) => onExit({ ...client, pid: child.pid }, signal ?? code))
    return child
  })

  return {
    pids: children.map(({ pid }) => pid),
    /** Asks all of them to leave, and ends those that do not. */
    close: () => endAll(children),
  }
}
