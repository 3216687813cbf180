/** The worlds of the demo: each starts, has the trouble that it is named for, and ends by itself. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { isChromiumMissing } from '../chromium.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const isRedisMissing = spawnSync('redis-server', ['--version']).status !== 0
/** A world with 25,000 records, on a machine that has much else to do. */
const LONG_MS = 240_000

/** Starts a world; `ask` reads a route of its router. */
async function startWorld(name: string) {
  const { SERVICE_ADMIN_KEY, ...env } = process.env
  const child = spawn(process.execPath, ['examples/live-host/main.mjs', '--world', name], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (line.startsWith('dashboard: ')) break
  }
  child.stdout.resume()
  const printed = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? ''
  const headers = { 'x-admin-key': printed('admin key') }
  const ask = async (path: string) => (await fetch(printed('diagnostics') + path, { headers })).json()
  return { child, ask, page: printed('dashboard') }
}

/** Fields of what the routes below answer. */
interface Body {
  delivery: boolean
  total: number
  items: { kind?: string }[]
  kinds: { kind: string; count: number | null }[]
}

interface World {
  isMissing?: boolean
  /** A route, and whether its answer shows what the world is for. */
  shows: [path: string, isShown: (body: Body) => boolean]
}

const WORLDS: Record<string, World> = {
  empty: { shows: ['/capabilities', ({ delivery }) => delivery === true] },
  calls: { shows: ['/findings', ({ items }) => items.some(({ kind }) => kind === 'call_not_answered')] },
  large: { shows: ['/connections/count?status=connected', ({ total }) => total === 5_000] },
  jobs: {
    isMissing: isRedisMissing,
    shows: ['/delivery/commands?state=failed', ({ items }) => items.length > 0],
  },
  browser: {
    isMissing: isChromiumMissing,
    shows: ['/contexts?status_reason=crashed', ({ items }) => items.length > 0],
  },
  broken: {
    isMissing: isRedisMissing,
    shows: [
      '/findings/summary',
      ({ kinds }) =>
        [
          'silent_node_holds',
          'session_without_connector',
          'window_of_disconnected_client',
          'client_not_acknowledging',
        ].every((kind) => kinds.some((one) => one.kind === kind && (one.count ?? 0) > 0)),
    ],
  },
}

it('are those in the folder', () => {
  const files = readdirSync(new URL('../../examples/live-host/worlds', import.meta.url))
  const helpers = ['broken-node', 'dying-node', 'every']
  expect(files.map((file) => file.replace('.mjs', '')).filter((name) => !helpers.includes(name))).toEqual(
    Object.keys(WORLDS).sort(),
  )
})

it('name the worlds for one that does not exist', () => {
  const { status, stderr } = spawnSync(process.execPath, ['examples/live-host/main.mjs', '--world', 'none'], {
    cwd: ROOT,
  })
  expect([status, String(stderr)]).toEqual([
    1,
    'Unknown world "none". Worlds: broken, browser, calls, empty, jobs, large\n',
  ])
})

for (const [
  name,
  {
    isMissing = false,
    shows: [path, isShown],
  },
] of Object.entries(WORLDS))
  it.skipIf(isMissing)(
    `shows ${name} and ends when told`,
    async () => {
      const { child, ask, page } = await startWorld(name)
      expect((await fetch(page)).status).toBe(200)
      await expect.poll(async () => isShown(await ask(path)), { timeout: LONG_MS / 2, interval: 500 }).toBe(true)
      const ended = once(child, 'exit')
      child.kill('SIGINT')
      expect(await ended).toEqual([0, null])
    },
    LONG_MS,
  )
