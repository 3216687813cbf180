/**
 * What a watch of 500 rows costs the serving process, over HTTP, for 1 watcher, 32 (the maximum of one principal) and
 * 1,000 (the maximum of a router): while nothing changes, and while 1 % of the rows change each second. Compared with a
 * node:http server that writes the same number of bytes to as many clients each second, with a timer of one second, and
 * with a watch by hand: a timer that reads as many records, compares them with those of the second before by identity, and
 * writes those that changed.
 * The watchers run in their own process. `node --expose-gc bench/watch.mjs`, after a build; `bench/questions.mjs` runs
 * it too.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createDiagnosticsRouter } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { check, report } from './report.mjs'

const SECONDS = 6
const ROWS = 500
const VIEW = `/connections?limit=${ROWS}`
/** The most of one principal, and of a router. */
const [SHARE, MOST] = [32, 1_000]
/** ms/s of a watch in which nothing changes, over a timer that does nothing. */
const GOAL_IDLE = 0.2
/** ms/s of one watch in which 1 % changes. */
const GOAL_BUSY = 3
/** For more watchers, against a server that writes as much to as many: most of what they cost is the writing. */
const GOAL_MANY = 1.5
const PRINCIPAL_HEADER = 'x-principal'
/** Accepts any name: a thousand watchers are more than one principal may have. */
export const namedAuth = {
  authenticate: ({ headers }) => ({ name: headers.get(PRINCIPAL_HEADER) ?? 'principal-0' }),
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** CPU ms since `from`: on a busy machine waiting must not count. */
function cpuMs(from) {
  const { user, system } = process.cpuUsage(from)
  return (user + system) / 1_000
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

async function listen(handler) {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

/** CPU ms of a second in which `act` is called, with it and without it, while `watchers` watch a path. */
async function costOf(server, path, watchers, act) {
  const child = fork(fileURLToPath(import.meta.url), [
    'watch',
    String(watchers),
    `http://127.0.0.1:${server.address().port}${path}`,
  ])
  await once(child, 'message')
  globalThis.gc?.()
  await sleep(2_500)
  const seconds = []
  for (let second = 0; second < SECONDS; second++) {
    const from = process.cpuUsage()
    await act()
    const own = cpuMs(from)
    await sleep(1_000)
    seconds.push({ own, all: cpuMs(from) })
  }
  child.kill()
  await once(child, 'exit')
  await sleep(200)
  return { all: median(seconds.map(({ all }) => all)), rest: median(seconds.map(({ all, own }) => all - own)) }
}

/** A watch of `rows` records by hand, without access rules, filters, cursors, time limits or a second store. */
async function watchByHand(rows) {
  const table = new Map(rows.map((row) => [row.connection_id, { row, text: JSON.stringify(row) }]))
  const held = new Set()
  let before = new Map(table)
  let version = 0
  const server = await listen((_, res) => {
    held.add(res.writeHead(200, { 'content-type': 'text/event-stream' }))
    res.on('close', () => held.delete(res)).write(':\n\n')
  })
  const timer = setInterval(() => {
    const now = new Map()
    for (const [id, entry] of table) now.set(id, entry)
    const upsert = []
    for (const [id, entry] of now) if (before.get(id) !== entry) upsert.push(entry.text)
    const remove = [...before.keys()].filter((id) => !now.has(id))
    before = now
    if (upsert.length + remove.length === 0) return
    const page = `{"observed_at":"${new Date().toISOString()}","upsert":[${upsert}],"remove":${JSON.stringify(remove)}}`
    const frame = Buffer.from(`id: ${++version}\nevent: delta\ndata: ${page}\n\n`)
    for (const res of held) res.write(frame)
  }, 1_000)
  return {
    server,
    change(ids) {
      for (const id of ids) {
        const row = { ...table.get(id).row, last_seen: new Date().toISOString() }
        table.set(id, { row, text: JSON.stringify(row) })
      }
    },
    close() {
      clearInterval(timer)
      server.close()
    },
  }
}

export async function measureWatches(router, { connections }) {
  const list = await router.reply(new Request(`http://localhost${VIEW}`))
  // A sign of life of each changes 1 % of the rows.
  const changing = JSON.parse(list.body).items.slice(10, 10 + ROWS / 100)
  const connection_ids = changing.map(({ connection_id }) => connection_id)
  const watched = await listen(toNodeHandler(router))
  const held = new Set()
  const bare = await listen((_, res) => {
    held.add(res.writeHead(200, { 'content-type': 'text/event-stream' }))
    res.on('close', () => held.delete(res)).write(':\n\n')
  })
  const path = `/watch?view=${encodeURIComponent(VIEW)}`
  const nothing = () => {}
  const change = async () => {
    for (const id of connection_ids) await connections.heartbeat(id)
  }
  const { body } = await router.reply(new Request(`http://localhost${path}`))
  await body.next()
  await change()
  const bytes = Buffer.from((await body.next()).value)
  await body.return()
  const changed = connection_ids.filter((id) => bytes.includes(id))
  check('a watch receives every row that changed', changed, connection_ids, connection_ids.length)
  const write = () => {
    for (const res of held) res.write(bytes)
  }
  // Until compilers and collectors have done with what came before.
  await costOf(watched, path, 1, change)
  const { rest: idle } = await costOf(bare, '/', 0, nothing)
  const timer = setInterval(nothing, 1_000)
  const { rest: timed } = await costOf(bare, '/', 0, nothing)
  clearInterval(timer)
  console.log(
    `  a timer of one second that does nothing: ${(timed - idle).toFixed(2)} ms CPU/s, the minimum for reading once a second`,
  )
  const own = await watchByHand(JSON.parse(list.body).items)
  await costOf(own.server, '/', 1, () => own.change(connection_ids))
  const byHand = (await costOf(own.server, '/', 1, () => own.change(connection_ids))).rest - idle
  own.close()
  report([
    {
      what: `CPU of a watch of ${ROWS} rows by hand, 1 % changing`,
      goal: null,
      found: byHand,
      unit: 'ms/s',
      better: 'lower',
    },
  ])
  for (const watchers of [1, SHARE, MOST]) {
    const quiet = (await costOf(watched, path, watchers, nothing)).rest - idle
    const busy = (await costOf(watched, path, watchers, change)).rest - idle
    // Here the writing is the act, and counts.
    const plain = (await costOf(bare, '/', watchers, write)).all - idle
    console.log(
      `  watch of ${ROWS} rows, ${String(watchers).padStart(4)} watchers: ${quiet.toFixed(2)} ms CPU/s while nothing changes, ${busy.toFixed(2)} ms/s while 1 % does (${bytes.length} bytes); node:http writing as much to as many ${plain.toFixed(2)} ms/s: ${(busy / plain).toFixed(2)} ×`,
    )
    const costs = `CPU of ${watchers} watching ${ROWS} rows`
    const better = 'lower'
    report([
      { what: `${costs}, nothing changing`, goal: null, found: quiet, unit: 'ms/s', better },
      {
        what: `${costs}, nothing changing, over a timer of a second`,
        goal: watchers > SHARE ? null : GOAL_IDLE,
        found: quiet - timed + idle,
        unit: 'ms/s',
        better,
      },
      { what: `${costs}, 1 % changing`, goal: watchers > 1 ? null : GOAL_BUSY, found: busy, unit: 'ms/s', better },
      // The bare server writes data that another process has created; that cost is small.
      {
        what: `${costs}, 1 % changing, against node:http`,
        goal: watchers > 1 ? GOAL_MANY : null,
        found: busy / plain,
        unit: '×',
        better,
      },
    ])
  }
  watched.close()
  bare.close()
}

/** The watchers: so many requests, whose answers are taken and thrown away. */
function watch(watchers, url) {
  let open = 0
  const told = () => open === watchers && process.send('ready')
  for (let i = 0; i < watchers; i++)
    get(url, { agent: false, headers: { [PRINCIPAL_HEADER]: `principal-${Math.floor(i / SHARE)}` } }, (res) => {
      res.resume()
      open++
      told()
    })
  told()
  // Keeps the process alive without a watch.
  setInterval(() => {}, 60_000)
  process.on('disconnect', () => process.exit())
}

async function main() {
  const facilities = createMemoryFacilities()
  for (let i = 0; i < 1_000; i++)
    await facilities.connections.connect({
      user_id: `user-${i % 100}`,
      client_id: `client-${i}`,
      instance_id: 'i',
      client_type: 'web',
    })
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: namedAuth, onError: null })
  await measureWatches(router, facilities)
  await facilities.close()
}

const [own, role, watchers, url] = process.argv.slice(1)
if (own === fileURLToPath(import.meta.url)) await (role === 'watch' ? watch(Number(watchers), url) : main())
