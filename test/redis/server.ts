/** Real servers for the tests of the shared store: started on free ports, in memory only, ended by their own process. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { describe, it } from 'vitest'
import type { RedisClient } from '../../src/redis/store/client.js'

const run = promisify(execFile)
const BINARY = 'redis-server'

/** How to end what is running. */
const running = new Set<() => void>()
/** A worker that is told to end, or a run that is interrupted, must not leave a server behind. */
function endAll() {
  for (const end of running) end()
}
process.on('exit', endAll)
process.once('SIGTERM', () => {
  endAll()
  process.kill(process.pid, 'SIGTERM')
})

export interface Server {
  readonly port: number
  readonly pid: number
  /** Sends one command over a connection of its own: what a foreign hand does to the store. */
  cli(...args: string[]): Promise<string>
  /** SIGSTOP and SIGCONT: a store that is there and does not answer. */
  pause(): void
  resume(): void
  /** Ends the process at once. */
  kill(): Promise<void>
  /** Ends it and removes what it left. */
  stop(): Promise<void>
}

/** The bus of a Cluster node listens 10,000 above its port. */
const CLUSTER_PORT_MAX = 55_535

export async function freePort(most = 65_535): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port <= most ? port : freePort(most)
}

/** Whether `port` answers PING within two seconds. */
async function awaitPong(port: number): Promise<void> {
  const until = Date.now() + 5_000
  while (Date.now() < until) {
    const pong = await new Promise<boolean>((resolve) => {
      const socket = createConnection(port, '127.0.0.1', () => socket.write('PING\r\n'))
      socket.once('data', (data) => {
        socket.destroy()
        resolve(data.toString().startsWith('+PONG'))
      })
      socket.once('error', () => resolve(false))
    })
    if (pong) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`redis-server on port ${port} did not answer`)
}

/** Starts one server. `port` to start again where one was. */
export async function startServer(options: { port?: number; args?: string[] } = {}): Promise<Server> {
  const port = options.port ?? (await freePort())
  const dir = await mkdtemp(join(tmpdir(), 'relayscope-redis-'))
  const child = spawn(
    BINARY,
    [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      dir,
      '--save',
      '',
      '--appendonly',
      'no',
      ...(options.args ?? []),
    ],
    { stdio: 'ignore' },
  )
  const ended = once(child, 'exit')
  const end = () => {
    child.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  }
  running.add(end)
  const failed = ended.then(([code]) => {
    throw new Error(`redis-server on port ${port} ended with ${code}`)
  })
  failed.catch(() => {})
  await Promise.race([awaitPong(port), failed])
  async function kill() {
    child.kill('SIGKILL')
    await ended
  }
  return {
    port,
    pid: child.pid as number,
    cli: async (...args) =>
      (await run('redis-cli', ['-p', String(port), '--raw', ...args], { maxBuffer: 1e8 })).stdout.trimEnd(),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    kill,
    async stop() {
      await kill()
      running.delete(end)
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** Starts a node of a Cluster. Whether the port of its bus is free too shows only when it starts. */
async function startNode(args: string[], tries = 3): Promise<Server> {
  try {
    return await startServer({ port: await freePort(CLUSTER_PORT_MAX), args })
  } catch (error) {
    if (tries === 1) throw error
    return startNode(args, tries - 1)
  }
}

/** Starts `nodes` masters that share the slots, by hand: a second instead of the ten that `--cluster create` takes. */
export async function startCluster(
  nodes = 3,
  extra: string[] = [],
): Promise<{ servers: Server[]; stop(): Promise<void> }> {
  const servers = await Promise.all(
    Array.from({ length: nodes }, () =>
      startNode(['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', ...extra]),
    ),
  )
  const step = Math.ceil(16_384 / nodes)
  await Promise.all(
    servers.map((server, i) =>
      server.cli('CLUSTER', 'ADDSLOTSRANGE', String(i * step), String(Math.min((i + 1) * step, 16_384) - 1)),
    ),
  )
  await Promise.all(servers.map((server, i) => server.cli('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1))))
  const first = servers[0] as Server
  for (const other of servers.slice(1)) await first.cli('CLUSTER', 'MEET', '127.0.0.1', String(other.port))
  const until = Date.now() + 15_000
  // Without full coverage a node is `ok` before it has heard of the others' slots.
  for (const server of servers)
    while (!/cluster_state:ok[\s\S]*cluster_slots_ok:16384/.test(await server.cli('CLUSTER', 'INFO'))) {
      if (Date.now() > until) throw new Error('the cluster did not form')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  return { servers, stop: async () => void (await Promise.all(servers.map((server) => server.stop()))) }
}

/** A client and how to end it. */
export interface Connected {
  client: RedisClient
  close(): Promise<void>
}

/**
 * node-redis makes its class of some hundred methods anew, in tens of milliseconds, unless its options read as those before
 * them, written as JSON: with these, all do.
 */
export const ALIKE = { toJSON: () => 'options of a test' }

/** What the servers of a Cluster say of each other, led to `links` in their place. */
const leading = (ports: readonly number[], links: readonly number[]) =>
  Object.fromEntries(ports.map((port, i) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: links[i] as number }]))

/** The four clients a host may hand in, each connected to `ports` (one for a single server), a Cluster's through `links`. */
export const clients = {
  'node-redis': async (ports: number[]): Promise<Connected> => {
    const client = createClient({
      ...ALIKE,
      url: `redis://127.0.0.1:${ports[0]}`,
      socket: { reconnectStrategy: 50 },
    })
    client.on('error', () => {})
    await client.connect()
    return { client: client, close: async () => client.destroy() }
  },
  ioredis: async (ports: number[]): Promise<Connected> => {
    const client = new Redis(ports[0] as number, '127.0.0.1', { retryStrategy: () => 50 })
    client.on('error', () => {})
    await once(client, 'ready')
    return { client: client, close: async () => client.disconnect() }
  },
  'node-redis cluster': async (ports: number[], links: readonly number[] = ports): Promise<Connected> => {
    const client = createCluster({
      ...ALIKE,
      rootNodes: links.map((port) => ({ url: `redis://127.0.0.1:${port}` })),
      nodeAddressMap: leading(ports, links),
    })
    client.on('error', () => {})
    await client.connect()
    return { client: client, close: async () => client.destroy() }
  },
  'ioredis cluster': async (ports: number[], links: readonly number[] = ports): Promise<Connected> => {
    const natMap = leading(ports, links)
    const client = new Cluster(
      links.map((port) => ({ host: '127.0.0.1', port })),
      { natMap },
    )
    client.on('error', () => {})
    await once(client, 'ready')
    return { client: client, close: async () => client.disconnect() }
  },
} satisfies Record<string, (ports: number[], links?: readonly number[]) => Promise<Connected>>

const installed = await run(BINARY, ['--version']).then(
  () => true,
  () => false,
)

/** `describe` where there is a redis-server; elsewhere a named skip, and in CI a failure. */
export function describeRedis(name: string, body: () => void): void {
  if (installed) {
    describe(name, body)
    return
  }
  describe(name, () => {
    if (process.env.CI)
      it('has a redis-server to run against', () => Promise.reject(new Error(`no ${BINARY} on the path`)))
    else it.skip(`needs ${BINARY} on the path`, () => {})
  })
}
