/** Attacks every published program that listens, and kills the stores of those with one: each must answer afterwards. */
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type Running, run } from '../adapters/process.js'
import { bun, deno, workerd } from '../adapters/runtimes.js'
import { isOpensslMissing, selfSigned } from '../adapters/self-signed.js'
import { CHROMIUM, isChromiumMissing } from '../chromium.js'
import { buildCommand, COMMAND } from '../cli/process.js'
import { type Consumer, createConsumer } from '../package/consumer.js'
import { describeRedis, startServer } from '../redis/server.js'
import { attack } from './attack.js'
import { end, isAlive, type LiveHost, startLiveHost } from './live-host-process.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const KEY = 'the-key-of-the-programs'
const FRAMEWORKS = join(ROOT, 'tools/frameworks/node_modules')
const LISTENS = /\.listen\(|\bstart\w*Server\(|\.serve\(|^export default \{\s+fetch/m

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')
/** Files that another file imports or starts are parts of that one. */
const partsOf = (path: string) =>
  [...textOf(path).matchAll(/'(\.{1,2}\/[^']+\.mjs)'/g)].map(([, part]) =>
    normalize(join(dirname(path), part as string)),
  )
const filesOf = (folder: string, ending: string) =>
  (readdirSync(join(ROOT, folder), { recursive: true }) as string[])
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))
    .sort()
const files = filesOf('examples', '.mjs')
const parts = new Set(files.flatMap(partsOf))
/** Those that end by themselves are tests. */
const isTest = (path: string) => textOf(path).includes("from 'node:test'")
/** The worlds of the demo are started by the live host. */
const isWorld = (path: string) => path.startsWith(join('examples/live-host/worlds', '/'))
const programs = files.filter(
  (path) => LISTENS.test(textOf(path)) && !parts.has(path) && !isTest(path) && !isWorld(path),
)

/** What the programs serve between them. */
const PATHS = [
  '/',
  '/users',
  '/metrics',
  '/dashboard/',
  '/diagnostics/users',
  '/ops/diagnostics/',
  '/ops/diagnostics/users',
]
PATHS.push('/ops/diagnostics/connections', '/ops/diagnostics/delivery/commands')

const headers = { 'x-admin-key': KEY, authorization: `Bearer ${KEY}` }
const statusOf = (url: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    const { get } = url.startsWith('https') ? https : http
    const options = { headers, agent: false, rejectUnauthorized: false }
    get(url, options, (answer) => {
      const { statusCode, headers } = answer
      // A stream of events has no end.
      if (headers['content-type'] === 'text/event-stream') {
        resolve(statusCode)
        answer.destroy()
      } else answer.resume().on('end', () => resolve(statusCode))
    }).on('error', reject)
  })
const look = async (port: number, scheme = 'http') =>
  Promise.all(PATHS.map(async (path) => [path, await statusOf(`${scheme}://127.0.0.1:${port}${path}`)]))

/** Attacks what listens at `port`, which must answer afterwards what it answered before. */
async function survives(port: number, scheme?: string): Promise<void> {
  const before = await look(port, scheme)
  expect(before.map(([, status]) => status)).toContain(200)
  await attack(port, PATHS)
  expect(await look(port, scheme)).toEqual(before)
}

/** Kills the store of a program, which then answers 503, and what it answered before when the store is back. */
async function survivesItsStore(start: (port: number) => Promise<Running>): Promise<void> {
  const server = await startServer()
  onTestFinished(() => server.stop())
  const running = await start(server.port)
  onTestFinished(() => running.close())
  await survives(running.port)
  const before = await look(running.port)
  await server.kill()
  const statuses = async () => (await look(running.port)).map(([, status]) => status)
  await expect.poll(statuses).toContain(503)
  await attack(running.port, PATHS)
  expect(await statuses()).toContain(503)
  const again = await startServer({ port: server.port })
  onTestFinished(() => again.stop())
  await expect.poll(() => look(running.port)).toEqual(before)
}

const env = { PORT: '0', SERVICE_ADMIN_KEY: KEY, CHROMIUM }
const node = (path: string, args: string[] = ['0'], more: object = {}) =>
  run(process.execPath, [join(ROOT, path), ...args], { cwd: ROOT, env: { ...env, ...more } })

let consumer: Consumer
const inProject = (command: string, args: string[]) => run(command, args, { cwd: consumer.dir, env })

