/**
 * What the dashboard costs the browser: the first draw of 500 rows, and the script time per second while nothing
 * changes and while 1 % of the rows do, compared with a hand-written table of the same rows that updates only changed
 * cells; and what an open page costs while nothing changes among 5,000 connections. `node bench/dashboard.mjs`, after a
 * build; `CHROMIUM` names the browser.
 */
import { chromium } from 'playwright-core'
import { createDiagnosticsRouter, noopAuth } from 'relayscope'
import { createDashboard } from 'relayscope/dashboard'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { startNodeServer } from 'relayscope/node'
import { CHROMIUM } from './peers.mjs'
import { check, report } from './report.mjs'

const ROWS = 500
const CONNECTIONS = 5_000
const SECONDS = 10
const DRAWS = 5
const DRAWN_MS = 30_000
/** A new window of the browser draws itself first. */
const SETTLE_MS = 2_000
const QUESTION = `/connections?limit=${ROWS}`
const FIELDS = ['connection_id', 'user_id', 'client_id', 'client_type', 'status', 'ended_reason', 'node_id'].concat([
  'connected_at',
  'last_seen_at',
  'superseded_count',
])

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

/** The table by hand: asked each second with its tag, no row drawn again that is as it was. */
const PEER = `
  const table = document.body.appendChild(document.createElement('table'))
  const rows = new Map()
  let tag = ''
  async function draw() {
    const response = await fetch('/ops/diagnostics${QUESTION}', { headers: { 'if-none-match': tag }, cache: 'no-store' })
    if (response.status === 304) return
    tag = response.headers.get('etag')
    for (const item of (await response.json()).items) {
      const { connection_id } = item
      const row = rows.get(connection_id) ?? table.appendChild(document.createElement('tr'))
      rows.set(connection_id, row)
      for (const [i, field] of ${JSON.stringify(FIELDS)}.entries()) {
        const cell = row.cells[i] ?? row.appendChild(document.createElement('td'))
        const text = String(item[field] ?? '–')
        if (cell.textContent !== text) cell.textContent = text
      }
    }
  }
  draw()
  setInterval(draw, 1_000)`

/** When rows filled the window to its end, and when all were drawn, by the page's clock, which begins with its navigation. */
const DRAWN = `
  const when = (isSo, name) => {
    // A message that is sent in a frame arrives when that frame is painted, and before the next one is begun.
    const painted = new MessageChannel()
    painted.port2.onmessage = () => { window[name] = performance.now() }
    const look = () => isSo([...document.querySelectorAll('tr')])
      ? painted.port1.postMessage(null)
      : requestAnimationFrame(look)
    requestAnimationFrame(look)
  }
  when((rows) => rows.at(-1)?.getBoundingClientRect().bottom >= innerHeight, 'readAt')
  when((rows) => rows.length >= ${ROWS}, 'drawnAt')`

async function start(count) {
  const facilities = createMemoryFacilities()
  const ids = []
  for (let i = 0; i < count; i++) {
    const client = { user_id: `user-${i % 50}`, client_id: `client-${i}`, instance_id: 'i', client_type: 'web' }
    ids.push((await facilities.connections.connect(client)).connection_id)
  }
  const prefix = '/ops/diagnostics'
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth(), prefix })
  const dashboard = createDashboard({ api: prefix })
  const text = (body, type) => new Response(body, { headers: { 'content-type': `${type}; charset=utf-8` } })
  const server = await startNodeServer((request) => {
    const { pathname } = new URL(request.url)
    if (router.owns(pathname)) return router(request)
    if (pathname === '/peer.js') return text(PEER, 'text/javascript')
    if (pathname === '/peer')
      return text('<!doctype html><body><script type="module" src="/peer.js"></script>', 'text/html')
    return dashboard(request)
  })
  let at = 0
  return {
    url: server.url,
    /** A sign of life of 1 % of the connections, never of the same ones in a row. */
    async change() {
      for (let i = 0; i < ROWS / 100; i++) await facilities.connections.heartbeat(ids[at++ % ROWS])
    },
    async close() {
      await server.close()
      await facilities.close()
    },
  }
}

/** Opens a page of its own; says what its script, its style and layout have taken so far, in ms. */
async function open(browser, url) {
  const context = await browser.newContext({ viewport: { width: 1240, height: 900 } })
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  await session.send('Performance.enable')
  await page.addInitScript(DRAWN)
  await sleep(SETTLE_MS)
  await page.goto(url)
  const spent = async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    const of = (name) => metrics.find((metric) => metric.name === name).value * 1_000
    return { script: of('ScriptDuration'), layout: of('LayoutDuration') + of('RecalcStyleDuration') }
  }
  const drawnAt = async () => {
    for (let waits = 0; ; waits++) {
      if (waits > DRAWN_MS / 20) throw new Error(`${url} has not drawn its rows`)
      const at = await page.evaluate(() => window.drawnAt)
      if (at !== undefined) return at
      await sleep(20)
    }
  }
  const clients = () => page.evaluate(() => new Set(document.body.textContent.match(/client-\d+/g)).size)
  return { spent, drawnAt, clients, readAt: () => page.evaluate(() => window.readAt), close: () => context.close() }
}

