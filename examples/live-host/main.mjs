/** `npm start`: a live relay host with real clients, to be looked at through its diagnostics. Ends with Ctrl-C. */
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { resolveAdminAuth } from 'relayscope'
import { announce } from './announce.mjs'
import { delay } from './client/relay-client.mjs'
import { startClients } from './clients.mjs'
import { openFacilities } from './facilities.mjs'
import { startHost } from './host.mjs'
import { startScheduler } from './scheduler.mjs'

const HOST = '127.0.0.1'
const CLIENTS = [
  { user_id: 'ada', client_id: 'console-1' },
  { user_id: 'ada', client_id: 'console-2', clumsy: true },
  { user_id: 'grace', client_id: 'console-3' },
]
const NOTES = { site_id: 'notes', user_id: 'grace', client_id: 'notes-app' }
const NOTES_PROGRAM = fileURLToPath(new URL('../notes-app/main.mjs', import.meta.url))
// Long enough for three processes to start and do their first work on a slow machine.
const SETTLE_MS = 15_000

const { values } = parseArgs({ options: { port: { type: 'string', default: '0' }, state: { type: 'string' } } })
// What outlives the host: the notes, and who may see them.
const state = values.state ? resolve(values.state) : await mkdtemp(join(tmpdir(), 'relayscope-'))
await mkdir(state, { recursive: true })

const ending = new AbortController()
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => ending.abort())

const fromEnvironment = process.env.SERVICE_ADMIN_KEY?.trim()
const key = fromEnvironment || randomBytes(24).toString('base64url')
const auth = resolveAdminAuth({ key, strict: true, host: HOST })

const { facilities, composition } = openFacilities()
const host = await startHost({
  facilities,
  composition,
  auth,
  app: NOTES,
  viewersFile: join(state, 'viewers.json'),
  host: HOST,
  port: Number(values.port),
})
const control = { token: randomBytes(24).toString('base64url') }
const env = { NOTES_FILE: join(state, 'notes.json'), CONTROL_TOKEN: control.token }
const children = startClients({
  url: host.url,
  clients: [...CLIENTS, { ...NOTES, program: NOTES_PROGRAM, env }],
  ticketFor: ({ user_id, client_id }) => host.sessions.ticket(user_id, client_id),
  onExit: ({ client_id, pid }, how) => ending.signal.aborted || console.log(`${client_id} (pid ${pid}) ended: ${how}`),
  onMessage: (_client, { control_url }) => (control.url = control_url),
})
const scheduler = startScheduler({ facilities, connector: host.connector, clients: CLIENTS, signal: ending.signal })

const living = await settled()
if (living)
  announce({
    url: host.url,
    keyText: fromEnvironment ? '$SERVICE_ADMIN_KEY' : key,
    clients: CLIENTS.map((client, i) => ({ ...client, pid: children.pids[i] })),
    notes: { ...NOTES, pid: children.pids.at(-1) },
    control,
    state,
    living,
  })

if (!ending.signal.aborted) await new Promise((resolve) => ending.signal.addEventListener('abort', resolve))
await scheduler.done
await children.close()
await host.close()

/** Ids of things that live, as soon as there is one of each; fails when that never comes. */
async function settled() {
  const { registry, rpc, history } = composition.inspectors
  const ask = { signal: ending.signal }
  const page = { limit: 100, cursor: null }
  const until = Date.now() + SETTLE_MS
  while (!ending.signal.aborted) {
    const { task_id, context_id, command } = scheduler.latest
    const { user_id, client_id } = command ?? CLIENTS[0]
    const [connection] = (await registry.listConnections({ client_id }, page, ask)).items
    // The latest of the slow ones: it is still pending when somebody pastes the question.
    const pending = (await rpc.listPending({ action: 'watch_load' }, page, ask)).items.at(-1)
    const streams = (await history.listStreams({ user_id }, page, ask)).items
    const message = streams.find(({ stream }) => stream.includes('/documents/'))
    if (command && connection && pending && message && control.url)
      return { connection, command, context_id, task_id, correlation_id: pending.correlation_id, message }
    if (Date.now() > until) throw new Error('the clients did not come to life')
    await delay(100, ending.signal)
  }
}
