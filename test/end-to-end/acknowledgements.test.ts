/**
 * Three hosts with acknowledgements of their own, each with a client that is stopped: it is named by the findings, `relayscope
 * status`, the tools of agents and the dashboard, in memory and over Redis.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { status } from '../../src/cli/status.js'
import { createDashboard } from '../../src/dashboard/index.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { redisComposition } from '../../src/redis/index.js'
import { inChromium } from '../dashboard/chromium.js'
import { fetchRoute } from '../mcp/subject.js'
import { clients, describeRedis, startServer } from '../redis/server.js'
import { soon } from '../redis/wait-for.js'

const KINDS = ['socket.io', 'json-rpc', 'mcp'] as const
const fileOf = (name: string) => fileURLToPath(new URL(`acknowledgements/${name}.mjs`, import.meta.url))
const ends: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Starts a program, until it has printed a URL. */
async function start(name: string, args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [fileOf(name), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  const exit = once(child, 'exit')
  ends.push(async () => {
    child.kill('SIGKILL')
    await exit
  })
  const lines = createInterface(child.stdout)
  const [line] = await Promise.race([once(lines, 'line'), exit.then(() => Promise.reject(new Error(`${name} ended`)))])
  child.stdout.resume()
  return { child, url: line as string }
}

/** Starts a host with a client that answers and another one, which is stopped once it has answered. */
async function startHost(kind: string, env: Record<string, string> = {}) {
  const host = await start('host', [kind], env)
  const { port } = new URL(host.url)
  const join = (name: string) => start('client', [kind, port, name])
  const [, { child }] = await Promise.all([join(`${kind}-awake`), join(`${kind}-stopped`)])
  return { url: host.url, client: child }
}

type Host = Awaited<ReturnType<typeof startHost>>

/** The clients that the router at `url` names. */
async function named(url: string): Promise<string[]> {
  const response = await fetch(`${url}/findings?kind=client_not_answering`)
  const { items } = (await response.json()) as { items: { subject: { client_id: string } }[] }
  return items.map(({ subject }) => subject.client_id).sort()
}

/** What each reader of the router at `url` shows of clients that do not answer. */
async function readersOf(url: string) {
  let printed = ''
  const out = { write: (text: string) => (printed += text) }
  await status([url], {}, out, out)
  const { content } = await fetchRoute({ url }, 'explain_findings', { kind: 'client_not_answering' })
  return { printed, content: JSON.stringify(content) }
}

/** Stops the client of each host: these clients are named until they continue, and no other one. */
async function stopAndContinue(url: string, hosts: readonly Host[], names: readonly string[]) {
  await soon(async () => expect(await named(url)).toEqual([]))
  for (const { client } of hosts) client.kill('SIGSTOP')
  await soon(async () => {
    expect(await named(url)).toEqual([...names].sort())
    const { printed, content } = await readersOf(url)
    expect(printed).toContain(`${names.length} × client not answering`)
    expect(names.filter((name) => printed.includes(`ada / ${name}`))).toHaveLength(1)
    for (const name of names) expect(content).toContain(`"${name}"`)
  })
  for (const { client } of hosts) client.kill('SIGCONT')
  await soon(async () => expect(await named(url)).toEqual([]))
}

describe('a stopped client', () => {
  it.each(KINDS)('of a %s host is named until it continues', async (kind) => {
    const host = await startHost(kind)
    await stopAndContinue(host.url, [host], [`${kind}-stopped`])
  })
})

/** Starts the three hosts over a Redis of their own, and a router with its dashboard in this process. */
async function startObserved() {
  const server = await startServer()
  ends.push(() => server.stop())
  const { client, close } = await clients.ioredis([server.port])
  const router = createDiagnosticsRouter({
    ...redisComposition({ client, deploymentId: 'hosts' }),
    auth: noopAuth(),
    prefix: '/ops/diagnostics',
  })
  const dashboard = createDashboard({ api: router.prefix })
  const served = await startNodeServer((request, info) =>
    router.owns(new URL(request.url).pathname) ? router(request, info) : dashboard(request),
  )
  ends.push(close, () => served.close())
  const hosts = await Promise.all(KINDS.map((kind) => startHost(kind, { REDIS_PORT: String(server.port) })))
  return { served, router, hosts }
}

describeRedis('stopped clients of three hosts over Redis', () => {
  let observed: Awaited<ReturnType<typeof startObserved>>
  const names = KINDS.map((kind) => `${kind}-stopped`)
  beforeAll(async () => {
    observed = await startObserved()
  })

  it('are named by the router of another process, until they continue', async () => {
    const { served, router, hosts } = observed
    await stopAndContinue(`${served.url}${router.prefix}`, hosts, names)
  })

  inChromium('the dashboard', (open) => {
    it('names them until they continue', async () => {
      const { served, hosts } = observed
      const tab = await open(`${served.url}/dashboard/`)
      const problem = tab.locator('main', { hasText: 'client not answering' })
      await tab.getByText('No problems').waitFor()
      for (const { client } of hosts) client.kill('SIGSTOP')
      await problem.waitFor()
      await problem.getByText('client not answering').first().click()
      for (const name of names) await tab.locator('main', { hasText: name }).waitFor()
      for (const { client } of hosts) client.kill('SIGCONT')
      await tab.goBack()
      await tab.getByText('No problems').waitFor()
    })
  })
})
