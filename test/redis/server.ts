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

/**
 * Below the ports that connections go out from (32,768 on Linux), and the bus of a Cluster node, 10,000 above its own, as well:
 * who takes one of those may find that some connection has it, and a client that comes back to a server that has died there
 * may be connected to itself.
 */
const PORTS = { from: 11_000, count: 11_000 }

/** A port that nobody listens on, nor goes out from. */
export async function freePort(): Promise<number> {
  const port = PORTS.from + Math.floor(Math.random() * PORTS.count)
  const probe = createServer().listen(port, '127.0.0.1')
  const isFree = await once(probe, 'listening').then(
    () => true,
    () => false,
  )
  if (!isFree) return freePort()
  probe.close()
  await once(probe, 'close')
  return port
}

/** Resolves when `port` answers PING. */
async function awaitPong(port: number): Promise<void> {
  const until = Date.now() + 30_000
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
export async function startServer({ port, args = [] }: { port?: number; args?: string[] } = {}): Promise<Server> {
  if (port !== undefined) return start(port, args)
  for (let tries = 3; ; tries--)
    try {
      return await start(await freePort(), args)
    } catch (error) {
      // Somebody else has been given the port since, or that of a Cluster's bus.
      if (tries === 1) throw error
    }
}

async function start(port: number, args: string[]): Promise<Server> {
  const dir = await mkdtemp(join(tmpdir(), 'relayscope-redis-'))
  const child = spawn(
    BINARY,
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'no', ...args],
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
  await Promise.race([awaitPong(port), failed]).catch((error: unknown) => {
    end()
    running.delete(end)
    throw error
  })
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

/** Each of `servers` says that the Cluster is whole: one that has just met the others may still take it for down. */
export async function formed(servers: readonly Server[]): Promise<void> {
  const until = Date.now() + 60_000
  // Without full coverage a node is `ok` before it has heard of the others' slots.
  for (const server of servers)
    while (!/cluster_state:ok[\s\S]*cluster_slots_ok:16384/.test(await server.cli('CLUSTER', 'INFO'))) {
      if (Date.now() > until) throw new Error('the cluster did not form')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
}

/** Starts `nodes` masters that share the slots, by hand: a second instead of the ten that `--cluster create` takes. */
export async function startCluster(
  nodes = 3,
  extra: string[] = [],
): Promise<{ servers: Server[]; stop(): Promise<void> }> {
  const servers = await Promise.all(
    Array.from({ length: nodes }, () =>
      startServer({ args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', ...extra] }),
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
  await formed(servers)
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
/** A client of ioredis that has its link. Errors on the way are passed over: on a busy machine it asks for its slots in vain at first, and tries again. */
export function ready(client: Redis | Cluster): Promise<void> {
  client.on('error', () => {})
  return new Promise((resolve) => client.once('ready', () => resolve()))
}

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
    await ready(client)
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
    await ready(client)
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
