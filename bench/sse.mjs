// Event streams to 1,000 connections over node:http: CPU per delivery and memory per connection, against a C epoll
// broadcaster, hono's streamSSE and better-sse in the same run. Every server is a process of its own, read from /proc.
// Run: npm run build && node bench/sse.mjs (better-sse: npm ci --prefix bench/peers). Quote the ratios.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const CONNECTIONS = 1_000
const WARM = 100
const SINGLES = 150
const BURSTS = 15
const BURST = 20
const TICK_MS = 10 // of utime and stime in /proc, on every Linux that node runs on
const PAGE_BYTES = 4_096

const event = () => ({
  event_id: 'message-1',
  name: 'note_changed',
  site_id: 'notes',
  published_at: new Date().toISOString(),
  data: null,
})

/** Each answers any request with an event stream; `publish(n)` sends n events to all in one tick. */
const servers = {
  async relayscope() {
    const site = await import('relayscope/cooperative-site')
    const { toNodeHandler } = await import('relayscope/node')
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
      authenticateHost: () => null,
      authenticateViewer: () => ({ user_id: 'alice' }),
    })
    await sites.put({ site_id: 'notes', owner: 'alice', mode: 'cooperative' })
    const { session_id } = await sessions.open({ site_id: 'notes', owner: 'alice' })
    await sessions.activate(session_id)
    return {
      listener: toNodeHandler(relay),
      path: `/sessions/${session_id}/events`,
      publish(count) {
        for (let n = 0; n < count; n++) bus.publish('users/alice/sites/notes/events', event())
      },
    }
  },
  async 'hono streamSSE'() {
    const { Hono } = await import('hono')
    const { streamSSE } = await import('hono/streaming')
    const { toNodeHandler } = await import('relayscope/node')
    const streams = new Set()
    let seq = 0
    const app = new Hono().get('/events', (c) =>
      streamSSE(c, async (stream) => {
        const waiting = []
        let wake = () => {}
        const own = (frame) => {
          waiting.push(frame)
          wake()
        }
        streams.add(own)
        stream.onAbort(() => streams.delete(own))
        await stream.writeSSE({ event: 'ready', data: '{}' })
        for (;;) {
          while (waiting.length > 0) await stream.writeSSE(waiting.shift())
          await new Promise((resolve) => {
            wake = resolve
          })
        }
      }),
    )
    return {
      listener: toNodeHandler((request) => app.fetch(request)),
      path: '/events',
      publish(count) {
        for (let n = 0; n < count; n++) {
          const id = `7f3a1111-0000-0000-0000-000000000000:${++seq}`
          const frame = { id, event: 'site_event', data: JSON.stringify({ ...event(), seq }) }
          for (const stream of streams) stream(frame)
        }
      },
    }
  },
  async 'better-sse'() {
    const { createChannel, createSession } = createRequire(new URL('peers/package.json', import.meta.url))('better-sse')
    const channel = createChannel()
    let seq = 0
    return {
      async listener(req, res) {
        const session = await createSession(req, res)
        channel.register(session)
        session.push({}, 'ready')
      },
      path: '/events',
      publish(count) {
        for (let n = 0; n < count; n++) channel.broadcast({ ...event(), seq: ++seq }, 'site_event')
      },
    }
  },
}

async function serve(name) {
  const { listener, path, publish } = await servers[name]()
  const server = createServer(listener)
  server.listen(0, '127.0.0.1', 4_096, () => console.log(JSON.stringify({ port: server.address().port, path })))
  for await (const line of createInterface({ input: process.stdin }))
    line === '0' ? globalThis.gc() : publish(Number(line))
  process.exit(0)
}

/** Starts a server and waits for the line that says where it listens. */
async function start(command, args) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line)
    const { port, path } = typeof said === 'number' ? { port: said, path: '/' } : said
    return { child, port, path }
  }
  throw new Error(`${command} ended`)
}