/** Programs that node alone does not start, or that need something else. */
interface Other {
  missing?: string | false | undefined
  scheme?: string
  start?(): Promise<Running>
}
const OTHERS: Record<string, Other> = {
  'examples/bun.mjs': { missing: bun.missing, start: () => inProject(bun.command, ['examples/bun.mjs', '0']) },
  'examples/deno.mjs': {
    missing: deno.missing,
    start: () =>
      inProject(deno.command, [
        ...['run', '--node-modules-dir=manual', '--allow-net', '--allow-env'],
        ...['examples/deno.mjs', '0'],
      ]),
  },
  'examples/worker.mjs': {
    missing: workerd.missing,
    async start() {
      const file = join(consumer.dir, 'examples/worker')
      const bundle = { bundle: true, format: 'esm', platform: 'neutral' } as const
      await build({ entryPoints: [`${file}.mjs`], outfile: `${file}.js`, ...bundle })
      const args = ['serve', `${file}.capnp`, '--socket-addr=http=127.0.0.1:0', '--control-fd=1']
      return inProject(workerd.command, args)
    },
  },
  'examples/http2.mjs': {
    missing: isOpensslMissing && 'openssl',
    scheme: 'https',
    start() {
      const { folder, key, cert } = selfSigned()
      onTestFinished(() => rmSync(folder, { recursive: true }))
      return node('examples/http2.mjs', [key, cert, '0'])
    },
  },
  'examples/playwright.mjs': { missing: isChromiumMissing && 'chromium' },
}
const NEST = ['examples/nestjs.mjs', 'examples/nestjs-gateway.mjs']
for (const path of NEST)
  OTHERS[path] = {
    start() {
      for (const name of ['@nestjs', 'reflect-metadata', 'rxjs']) {
        const link = join(consumer.dir, 'node_modules', name)
        if (!existsSync(link)) symlinkSync(join(FRAMEWORKS, name), link)
      }
      return inProject(process.execPath, [path, '0'])
    },
  }
/** Frameworks are installed for `npm run search` alone. */
const ABSENT = existsSync(join(FRAMEWORKS, '@nestjs/core')) ? [] : NEST
/** Programs over Redis, and the host of many processes: tested below. */
const BELOW = ['examples/bullmq.mjs', 'examples/observer/main.mjs', 'examples/live-host/main.mjs']

it('finds each program, and no page has one that is not an example', () => {
  expect(programs).toEqual(expect.arrayContaining([...Object.keys(OTHERS), ...BELOW, 'examples/first-look.mjs']))
  for (const page of ['README.md', ...filesOf('docs', '.md')])
    for (const [, from, code] of textOf(page).matchAll(/(<!-- from .*\n)?```(?:js|mjs|ts)\n([\s\S]*?)```/g))
      expect(LISTENS.test(code as string) && !from ? `${page}: ${code}` : '').toBe('')
})

describe('a published program survives an attack', () => {
  beforeAll(async () => {
    consumer = await createConsumer()
  })
  afterAll(() => consumer?.remove())

  describe.each(programs.filter((path) => ![...BELOW, ...ABSENT].includes(path)))('%s', (path) => {
    const { missing, scheme, start = () => node(path) } = OTHERS[path] ?? {}
    it.skipIf(missing)(missing ? `(skipped: ${missing})` : 'answers as before', async () => {
      const running = await start()
      onTestFinished(() => running.close())
      await survives(running.port, scheme)
    })
  })
})

describeRedis('a published program survives an attack and its store', () => {
  const at = (port: number) => `redis://127.0.0.1:${port}`

  it('examples/bullmq.mjs', () =>
    survivesItsStore((port) => node('examples/bullmq.mjs', ['0'], { REDIS_URL: at(port) })))

  it('examples/observer/main.mjs', () =>
    survivesItsStore((port) => node('examples/observer/main.mjs', [at(port), 'prod', '0'])))

  it('relayscope observe', async () => {
    await buildCommand()
    const args = ['--deployment', 'prod', '--port', '0', '--metrics', '--mcp']
    await survivesItsStore((port) => run(process.execPath, [COMMAND, 'observe', '--redis', at(port), ...args], { env }))
  })

  /** Attacks each port that a live host names, except that of its store. */
  async function attackAll(host: LiveHost, except: number[] = []) {
    const ports = new Set([...host.text.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port)))
    for (const port of except) ports.delete(port)
    for (const port of ports) await attack(port, [...PATHS, '/questions', '/relay/hello', '/cooperative/sites'])
  }
  const pidsOf = ({ child, text }: LiveHost) =>
    [child.pid as number].concat([...text.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid)))

  it('examples/live-host/main.mjs', async () => {
    const host = await startLiveHost([])
    onTestFinished(async () => void (await end(host)))
    await attackAll(host)
    expect(pidsOf(host).filter((pid) => !isAlive(pid))).toEqual([])
    expect((await host.ask('/users')).status).toBe(200)
  })

  it('examples/live-host/main.mjs --redis', async () => {
    const server = await startServer()
    onTestFinished(() => server.stop())
    const host = await startLiveHost(['--redis', `redis://127.0.0.1:${server.port}`], undefined, 'ignore')
    onTestFinished(async () => void (await end(host)))
    await attackAll(host, [server.port])
    expect((await host.ask('/users')).status).toBe(200)
    await server.kill()
    await expect.poll(async () => (await host.ask('/users')).status).toBe(503)
    await attackAll(host, [server.port])
    expect(pidsOf(host).filter((pid) => !isAlive(pid))).toEqual([])
    const again = await startServer({ port: server.port })
    onTestFinished(() => again.stop())
    await expect.poll(async () => (await host.ask('/users')).status).toBe(200)
  })
})
