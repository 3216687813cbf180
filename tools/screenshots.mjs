/**
 * Takes the pictures of docs/dashboard.md from the live host, with this machine's Chromium. `node tools/screenshots.mjs [folder]`
 * With `--all`, the ten main views in both themes, to compare a change with what was before: `--all before`, then `--all after`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({ options: { all: { type: 'boolean' } }, allowPositionals: true })
const [folder = join(ROOT, 'docs/images')] = positionals
if (values.all && positionals.length === 0)
  throw new Error('--all needs a folder: npm run screenshots -- --all <folder>')
const MAX_BYTES = 150_000
const executablePath = ['chromium', 'chromium-browser', 'google-chrome', 'chromium-headless-shell']
  .map((name) => `/usr/bin/${name}`)
  .find(existsSync)
if (!executablePath) throw new Error('no Chromium is here')

mkdirSync(folder, { recursive: true })
const host = spawn(process.execPath, ['examples/live-host/main.mjs'], {
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
const [, questions] = /^questions: ([^\s#]+)/m.exec(text)
const pid = Number(/console-3 {2}pid (\d+)/.exec(await (await fetch(`${questions}.json`, asAdmin)).text())[1])

/** Asks until there is an answer worth a picture. */
async function first(path) {
  for (;;) {
    const { items } = await ask(path)
    if (items.length > 0) return items[0]
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
try {
  const page = await browser.newPage({ viewport: { width: 1100, height: 760 } })
  await page.goto(`${dashboard}#key=${key}`)
  // What a tab has seen takes a while to be seen.
  await page.waitForTimeout(15_000)
  const { user_id, client_id, command_id } = await first('/delivery/commands?state=resulted')
  // A client that hangs is the problem to find.
  process.kill(pid, 'SIGSTOP')
  await first('/findings')
  const shots = {
    overview: '/',
    findings: '/findings',
    user: `/users/${user_id}/summary`,
    command: `/delivery/status?${new URLSearchParams({ user_id, client_id, command_id })}`,
  }
  if (values.all) {
    const { connection_id } = await first('/connections')
    Object.assign(shots, {
      users: '/users',
      connections: '/connections',
      connection: `/connections/${connection_id}`,
      commands: '/delivery/commands',
      nodes: '/delivery/nodes',
      sources: '/sources',
    })
  }
  for (const colorScheme of values.all ? ['light', 'dark'] : [null]) {
    if (colorScheme) await page.emulateMedia({ colorScheme })
    for (const [name, address] of Object.entries(shots)) {
      await page.evaluate((hash) => {
        location.hash = hash
      }, address)
      await page.waitForTimeout(3_000)
      const path = join(folder, `${colorScheme ? `${name}-${colorScheme}` : name}.png`)
      await page.screenshot({ path })
      const { size } = statSync(path)
      if (!values.all && size > MAX_BYTES) throw new Error(`${path} has ${size} bytes, at most ${MAX_BYTES}`)
      console.log(`${path}: ${size} bytes`)
    }
  }
} finally {
  await browser.close()
  host.kill('SIGINT')
  await once(host, 'exit')
}
