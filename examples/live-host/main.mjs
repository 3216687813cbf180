/**
 * `npm start`: a live relay host with real clients, to be looked at through its diagnostics; with `--redis` two nodes of
 * it over a shared store. Ends with Ctrl-C.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { announce, announceFirst } from './announce.mjs'
import { startClients } from './clients.mjs'
import { findLiving } from './living.mjs'
import { startNode } from './node.mjs'

const NOTES = { site_id: 'notes', session_id: 'notes-room', user_id: 'grace', client_id: 'notes-app' }
const NOTES_PROGRAM = fileURLToPath(new URL('../notes-app/main.mjs', import.meta.url))
const CONSOLES = [
  { user_id: 'ada', client_id: 'console-1' },
  { user_id: 'ada', client_id: 'console-2', clumsy: true },
  { user_id: 'grace', client_id: 'console-3' },
]

const secret = () => randomBytes(24).toString('base64url')

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    state: { type: 'string' },
    redis: { type: 'string' },
    deployment: { type: 'string' },
  },
})
// What outlives the host: the notes, and who may see them.
const state = values.state ? resolve(values.state) : await mkdtemp(join(tmpdir(), 'relayscope-'))
await mkdir(state, { recursive: true })

const ending = new AbortController()
// Whatever clients, nodes and stores do: an ending ends.
const END_MS = 5_000

function end() {
  ending.abort()
  const cutOff = () => {
    console.error(`cut off: not everything had ended after ${END_MS} ms`)
    process.exit(0)
  }
  setTimeout(cutOff, END_MS).unref()
}

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, end)
const say = (name, pid, how) => ending.signal.aborted || console.log(`${name} (pid ${pid}) ended: ${how}`)

const fromEnvironment = process.env.SERVICE_ADMIN_KEY?.trim()
const key = fromEnvironment || secret()
const control = { token: secret() }
const env = { NOTES_FILE: join(state, 'notes.json'), CONTROL_TOKEN: control.token }
const clients = [...CONSOLES, { ...NOTES, program: NOTES_PROGRAM, env }].map((client) => ({
  ...client,
  ticket: secret(),
}))

const known = clients.map(({ user_id, client_id, ticket }) => ({ user_id, client_id, ticket }))
const plan = { key, clients: known, app: NOTES, state, port: Number(values.port) }
const host = await start()
if (host) {
  announceFirst(host, fromEnvironment ? undefined : key)
  const children = startClients({
    urls: host.urls,
    clients,
    onExit: ({ client_id, pid }, how) => say(client_id, pid, how),
    onMessage: (_client, { control_url }) => (control.url = control_url),
  })
  try {
    const isReady = () => control.url !== undefined
    const living = await findLiving({ diagnostics: host.diagnostics, key, isReady, signal: ending.signal })
    if (living)
      announce({
        host,
        keyText: fromEnvironment ? '$SERVICE_ADMIN_KEY' : key,
        clients: CONSOLES.map((client, i) => ({ ...client, pid: children.pids[i] })),
        notes: { ...NOTES, pid: children.pids.at(-1) },
        control,
        state,
        living,
      })
    if (!ending.signal.aborted) await new Promise((resolve) => ending.signal.addEventListener('abort', resolve))
  } finally {
    await children.close()
    await host.close()
  }
}
// A shared store starts empty: notes are deleted too unless --state was given.
if (values.redis && !values.state) await rm(state, { recursive: true, force: true })

/** The one node in this process, or several over a store; `undefined` when there is no such store. */
async function start() {
  if (values.redis === undefined) return startNode(plan)
  console.log('relayscope live host: starting two nodes and an observer over Redis')
  const { startDeployment } = await import('./deployment.mjs')
  try {
    return await startDeployment({ ...plan, redis: values.redis, deploymentId: values.deployment, onExit: say })
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}
