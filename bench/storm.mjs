/**
 * A reconnect storm: all viewers of a site are cut at once and come back at once, each with a connection of the registry, which
 * is disconnected and registered again. Measured: time until all are served again, CPU of the server, and its peak memory;
 * against a bare node:http server with event streams and one Map. `node bench/storm.mjs [viewers]` (10,000), after a build.
 * `ulimit -n` must be twice the number. Server and viewers are processes of their own; quote the ratios.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { check, report } from './report.mjs'

const VIEWERS = Number(process.argv[2] ?? 10_000)
const STORMS = 3
/** Without a goal: CPU, since the server by hand checks no session, and keeps no history, no limits and no list of streams. */
const GOALS = { time: 3, cpu: 3.5, peak: 2 }
const event = { event_id: 'message-1', name: 'note_changed', site_id: 'notes', data: null }

const servers = {
  async 'by hand'() {
    const registry = new Map()
    const viewers = new Set()
    return {
      listener(req, res) {
        const client_id = req.headers['x-client']
        registry.set(client_id, { client_id, connected_at: new Date().toISOString(), status: 'connected' })
        res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
        res.write('event: ready\ndata: {}\n\n')
        viewers.add(res)
        res.on('close', () => {
          viewers.delete(res)
          registry.get(client_id).status = 'disconnected'
        })
      },
      path: '/events',
      publish() {
        const frame = `event: site_event\ndata: ${JSON.stringify(event)}\n\n`
        for (const res of viewers) res.write(frame)
      },
      count: async () => [...registry.values()].filter(({ status }) => status === 'connected').length,
    }
  },
  async relayscope() {
    const site = await import('relayscope/cooperative-site')
    const { createConnectionRegistry } = await import('relayscope/memory')
    const { toNodeHandler } = await import('relayscope/node')
    const registry = createConnectionRegistry({ maxConnections: 4 * VIEWERS, maxConnectionsPerUser: 4 * VIEWERS })
    const sites = site.createSiteRegistry()
    const sessions = site.createSessionRegistry({ sites })
    const bus = site.createCooperativeSiteEventBus()
    const relay = site.createCooperativeSiteRouter({
      sites,
      sessions,
      bus,
      ingest: async () => ({ accepted: true, duplicate: false }),
      connector: { call: async () => null },
      policy: site.createSessionPolicy({ sessions }),
      streamsPerViewer: 1_000_000,
      streamsPerViewerInSession: 1_000_000,
      authenticateHost: () => null,
      authenticateViewer: () => ({ user_id: 'alice' }),
    })
    await sites.put({ site_id: 'notes', owner: 'alice', mode: 'cooperative' })
    const { session_id } = await sessions.open({ site_id: 'notes', owner: 'alice' })
    await sessions.activate(session_id)
    const serve = toNodeHandler(relay)
    return {
      async listener(req, res) {
        const client_id = req.headers['x-client']
        const client = { user_id: 'alice', client_id, instance_id: `${Math.random()}`, client_type: 'web' }
        const { connection_id } = await registry.connect(client)
        res.on('close', () => void registry.disconnect(connection_id))
        serve(req, res)
      },
      path: `/sessions/${session_id}/events`,
      publish: () =>
        bus.publish('users/alice/sites/notes/events', { ...event, published_at: new Date().toISOString() }),
      async count() {
        const { total } = await registry.inspector.countConnections(
          { status: 'connected' },
          { signal: new AbortController().signal },
        )
        return total
      },
    }
  },
}

async function serve(name) {
  const { listener, path, publish, count } = await servers[name]()
  const server = createServer(listener)
  server.listen(0, '127.0.0.1', 16_384, () => process.send({ port: server.address().port, path }))
  process.on('message', async (what) => {
    if (what === 'publish') publish()
    if (what === 'count') process.send(await count())
    if (what === 'usage') process.send({ cpu: process.cpuUsage(), peak: peakOf(process.pid) })
  })
  process.on('disconnect', () => process.exit())
}

/** Peak resident memory in MiB. */
const peakOf = (pid) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1_024