const cpuMs = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
const rssKb = (pid) => (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES) / 1_024

/** Counts the frames of all connections: each ends with an empty line. */
function createAudience(port, path) {
  let frames = 0
  let target = Number.POSITIVE_INFINITY
  let reached = () => {}
  const sockets = []
  function count(chunk) {
    for (let at = chunk.indexOf('\n\n'); at >= 0; at = chunk.indexOf('\n\n', at + 2)) frames++
    if (frames >= target) reached()
  }
  return {
    async join(connections) {
      for (let n = 0; n < connections; n++) {
        await new Promise((resolve, reject) => {
          const socket = connect(port, '127.0.0.1')
          let first = true
          socket.on('error', reject)
          socket.on('data', (chunk) => {
            count(chunk)
            if (first && chunk.includes('\n\n')) {
              first = false
              resolve()
            }
          })
          socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\naccept: text/event-stream\r\n\r\n`)
          sockets.push(socket)
        })
      }
      frames = 0
    },
    /** Resolves when `more` frames have come since the last time. */
    async receive(more) {
      target = more
      if (frames < target)
        await new Promise((resolve, reject) => {
          const timer = globalThis.setTimeout(() => reject(new Error(`${frames} of ${target} frames`)), 20_000)
          reached = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      target = Number.POSITIVE_INFINITY
      frames -= more
    },
    leave() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function measure({ child, port, path }) {
  const audience = createAudience(port, path)
  try {
    // What the first connections cost is the program's, and what a collection frees is nobody's.
    const settled = async () => {
      child.stdin.write('0\n')
      await setTimeout(200)
      return rssKb(child.pid)
    }
    await audience.join(WARM)
    const before = await settled()
    await audience.join(CONNECTIONS - WARM)
    const rss = ((await settled()) - before) / (CONNECTIONS - WARM)
    const run = async (times, burst) => {
      const start = cpuMs(child.pid)
      for (let n = 0; n < times; n++) {
        child.stdin.write(`${burst}\n`)
        await audience.receive(burst * CONNECTIONS)
      }
      return ((cpuMs(child.pid) - start) * 1_000) / (times * burst * CONNECTIONS)
    }
    await run(20, 1)
    await run(3, BURST)
    return { rss, single: await run(SINGLES, 1), burst: await run(BURSTS, BURST) }
  } finally {
    audience.leave()
    child.kill('SIGKILL')
  }
}

async function compare() {
  const here = mkdtempSync(join(tmpdir(), 'bench-sse-'))
  try {
    const binary = join(here, 'broadcaster')
    const source = fileURLToPath(new URL('broadcaster.c', import.meta.url))
    const compiled = spawnSync('gcc', ['-O2', '-o', binary, source], { stdio: 'inherit' }).status === 0
    if (!compiled) return console.log('no C compiler: nothing to compare with')
    const starts = { 'C broadcaster': [binary, ['170']] }
    for (const name of Object.keys(servers)) starts[name] = [process.execPath, ['--expose-gc', process.argv[1], name]]
    const results = {}
    for (const [name, [command, args]] of Object.entries(starts))
      results[name] = await start(command, args)
        .then(measure)
        .catch((error) => console.log(`  ${name} is left out: ${error.message}`))
    const base = results['C broadcaster']
    console.log(`${CONNECTIONS} connections; microseconds of CPU per delivery, and kB of memory per connection`)
    for (const [name, result] of Object.entries(results)) {
      if (!result) continue
      const ratio = (key) =>
        `${result[key].toFixed(1).padStart(7)} ${`${(result[key] / base[key]).toFixed(1)}x`.padEnd(7)}`
      console.log(
        `  ${name.padEnd(16)} single${ratio('single')} bursts of ${BURST}${ratio('burst')} ${result.rss.toFixed(0)} kB`,
      )
    }
  } finally {
    rmSync(here, { recursive: true })
  }
}

const name = process.argv[2]
await (name === undefined ? compare() : serve(name))
