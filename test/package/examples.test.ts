/** Boots every mounting example in a project that has installed the package, and asks it what its reader would ask. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createCooperativeSiteClient, type SiteEvent } from '../../src/browser/index.js'
import { type Running, run } from '../adapters/process.js'
import { bun, deno, nodes, workerd } from '../adapters/runtimes.js'
import { isChromiumMissing, launchChromium } from '../chromium.js'
import { call as callTool, connectHttp } from '../mcp/subject.js'
import { describeRedis, startServer } from '../redis/server.js'
import { type Consumer, createConsumer, runIn } from './consumer.js'

const KEY = 'the-key-of-the-examples'
const MOST_LINES = 40

/** What is mounted on Node, each by a package of that name. */
const FRAMEWORKS = ['express', 'hono', 'fastify', 'koa']
/** What is plugged in. */
const PEERS = [
  '@modelcontextprotocol/server',
  'bullmq',
  '@opentelemetry/api',
  '@opentelemetry/context-async-hooks',
  '@opentelemetry/exporter-metrics-otlp-proto',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/sdk-trace-base',
]

let consumer: Consumer
beforeAll(async () => {
  consumer = await createConsumer([...FRAMEWORKS, ...PEERS, 'vitest'])
})
afterAll(() => consumer?.remove())

interface Example {
  name: string
  missing?: string | undefined
  start(file: string): Promise<Running>
}

const settings = () => ({ cwd: consumer.dir, env: { SERVICE_ADMIN_KEY: KEY } })

const onNode = ['node', ...FRAMEWORKS, 'fastify-hooks'].map(
  (name): Example => ({ name, start: (file) => run(process.execPath, [file, '0'], settings()) }),
)

/** Serves a worker as one bundled file, with its configuration. */
async function startWorker(file: string): Promise<Running> {
  await build({
    entryPoints: [file],
    outfile: file.replace('.mjs', '.js'),
    bundle: true,
    format: 'esm',
    platform: 'neutral',
  })
  const args = ['serve', file.replace('.mjs', '.capnp'), '--socket-addr=http=127.0.0.1:0', '--control-fd=1']
  return run(workerd.command, args, settings())
}

const examples: Example[] = [
  ...onNode,
  {
    name: 'deno',
    missing: deno.missing,
    start: (file) =>
      run(deno.command, ['run', '--node-modules-dir=manual', '--allow-net', '--allow-env', file, '0'], settings()),
  },
  { name: 'bun', missing: bun.missing, start: (file) => run(bun.command, [file, '0'], settings()) },
  { name: 'worker', missing: workerd.missing, start: startWorker },
]

const fileOf = (name: string) => join(consumer.dir, 'examples', `${name}.mjs`)

for (const { name, missing, start } of examples)
  describe.skipIf(missing !== undefined)(`examples/${name}${missing ? ` (skipped: ${missing})` : ''}`, () => {
    let running: Running
    beforeAll(async () => {
      running = await start(fileOf(name))
    })
    afterAll(() => running?.close())

    const ask = (path: string, headers: Record<string, string> = {}) =>
      fetch(`http://127.0.0.1:${running.port}${path}`, { headers })

    it.each(['/ops/diagnostics', '/ops/diagnostics/'])('shows the routes at %s to who has the key', async (path) => {
      const answer = await ask(path, { 'x-admin-key': KEY })
      expect(answer.status).toBe(200)
      expect(await answer.json()).toMatchObject({ service: 'relayscope', version: consumer.manifest.version })
    })

    it('says what it can be asked', async () => {
      const answer = await ask('/ops/diagnostics/capabilities', { 'x-admin-key': KEY })
      expect(await answer.json()).toMatchObject({ deduplicator: name === 'worker', registry: name !== 'worker' })
    })

    it('answers 403 without the key', async () => {
      expect((await ask('/ops/diagnostics/capabilities')).status).toBe(403)
    })

    it('leaves to the host what is the host’s own', async () => {
      const answer = await ask('/')
      expect(answer.status).toBe(200)
      expect(await answer.text()).toBe('the host’s own')
    })
  })