async function ask(child, what) {
  child.send(what)
  const [answer] = await once(child, 'message')
  return answer
}

/** Opens all streams at once; resolves when each has its first frame. */
function join({ port, path }) {
  const viewers = Array.from({ length: VIEWERS }, (_, i) => ({ frames: 0, i }))
  const served = viewers.map(
    (viewer) =>
      new Promise((resolve, reject) => {
        const socket = connect(port, '127.0.0.1')
        viewer.socket = socket
        socket.on('error', reject)
        socket.on('data', (chunk) => {
          for (let at = chunk.indexOf('\n\n'); at >= 0; at = chunk.indexOf('\n\n', at + 2)) viewer.frames++
          // A frame ends with an empty line; so does the head, with another one.
          if (viewer.frames > 0) resolve()
          viewer.onFrame?.()
        })
        socket.write(
          `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nx-client: client-${viewer.i}\r\naccept: text/event-stream\r\n\r\n`,
        )
      }),
  )
  return Promise.all(served).then(() => viewers)
}

async function measure(name) {
  const child = fork(fileURLToPath(import.meta.url), [String(VIEWERS), 'serve', name])
  const [at] = await once(child, 'message')
  let viewers = await join(at)
  const storms = []
  for (let storm = 0; storm < STORMS; storm++) {
    const before = await ask(child, 'usage')
    const start = performance.now()
    for (const { socket } of viewers) socket.destroy()
    viewers = await join(at)
    const ms = performance.now() - start
    const { cpu } = await ask(child, 'usage')
    storms.push({ ms, cpu: (cpu.user + cpu.system - before.cpu.user - before.cpu.system) / VIEWERS })
  }
  for (const viewer of viewers) viewer.frames = 0
  const all = Promise.all(viewers.map((viewer) => new Promise((resolve) => (viewer.onFrame = resolve))))
  child.send('publish')
  await all
  const wrong = viewers.filter(({ frames }) => frames !== 1).length
  check(`${name}: after the storms one event reaches every viewer once`, wrong, 0, VIEWERS)
  // The server has received every close by then, or soon after.
  let count
  for (let tries = 0; tries < 100 && count !== VIEWERS; tries++) {
    count = await ask(child, 'count')
    if (count !== VIEWERS) await new Promise((resolve) => setTimeout(resolve, 100))
  }
  if (name === 'relayscope') check('every client has one connection', count, VIEWERS, VIEWERS)
  const { peak } = await ask(child, 'usage')
  for (const { socket } of viewers) socket.destroy()
  child.disconnect()
  if (child.exitCode === null) await once(child, 'exit')
  const least = (key) => Math.min(...storms.map((storm) => storm[key]))
  return { ms: least('ms'), cpu: least('cpu'), peak }
}

async function main() {
  const results = {}
  for (const name of Object.keys(servers)) {
    results[name] = await measure(name)
    const { ms, cpu, peak } = results[name]
    console.log(
      `${name.padEnd(12)} ${VIEWERS} served again after ${ms.toFixed(0)} ms, ${cpu.toFixed(0)} µs of CPU each, at most ${peak.toFixed(0)} MiB`,
    )
  }
  const { 'by hand': hand, relayscope: ours } = results
  const lower = (what, goal, found, unit) => ({
    what: `${VIEWERS} viewers and connections cut at once: ${what}`,
    goal,
    found,
    unit,
    better: 'lower',
  })
  report([
    lower('time until all are served again, against node:http by hand', GOALS.time, ours.ms / hand.ms, '×'),
    lower('CPU of the server for that, against node:http by hand', GOALS.cpu, ours.cpu / hand.cpu, '×'),
    lower('the time itself', null, ours.ms, 'ms'),
    lower('peak memory', null, ours.peak, 'MiB'),
    lower('peak memory, against node:http by hand', GOALS.peak, ours.peak / hand.peak, '×'),
  ])
}

if (process.argv[3] === 'serve') await serve(process.argv[4])
else {
  await main()
  process.exit()
}