async function measureDraws(browser, url) {
  const draws = []
  for (let i = 0; i < DRAWS; i++) {
    const page = await open(browser, url)
    const drawn = await page.drawnAt()
    draws.push({ read: await page.readAt(), drawn, ...(await page.spent()) })
    await page.close()
  }
  return Object.fromEntries(Object.keys(draws[0]).map((name) => [name, median(draws.map((draw) => draw[name]))]))
}

/** ms of script, and of style and layout, of a second in which `act` is called. */
async function measureSeconds(browser, url, act) {
  const page = await open(browser, url)
  await page.drawnAt()
  await sleep(3_000)
  const seconds = []
  for (let second = 0; second < SECONDS; second++) {
    const before = await page.spent()
    await act()
    await sleep(1_000)
    const after = await page.spent()
    seconds.push({ script: after.script - before.script, layout: after.layout - before.layout })
  }
  await page.close()
  return { script: median(seconds.map(({ script }) => script)), layout: median(seconds.map(({ layout }) => layout)) }
}

/** CPU of the main thread and of the whole renderer while `url` is open and nothing changes, in % of a core. */
async function measureIdle(browser, url) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  const [session, processes] = [await context.newCDPSession(page), await browser.newBrowserCDPSession()]
  // CPU of the thread and not time on the clock, which a busy machine prolongs.
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const spent = async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    const { processInfo } = await processes.send('SystemInfo.getProcessInfo')
    const renderers = processInfo.filter(({ type }) => type === 'renderer')
    return {
      thread: metrics.find(({ name }) => name === 'TaskDuration').value,
      renderer: renderers.reduce((sum, { cpuTime }) => sum + cpuTime, 0),
      at: performance.now() / 1_000,
    }
  }
  await page.goto(url)
  await page.locator('main .state').first().waitFor()
  await sleep(3 * SETTLE_MS)
  const before = await spent()
  await sleep(2_000 * SECONDS)
  const after = await spent()
  await context.close()
  const share = (name) => (100 * (after[name] - before[name])) / (after.at - before.at)
  return { thread: share('thread'), renderer: share('renderer') }
}

const host = await start(ROWS)
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
})
const ms = (value) => `${value.toFixed(1)} ms`
const pages = { dashboard: `${host.url}/dashboard/#${QUESTION}`, 'by hand': `${host.url}/peer` }
// Until the caches of browser and server are warm.
for (const url of Object.values(pages)) await measureDraws(browser, url)
const figures = {}
for (const [name, url] of Object.entries(pages)) {
  const { read, drawn, script, layout } = await measureDraws(browser, url)
  const page = await open(browser, url)
  await page.drawnAt()
  check(`${name}: every row is drawn`, await page.clients(), ROWS, ROWS)
  await page.close()
  const quiet = await measureSeconds(browser, url, async () => {})
  const busy = await measureSeconds(browser, url, host.change)
  figures[name] = { read, drawn, busy: busy.script }
  console.log(
    `${name.padEnd(8)} a screen of ${ROWS} rows after ${ms(read)}, all after ${ms(drawn)} (script ${ms(script)}, style and layout ${ms(layout)}); a second: script ${ms(quiet.script)} while nothing changes, ${ms(busy.script)} while 1 % does (style and layout ${ms(busy.layout)})`,
  )
}
const against = (key) => figures.dashboard[key] / figures['by hand'][key]
const better = 'lower'
report([
  { what: `a screen of ${ROWS} rows drawn`, goal: 300, found: figures.dashboard.read, unit: 'ms', better },
  // None is set for the others: the table by hand has no filters, no links and no words.
  {
    what: `a screen of ${ROWS} rows, against all of a table by hand`,
    goal: null,
    found: against('read'),
    unit: '×',
    better,
  },
  {
    what: `all of ${ROWS} rows drawn, against a table by hand`,
    goal: null,
    found: against('drawn'),
    unit: '×',
    better,
  },
  { what: 'script of a second in which 1 % changes', goal: 16, found: figures.dashboard.busy, unit: 'ms', better },
])
const large = await start(CONNECTIONS)
for (const [name, address] of [
  ['the overview', '/'],
  ['the list of connections', '/connections'],
]) {
  const { thread, renderer } = await measureIdle(browser, `${large.url}/dashboard/#${address}`)
  report([
    { what: `${name}, open and idle: main thread`, goal: 0.6, found: thread, unit: '% of a core', better },
    { what: `${name}, open and idle: whole renderer`, goal: null, found: renderer, unit: '% of a core', better },
  ])
}
await large.close()
await browser.close()
await host.close()
