// Event streams to 1,000 connections over node:http: CPU per delivery and memory per connection, and what 10,000 idle
// ones and one event to all of them cost; against a C epoll broadcaster, nchan (nginx), `res.write` by hand, hono's
// streamSSE and better-sse in the same run. Every server is a process of its own, read from /proc. Quote the ratios.
// Run: npm run build && node bench/sse.mjs [name…]
// Peers: bench/peers installs itself, apt-get install nginx-light libnginx-mod-nchan. Who is absent is left out by name.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { requirePeers } from './peers.mjs'
import { check, report } from './report.mjs'

const CONNECTIONS = 1_000
const IDLE = 10_000
const JOINING = 100 // at once
const WARM = 100
const SINGLES = 150
const BURSTS = 60
const BURST = 20
const TICK_MS = 10 // of utime and stime in /proc, on every Linux that node runs on
const PAGE_BYTES = 4_096
const BASE = 'C broadcaster'
const BY_HAND = 'node:http by hand'
/** Servers take turns, and the least disturbed round of each counts. */
const ROUNDS = 3
/**
 * CPU and memory against node:http by hand, MiB and kB of memory, and ms until all have one event. None against C:
 * `res.write` alone costs a Node process twice what the broadcaster takes.
 */
const GOALS = { single: 1.5, burst: 1.5, rss: 2, idle: 200, each: 35, ms: 1_000 }

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
      streamsPerViewer: 1_000_000,
      streamsPerViewerInSession: 1_000_000,
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
  /** What is left to gain: one write of the shared bytes to each response, and nothing else. */
  async [BY_HAND]() {
    const encoder = new TextEncoder()
    const viewers = new Set()
    let seq = 0
    return {
      listener(_, res) {
        res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
        res.write('event: ready\ndata: {}\n\n')
        viewers.add(res)
        res.on('close', () => viewers.delete(res))
      },
      path: '/events',
      publish(count) {
        let frames = ''
        for (let n = 0; n < count; n++) {
          const id = `7f3a1111-0000-0000-0000-000000000000:${++seq}`
          frames += `id: ${id}\nevent: site_event\ndata: ${JSON.stringify({ ...event(), seq })}\n\n`
        }
        const bytes = encoder.encode(frames)
        for (const res of viewers) res.write(bytes)
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
    const { createChannel, createSession } = requirePeers()('better-sse')
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
    return { child, port, path, pid: child.pid, publish: (count) => child.stdin.write(`${count}\n`) }
  }
  throw new Error(`${command} ended`)
}

const NCHAN = '/usr/lib/nginx/modules/ngx_nchan_module.so'

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}