describe('examples/fastify-hooks', () => {
  it('lets the hooks of the host see what the router answers', async () => {
    const running = await run(process.execPath, [fileOf('fastify-hooks'), '0'], settings())
    try {
      const answer = await fetch(`http://127.0.0.1:${running.port}/ops/diagnostics/nothing`)
      expect([answer.status, answer.headers.get('x-request-id')]).toEqual([403, expect.stringMatching(/^req-/)])
    } finally {
      await running.close()
    }
  })
})

describeRedis('examples/bullmq', () => {
  it('shows the jobs of a queue, whose they are, and its worker', async () => {
    const server = await startServer()
    onTestFinished(() => server.stop())
    const env = { ...settings().env, REDIS_URL: `redis://127.0.0.1:${server.port}` }
    const running = await run(process.execPath, [fileOf('bullmq'), '0'], { ...settings(), env })
    onTestFinished(() => running.close())
    const ask = async (path: string) => {
      const answer = await fetch(`http://127.0.0.1:${running.port}/ops/diagnostics/delivery/${path}`, {
        headers: { 'x-admin-key': KEY },
      })
      return answer.json()
    }
    await expect
      .poll(() => ask('commands'))
      .toMatchObject({ items: [{ user_id: 'ada', command_id: 'emails:1', state: 'resulted' }] })
    expect(await ask('nodes')).toMatchObject({ items: [{ metadata: { queue: 'emails', worker_name: 'mailer' } }] })
  })
})

describe('examples/mcp', () => {
  it('serves agents with the key, and no others', async () => {
    const running = await run(process.execPath, [fileOf('mcp'), '0'], settings())
    try {
      const url = `http://127.0.0.1:${running.port}/mcp`
      const client = await connectHttp(url, 'auto', { 'x-admin-key': KEY })
      // Of the families that the example does not feed it says that they are not there, never that there is nothing.
      expect((await callTool(client, 'relay_overview')).content).toMatchObject({
        complete: true,
        notes: expect.arrayContaining(['calls: not part of this deployment.']),
      })
      expect((await fetch(url, { method: 'POST' })).status).toBe(403)
    } finally {
      await running.close()
    }
  })
})

