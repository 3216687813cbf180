/** Real servers for the tests of the shared store: started on free ports, in memory only, ended by their own process. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { describe, it } from 'vitest'
import type { RedisClient } from '../../src/redis/store/client.js'
import { type Reply, RespClient } from '../simulation/resp.js'

const run = promisify(execFile)
/** `REDIS_SERVER` names another program, such as that of Valkey. */
const BINARY = process.env.REDIS_SERVER ?? 'redis-server'

/** Functions that stop running servers. */
const running = new Set<() => void>()
/** A worker that is stopped, or an interrupted run, must not leave a server running. */
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
  /** Sends one command over its own connection, as another application could. */
  cli(...args: string[]): Promise<string>
  /** SIGSTOP and SIGCONT: a store that is connected but does not reply. */
  pause(): void
  resume(): void
  /** Kills the process immediately. */
  kill(): Promise<void>
  /** Stops it and removes its files. */
  stop(): Promise<void>
}

/**
 * Below the ports of outgoing connections (from 32,768 on Linux), also for the bus of a Cluster node, 10,000 above its
 * own. Otherwise a port may be taken by a connection, and a client that reconnects to a dead server may connect to
 * itself.
 */
const PORTS = { from: 11_000, count: 11_000 }

/** Each process of the test run has ports of its own: a server of another test must not start where one was killed here. */
const POOLS = 16
const POOL = Number(process.env.VITEST_POOL_ID ?? 0) % POOLS
const given = new Set<number>()

/** Returns a port that is unused, was not returned before, and is not used by outgoing connections. */
export async function freePort(): Promise<number> {
  const port = PORTS.from + Math.floor(Math.random() * (PORTS.count / POOLS)) * POOLS + POOL
  if (given.has(port)) return freePort()
  given.add(port)
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

const textOf = (reply: Reply): string =>
  reply instanceof Error ? reply.message : Array.isArray(reply) ? reply.map(textOf).join('\n') : String(reply ?? '')

/** Sends one command over a connection of its own, and returns what `redis-cli --raw` would print. */
async function tell(port: number, args: readonly string[]): Promise<string> {
  const client = await RespClient.connect({ port, host: '127.0.0.1' })
  try {
    return textOf(await Promise.race([client.call(args), client.ended()])).trimEnd()
  } finally {
    client.close()
  }
}

/** Resolves when `port` replies to PING. */
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
  throw new Error(`redis-server on port ${port} did not reply`)
}

/** Starts one server. `port` to start again where one was, `binary` for another program than `redis-server`. */
export async function startServer({
  port,
  args = [],
  binary = BINARY,
}: {
  port?: number
  args?: string[]
  binary?: string
} = {}): Promise<Server> {
  if (port !== undefined) return start(port, args, binary)
  for (let tries = 3; ; tries--)
    try {
      return await start(await freePort(), args, binary)
    } catch (error) {
      // The port, or that of a Cluster's bus, was taken in the meantime.
      if (tries === 1) throw error
    }
}

async function start(port: number, args: string[], binary: string): Promise<Server> {
  const dir = await mkdtemp(join(tmpdir(), 'relayscope-redis-'))
  const child = spawn(
    binary,
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
    throw new Error(`${binary} on port ${port} ended with ${code}`)
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
    cli: (...args) => tell(port, args),
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

/** Waits until each of `servers` reports a complete Cluster: one that has just joined may report it as down. */
export async function formed(servers: readonly Server[]): Promise<void> {
  const until = Date.now() + 60_000
  // Without full coverage a node is `ok` before it knows the others' slots.
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
 * node-redis creates its class of some hundred methods again, in tens of milliseconds, unless its options are the same
 * JSON as before: with these, they always are.
 */
export const ALIKE = { toJSON: () => 'options of a test' }

/** Returns the address map that replaces the servers' announced ports with `links`. */
const leading = (ports: readonly number[], links: readonly number[]) =>
  Object.fromEntries(ports.map((port, i) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: links[i] as number }]))

/** Resolves when the replies to all earlier commands have arrived; a store that is down or paused is not waited for. */
const settled = (pings: readonly Promise<unknown>[]) => Promise.race([Promise.all(pings).catch(() => {}), sleep(1_000)])

/** The four clients a host may hand in, each connected to `ports` (one for a single server), a Cluster's through `links`. */
/**
 * Resolves when a client of ioredis is connected. Errors before that are ignored: on a busy machine its first query for
 * slots may fail, and it retries.
 */
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
    const close = async () => {
      await settled([client.ping()])
      client.destroy()
    }
    return { client, close }
  },
  ioredis: async (ports: number[]): Promise<Connected> => {
    const client = new Redis(ports[0] as number, '127.0.0.1', { retryStrategy: () => 50 })
    await ready(client)
    const close = async () => {
      await settled([client.ping()])
      client.disconnect()
    }
    return { client, close }
  },
  'node-redis cluster': async (ports: number[], links: readonly number[] = ports): Promise<Connected> => {
    const client = createCluster({
      ...ALIKE,
      rootNodes: links.map((port) => ({ url: `redis://127.0.0.1:${port}` })),
      nodeAddressMap: leading(ports, links),
    })
    client.on('error', () => {})
    await client.connect()
    const close = async () => {
      await settled(client.masters.map(async (master) => (await client.nodeClient(master)).ping()))
      client.destroy()
    }
    return { client, close }
  },
  'ioredis cluster': async (ports: number[], links: readonly number[] = ports): Promise<Connected> => {
    const natMap = leading(ports, links)
    const client = new Cluster(
      links.map((port) => ({ host: '127.0.0.1', port })),
      { natMap },
    )
    await ready(client)
    const close = async () => {
      await settled(client.nodes('master').map((node) => node.ping()))
      client.disconnect()
    }
    return { client, close }
  },
} satisfies Record<string, (ports: number[], links?: readonly number[]) => Promise<Connected>>

const installed = await run(BINARY, ['--version']).then(
  () => true,
  () => false,
)

/** `describe` if there is a redis-server; otherwise its tests are skipped by name, and in CI one fails. */
export function describeRedis(name: string, body: () => void): void {
  if (installed) return void describe(name, body)
  if (process.env.CI)
    it('has a redis-server to run against', () => Promise.reject(new Error(`no ${BINARY} on the path`)))
  describe.skip(`${name} (needs redis-server)`, body)
}