/** nginx with one worker, which alone is measured: it takes events by POST and keeps none. */
async function startNchan(here) {
  if (!existsSync(NCHAN)) throw new Error(`${NCHAN} is not installed`)
  const port = await freePort()
  const config = join(here, 'nginx.conf')
  writeFileSync(
    config,
    `load_module ${NCHAN};
daemon off; worker_processes 1; worker_rlimit_nofile 20000; error_log stderr crit; pid ${here}/nginx.pid;
events { worker_connections 12000; }
http {
  access_log off; keepalive_requests 100000000;
  client_body_temp_path ${here}/body; proxy_temp_path ${here}/proxy; fastcgi_temp_path ${here}/fastcgi;
  uwsgi_temp_path ${here}/uwsgi; scgi_temp_path ${here}/scgi;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location /events { nchan_subscriber eventsource; nchan_channel_id notes; }
    location /publish { nchan_publisher; nchan_channel_id notes; nchan_message_buffer_length 100; }
  }
}
`,
  )
  const child = spawn('nginx', ['-p', here, '-c', config], { stdio: ['ignore', 'ignore', 'inherit'] })
  const worker = async () => {
    for (let n = 0; n < 100; n++) {
      const [pid] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ')
      if (pid) return Number(pid)
      await setTimeout(20)
    }
    throw new Error('nginx has no worker')
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let seq = 0
  const publish = (count) => {
    for (let n = 0; n < count; n++) {
      const post = request({ agent, port, host: '127.0.0.1', method: 'POST', path: '/publish' }, (res) => res.resume())
      // What it does not take is missed as frames.
      post.on('error', () => {})
      post.setHeader('x-eventsource-event', 'site_event')
      post.end(JSON.stringify({ ...event(), seq: ++seq }))
    }
  }
  // Its worker goes with the master that is asked to go, not with one that is killed.
  const stop = () => {
    agent.destroy()
    child.kill('SIGTERM')
  }
  return { child, stop, port, path: '/events', pid: await worker(), publish }
}

const cpuMs = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
const rssKb = (pid) => (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES) / 1_024

/** Counts the frames of all connections: each ends with an empty line. */
function createAudience(port, path) {
  let frames = 0
  let published = 0
  let target = Number.POSITIVE_INFINITY
  let reached = () => {}
  const sockets = []
  /** Frames of each connection since all had joined. */
  let own = []
  function count(chunk, index) {
    const before = frames
    for (let at = chunk.indexOf('\n\n'); at >= 0; at = chunk.indexOf('\n\n', at + 2)) frames++
    own[index] += frames - before
    if (frames >= target) reached()
  }
  return {
    async join(connections) {
      const one = () =>
        new Promise((resolve, reject) => {
          const socket = connect(port, '127.0.0.1')
          const index = sockets.length
          let first = true
          socket.on('error', reject)
          socket.on('data', (chunk) => {
            count(chunk, index)
            if (first && chunk.includes('\n\n')) {
              first = false
              resolve()
            }
          })
          socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\naccept: text/event-stream\r\n\r\n`)
          sockets.push(socket)
        })
      for (let left = connections; left > 0; left -= JOINING)
        await Promise.all(Array.from({ length: Math.min(left, JOINING) }, one))
      frames = 0
      published = 0
      own = sockets.map(() => 0)
    },
    /** How many connections have another number of frames than were published since all had joined. */
    wrong: () => own.filter((each) => each !== published).length,
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
      published += more / sockets.length
    },
    leave() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Opens the connections of one server; `act` measures what they cost. */
async function withAudience({ child, stop = () => child.kill('SIGKILL'), pid, port, path, publish }, act) {
  const audience = createAudience(port, path)
  // Excludes the one-time cost of the first connections, and garbage.
  const settled = async () => {
    publish(0)
    await setTimeout(200)
    return rssKb(pid)
  }
  const join = async (connections) => {
    await audience.join(WARM)
    const before = await settled()
    await audience.join(connections - WARM)
    return ((await settled()) - before) / (connections - WARM)
  }
  try {
    return await act({ audience, join, publish, pid })
  } finally {
    audience.leave()
    stop()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

async function measure({ audience, join, publish, pid }) {
  const rss = await join(CONNECTIONS)
  const run = async (times, burst) => {
    const start = cpuMs(pid)
    for (let n = 0; n < times; n++) {
      publish(burst)
      await audience.receive(burst * CONNECTIONS)
    }
    return ((cpuMs(pid) - start) * 1_000) / (times * burst * CONNECTIONS)
  }
  await run(20, 1)
  await run(10, BURST)
  const result = { rss, single: await run(SINGLES, 1), burst: await run(BURSTS, BURST) }
  const each = 20 + 10 * BURST + SINGLES + BURSTS * BURST
  check('every connection receives every event once', audience.wrong(), 0, each * CONNECTIONS)
  return result
}

/** The time of the one event is that of the slower of the server and this process, which reads it. */
async function measureIdle({ audience, join, publish, pid }) {
  const rss = ((await join(IDLE)) * (IDLE - WARM)) / 1_024
  const [cpu, start] = [cpuMs(pid), performance.now()]
  publish(1)
  await audience.receive(IDLE)
  return { rss, ms: performance.now() - start, cpu: cpuMs(pid) - cpu }
}

function tell({ relayscope: ours, [BASE]: base, [BY_HAND]: hand }, { relayscope: idle, [BY_HAND]: idleByHand }) {
  const lower = (what, goal, found, unit) => ({ what, goal, found, unit, better: 'lower' })
  const times = (what, goal, found) => lower(what, goal, found, '×')
  if (ours && base)
    report([
      times('CPU of a delivery, one event at a time, against C', null, ours.single / base.single),
      times(`the same in bursts of ${BURST}, against C`, null, ours.burst / base.burst),
    ])
  if (hand && base) report([times(`node:http by hand in bursts of ${BURST}, against C`, null, hand.burst / base.burst)])
  // `res.write` alone, which is what a Node process has to pay.
  if (ours && hand)
    report([
      times(
        'CPU of a delivery, one event at a time, against node:http by hand',
        GOALS.single,
        ours.single / hand.single,
      ),
      times(`the same in bursts of ${BURST}, against node:http by hand`, GOALS.burst, ours.burst / hand.burst),
    ])
  if (idle)
    report([
      lower(`memory of ${IDLE} idle connections`, GOALS.idle, idle.rss, 'MiB'),
      // Of a thousand, twice as much: then half is the young generation of V8's heap, which grows once.
      lower('memory of each of them', GOALS.each, (idle.rss * 1_024) / (IDLE - WARM), 'kB'),
      lower('one event to all of them', GOALS.ms, idle.ms, 'ms'),
    ])
  if (idle && idleByHand)
    report([times('that memory, against node:http by hand', GOALS.rss, idle.rss / idleByHand.rss)])
}

async function compare(only) {
  const here = mkdtempSync(join(tmpdir(), 'bench-sse-'))
  try {
    const binary = join(here, 'broadcaster')
    const source = fileURLToPath(new URL('broadcaster.c', import.meta.url))
    const compiled = spawnSync('gcc', ['-O2', '-o', binary, source], { stdio: 'inherit' }).status === 0
    if (!compiled) return console.log('no C compiler: nothing to compare with')
    const starts = { [BASE]: () => start(binary, ['170']), nchan: () => startNchan(here) }
    for (const name of Object.keys(servers))
      starts[name] = () => start(process.execPath, ['--expose-gc', process.argv[1], 'serve', name])
    const measureAll = async (act) => {
      const results = {}
      for (const [name, begin] of Object.entries(starts)) {
        if (only.length > 0 && name !== BASE && name !== BY_HAND && !only.includes(name)) continue
        await begin()
          .then((server) => withAudience(server, act))
          .then((result) => {
            results[name] = result
          })
          .catch((error) => console.log(`  ${name} is left out: ${error.message}`))
      }
      return results
    }
    const results = {}
    for (let round = 0; round < ROUNDS; round++)
      for (const [name, result] of Object.entries(await measureAll(measure)))
        results[name] = Object.fromEntries(
          Object.entries(result).map(([key, found]) => [key, Math.min(found, results[name]?.[key] ?? found)]),
        )
    console.log(`${CONNECTIONS} connections; microseconds of CPU per delivery, and kB of memory per connection`)
    for (const [name, result] of Object.entries(results)) {
      const ratio = (key) =>
        `${result[key].toFixed(1).padStart(7)} ${`${(result[key] / results[BASE][key]).toFixed(1)}x`.padEnd(7)}`
      console.log(
        `  ${name.padEnd(16)} single${ratio('single')} bursts of ${BURST}${ratio('burst')} ${result.rss.toFixed(0)} kB`,
      )
    }
    console.log(`${IDLE} idle connections; MiB of memory, and one event to all`)
    const idle = await measureAll(measureIdle)
    for (const [name, { rss, ms, cpu }] of Object.entries(idle))
      console.log(
        `  ${name.padEnd(16)} ${rss.toFixed(0).padStart(5)} MiB ${ms.toFixed(0).padStart(6)} ms (CPU ${cpu} ms)`,
      )
    tell(results, idle)
  } finally {
    rmSync(here, { recursive: true, force: true })
  }
}

const [command, ...names] = process.argv.slice(2)
await (command === 'serve' ? serve(names[0]) : compare(process.argv.slice(2)))
