/**
 * Takes the pictures of docs/dashboard.md from the live host, with this machine's Chromium. `node tools/screenshots.mjs [folder]`
 * With `--all`, the main views of each world of the demo, in both themes and three widths, to compare a change with what was
 * before: `--all before`, then `--all after`. `--world` and `--width`, each several times, take a part of them.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { WORLDS } from '../examples/live-host/world.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  options: {
    all: { type: 'boolean' },
    world: { type: 'string', multiple: true, default: WORLDS },
    width: { type: 'string', multiple: true, default: ['1440', '1280', '390'] },
  },
  allowPositionals: true,
})
const [folder = join(ROOT, 'docs/images')] = positionals
if (values.all && positionals.length === 0)
  throw new Error('--all needs a folder: npm run screenshots -- --all <folder>')
const MAX_BYTES = 150_000
/** How long a world is left to itself before its pictures, so that it has a past. */
const PAST_MS = 20_000
const HEIGHTS = { 390: 844 }
const executablePath = ['chromium', 'chromium-browser', 'google-chrome', 'chromium-headless-shell']
  .map((name) => `/usr/bin/${name}`)
  .find(existsSync)
if (!executablePath) throw new Error('no Chromium is here')
mkdirSync(folder, { recursive: true })

/** Starts the live host, or a world of it. */
async function startHost(args) {
  const host = spawn(process.execPath, ['examples/live-host/main.mjs', ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  for await (const line of createInterface({ input: host.stdout })) {
    text += `${line}\n`
    if (line.startsWith('dashboard: ')) break
  }
  host.stdout.resume()
  const [, dashboard, key] = /^dashboard: (\S+)#key=(\S+)$/m.exec(text)
  const [, diagnostics] = /^diagnostics: (\S+)$/m.exec(text)
  const asAdmin = { headers: { 'x-admin-key': key } }
  const ask = async (path) => (await fetch(diagnostics + path, asAdmin)).json()
  const close = async () => {
    host.kill('SIGINT')
    if (host.exitCode === null) await once(host, 'exit')
  }
  return { dashboard, key, text, ask, asAdmin, close }
}

/** Asks until there is an answer worth a picture. */
async function first(ask, path) {
  for (;;) {
    const { items } = await ask(path)
    if (items.length > 0) return items[0]
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

async function take(page, address, path) {
  await page.evaluate((hash) => {
    location.hash = hash
  }, address)
  await page.waitForTimeout(values.all ? 700 : 3_000)
  await page
    .locator('main .loading')
    .first()
    .waitFor({ state: 'detached', timeout: 10_000 })
    .catch(() => {})
  await page.waitForTimeout(300)
  await page.screenshot({ path })
  const { size } = statSync(path)
  if (!values.all && size > MAX_BYTES) throw new Error(`${path} has ${size} bytes, at most ${MAX_BYTES}`)
  console.log(`${path}: ${size} bytes`)
}

const commandAt = ({ user_id, client_id, command_id, admission }) => {
  const scope = admission?.scope_id
  return `/delivery/status?${new URLSearchParams({ user_id: user_id ?? scope, client_id: client_id ?? scope, command_id })}`
}

/** The pictures of the documentation. */
async function takeDocs(browser) {
  const { dashboard, key, text, ask, asAdmin, close } = await startHost([])
  try {
    const [, questions] = /^questions: ([^\s#]+)/m.exec(text)
    const pid = Number(/console-3 {2}pid (\d+)/.exec(await (await fetch(`${questions}.json`, asAdmin)).text())[1])
    const page = await browser.newPage({ viewport: { width: 1100, height: 760 } })
    await page.goto(`${dashboard}#key=${key}`)
    // What a tab has seen takes a while to be seen.
    await page.waitForTimeout(15_000)
    const command = await first(ask, '/delivery/commands?state=resulted')
    // A client that hangs is the problem to find.
    process.kill(pid, 'SIGSTOP')
    await first(ask, '/findings')
    const shots = {
      overview: '/',
      findings: '/findings',
      user: `/users/${command.user_id}/summary`,
      command: commandAt(command),
    }
    for (const [name, address] of Object.entries(shots)) await take(page, address, join(folder, `${name}.png`))
  } finally {
    await close()
  }
}

/** What else the documentation shows, by world; the width is that of a telephone for one. */
const WORLD_SHOTS = {
  broken: { problems: '/', phone: '/', connections: '/connections?status=connected', changes: '/changes' },
  calls: { calls: '/' },
  browser: { workers: '/contexts' },
  jobs: { jobs: '/delivery/commands' },
  large: { large: '/connections' },
}

async function takeWorlds(browser) {
  for (const [world, shots] of Object.entries(WORLD_SHOTS)) {
    const { dashboard, key, close } = await startHost(['--world', world])
    try {
      await new Promise((resolve) => setTimeout(resolve, PAST_MS))
      for (const [name, address] of Object.entries(shots)) {
        const width = name === 'phone' ? 390 : 1100
        const page = await browser.newPage({ viewport: { width, height: HEIGHTS[width] ?? 600 } })
        await page.goto(`${dashboard}#key=${key}`)
        await take(page, address, join(folder, `${name}.png`))
        await page.close()
      }
    } finally {
      await close()
    }
  }
}

/** The address of the first record of each kind that the world has. */
async function addressesIn(ask) {
  const shots = { overview: '/', findings: '/findings' }
  const lists = {
    users: '/users',
    connections: '/connections',
    commands: '/delivery/commands',
    calls: '/rpc/pending',
    ended: '/rpc/ended',
    windows: '/browser-windows',
    contexts: '/contexts',
    nodes: '/delivery/nodes',
    tenants: '/delivery/tenants',
  }
  const pageOf = {
    users: ({ user_id }) => `/users/${encodeURIComponent(user_id)}/summary`,
    connections: ({ connection_id }) => `/connections/${encodeURIComponent(connection_id)}`,
    commands: commandAt,
    calls: ({ correlation_id }) => `/rpc/pending/${encodeURIComponent(correlation_id)}`,
    ended: ({ correlation_id }) => `/rpc/ended/${encodeURIComponent(correlation_id)}`,
  }
  for (const [name, path] of Object.entries(lists)) {
    const { items = [] } = await ask(path)
    if (items.length === 0 && name !== 'commands') continue
    shots[name] = path
    if (pageOf[name] && items[0]) shots[`${name}-one`] = pageOf[name](items[0])
  }
  return { ...shots, sources: '/sources' }
}

/** The pictures of one world. */
async function takeWorld(browser, world) {
  const { dashboard, key, ask, close } = await startHost(['--world', world])
  try {
    await new Promise((resolve) => setTimeout(resolve, PAST_MS))
    const shots = await addressesIn(ask)
    for (const width of values.width)
      for (const colorScheme of ['light', 'dark']) {
        const viewport = { width: Number(width), height: HEIGHTS[width] ?? 900 }
        const page = await browser.newPage({ viewport, colorScheme })
        await page.goto(`${dashboard}#key=${key}`)
        await page.waitForTimeout(1_500)
        for (const [name, address] of Object.entries(shots))
          await take(page, address, join(folder, `${world}-${name}-${width}-${colorScheme}.png`))
        await page.close()
      }
  } finally {
    await close()
  }
}

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
try {
  if (values.all) for (const world of values.world) await takeWorld(browser, world)
  else {
    await takeDocs(browser)
    await takeWorlds(browser)
  }
} finally {
  await browser.close()
}
