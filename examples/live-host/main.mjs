/**
 * `npm start`: a live relay host with real clients, to be looked at through its diagnostics; with `--redis` two nodes of
 * it over a shared store, with `--world <name>` a deployment of a given kind instead. Ends with Ctrl-C.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startNodeServer } from 'relayscope/node'
import { startClients } from './clients.mjs'
import { PREFIX } from './host.mjs'
import { startNode } from './node.mjs'
import { createQuestions } from './questions.mjs'
import { startWorld } from './world.mjs'

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
    world: { type: 'string' },
  },
})
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
if (values.world !== undefined) {
  await runWorld(values.world)
  process.exit()
}

// What outlives the host: the notes, and who may see them.
const state = values.state ? resolve(values.state) : await mkdtemp(join(tmpdir(), 'relayscope-'))
await mkdir(state, { recursive: true })

const control = { token: secret() }
const env = { NOTES_FILE: join(state, 'notes.json'), CONTROL_TOKEN: control.token }
const clients = [...CONSOLES, { ...NOTES, program: NOTES_PROGRAM, env }].map((client) => ({
  ...client,
  ticket: secret(),
}))

const known = clients.map(({ user_id, client_id, ticket }) => ({ user_id, client_id, ticket }))
const plan = { key, clients: known, app: NOTES, state, port: Number(values.port) }
const started = await start()
if (started) {
  const { host } = started
  const children = startClients({
    urls: host.urls,
    clients,
    onExit: ({ client_id, pid }, how) => say(client_id, pid, how),
    onMessage: (_client, { control_url }) => (control.url = control_url),
  })
  started.answer = createQuestions({
    key,
    isReady: () => control.url !== undefined,
    signal: ending.signal,
    host,
    keyText: fromEnvironment ? '$SERVICE_ADMIN_KEY' : key,
    clients: CONSOLES.map((client, i) => ({ ...client, pid: children.pids[i] })),
    notes: { ...NOTES, pid: children.pids.at(-1) },
    control,
    state,
  })
  announce(started)
  try {
    if (!ending.signal.aborted) await new Promise((resolve) => ending.signal.addEventListener('abort', resolve))
  } finally {
    await children.close()
    await started.close()
  }
}
// A shared store starts empty: notes are deleted too unless --state was given.
if (values.redis && !values.state) await rm(state, { recursive: true, force: true })

/**
 * Starts the one node in this process, or several over a store. Resolves to the host, and to where its page `/questions` is:
 * `answer` is set when there are clients to ask about. `undefined` without such a store.
 */
async function start() {
  const started = { answer: async () => undefined }
  const questions = (request) => started.answer(request)
  if (values.redis === undefined) {
    const host = await startNode({ ...plan, questions })
    return Object.assign(started, { host, questions: `${host.urls[0]}/questions`, close: () => host.close() })
  }
  const { startDeployment } = await import('./deployment.mjs')
  try {
    const host = await startDeployment({ ...plan, redis: values.redis, deploymentId: values.deployment, onExit: say })
    // Nodes and observer are processes of their own, which may be killed.
    const answer = async (request) => (await questions(request)) ?? new Response(null, { status: 404 })
    const server = await startNodeServer(answer, { host: '127.0.0.1', port: 0, allowedHosts: ['loopback'] })
    const close = () => Promise.all([host.close(), server.close()])
    return Object.assign(started, { host, questions: `${server.url}/questions`, close })
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}

/** Runs the world `name` until the process has to end. */
async function runWorld(name) {
  const { signal } = ending
  try {
    const world = await startWorld({ name, key, port: Number(values.port), signal })
    announceAt(world.about, world.url + PREFIX)
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    await world.close()
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}

/** Prints where everything is, the dashboard last. The pages take the key out of the address bar. */
function announce({ host, questions }) {
  announceAt('a relay with four clients, each a process of its own', host.diagnostics, [['questions', questions]])
}

function announceAt(about, diagnostics, others = []) {
  const fragment = fromEnvironment ? '' : `#key=${encodeURIComponent(key)}`
  console.log(
    [
      `relayscope demo: ${about}. Ctrl-C ends it.`,
      `diagnostics: ${diagnostics}`,
      `admin key: ${fromEnvironment ? '$SERVICE_ADMIN_KEY' : key}`,
      ...others.map(([name, url]) => `${name}: ${url}${fragment}`),
      `dashboard: ${new URL('/dashboard/', diagnostics)}${fragment}`,
    ].join('\n'),
  )
}