describe('examples/cooperative-site', () => {
  async function start() {
    const running = await run(process.execPath, [fileOf('cooperative-site')], {
      ...settings(),
      env: { PORT: '0', SERVICE_ADMIN_KEY: '' },
    })
    onTestFinished(() => running.close())
    return `http://127.0.0.1:${running.port}`
  }

  it('serves its page the one file of relayscope/browser, which imports nothing', async () => {
    const url = await start()
    expect(await (await fetch(url)).text()).toContain("from '/relayscope.js'")
    const file = await (await fetch(`${url}/relayscope.js`)).text()
    expect(file).toMatch(/export ?\{[^}]*createCooperativeSiteClient/)
    expect(file).not.toMatch(/(?:^|;)import\b|\bimport\(|\bfrom ?["']/m)
  })

  it('tells a viewer of what the application has done for it, and that it will not do it twice', async () => {
    const url = await start()
    const { items } = await (await fetch(`${url}/ops/diagnostics/sessions`)).json()
    expect(items).toMatchObject([{ site_id: 'notes', state: 'active', connector_connected: true }])
    const site = createCooperativeSiteClient({
      baseUrl: `${url}/relay`,
      sessionId: items[0].session_id,
      headers: { authorization: 'Bearer token-of-vera' },
    })
    const left = new AbortController()
    const heard: string[] = []
    const told: SiteEvent[] = []
    site.subscribe({ onReady: () => heard.push('ready'), onEvent: (event) => told.push(event), signal: left.signal })
    await expect.poll(() => heard).toEqual(['ready'])
    expect(await site.invoke('archive_note', { id: 0 })).toMatchObject({ status: 'succeeded', result: { id: 0 } })
    await expect.poll(() => told).toMatchObject([{ name: 'note_changed', data: { id: 0 } }])
    left.abort()
    expect(await site.invoke('archive_note', { id: 0 })).toMatchObject({ error: { code: 'no_such_note' } })
    expect(await site.invoke('list_notes')).toMatchObject({ result: [[1, 'bread']] })
  })

  it('lets an application in its own process take over, which runs the actions until it closes', async () => {
    const url = await start()
    const { items } = await (await fetch(`${url}/ops/diagnostics/sessions`)).json()
    const env = { PATH: process.env.PATH, RELAY_URL: `${url}/relay` }
    const child = spawn(process.execPath, [fileOf('application')], { cwd: consumer.dir, env })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [line] = await once(child.stdout, 'data')
    expect(String(line)).toBe('connected\n')
    const site = createCooperativeSiteClient({
      baseUrl: `${url}/relay`,
      sessionId: items[0].session_id,
      headers: { authorization: 'Bearer token-of-vera' },
    })
    const told: SiteEvent[] = []
    const left = new AbortController()
    onTestFinished(() => left.abort())
    await new Promise<void>((onReady) => {
      site.subscribe({ onReady: () => onReady(), onEvent: (event) => told.push(event), signal: left.signal })
    })
    expect(await site.invoke('archive_note', { id: 1 })).toMatchObject({ status: 'succeeded', result: { id: 1 } })
    await expect.poll(() => told).toMatchObject([{ name: 'note_changed', data: { id: 1 } }])
    expect(await site.invoke('list_notes')).toMatchObject({ result: [[0, 'tea']] })
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    await expect(site.invoke('list_notes')).rejects.toMatchObject({ code: 'connector_unavailable' })
  })

  it.skipIf(isChromiumMissing)('shows a page whose notes leave when they are clicked (needs chromium)', async () => {
    const url = await start()
    const chromium = await launchChromium()
    onTestFinished(() => chromium.close())
    const page = await chromium.newPage()
    await page.goto(`${url}/#token-of-vera`)
    await page.getByText('milk').click()
    await expect.poll(() => page.locator('li').allTextContents()).toEqual(['bread'])
  })
})

describe.each([
  'unit-test',
  'failing-source',
  'authorization',
  'connector',
  'diagnostics-channels',
  'opentelemetry',
])('examples/%s', (name) => {
  it('passes under node:test', async () => {
    expect(await runIn(consumer, process.execPath, ['--test', fileOf(name)])).toMatch(/fail 0\b/)
  })
})

// The oldest Node that we support has no SQLite.
const [{ command: node, missing }] = nodes as [(typeof nodes)[number]]

describe.skipIf(missing !== undefined)(`examples/sqlite-inspector${missing ? ` (skipped: ${missing})` : ''}`, () => {
  const test = () => fileOf('sqlite-inspector-test')

  it('keeps its contract in node:test', async () => {
    expect(await runIn(consumer, node, ['--test', test()])).toMatch(/pass [1-9][\s\S]*fail 0\b/)
  })

  it('keeps its contract in Vitest', async () => {
    const own = test().replace('-test.mjs', '.test.mjs')
    await writeFile(own, (await readFile(test(), 'utf8')).replace("from 'node:test'", "from 'vitest'"))
    const vitest = join(consumer.dir, 'node_modules/vitest/vitest.mjs')
    expect(await runIn(consumer, node, [vitest, 'run', own])).toMatch(/Tests .*[1-9]\d* passed/)
  })

  it('answers what the table holds, and null for all else', async () => {
    const program = `
      import { DatabaseSync } from 'node:sqlite'
      import { createDiagnostics } from './examples/sqlite-inspector.mjs'
      const db = new DatabaseSync(':memory:')
      db.exec('CREATE TABLE tabs (id TEXT UNIQUE, user TEXT, status TEXT)')
      db.exec("INSERT INTO tabs VALUES ('t-1', 'ada', 'idle')")
      const answer = await createDiagnostics(db)(new Request('http://localhost/contexts'))
      console.log(await answer.text())`
    const { items } = JSON.parse(await runIn(consumer, node, ['--no-warnings', '--input-type=module', '-e', program]))
    expect(items).toMatchObject([{ context_id: 't-1', user_id: 'ada', status: 'idle', updated_at: null }])
  })
})

describe('the mounting examples', () => {
  it.each([...examples.map(({ name }) => name), 'unit-test'])('%s is short', async (name) => {
    expect((await readFile(fileOf(name), 'utf8')).split('\n').length).toBeLessThan(MOST_LINES)
  })
})
