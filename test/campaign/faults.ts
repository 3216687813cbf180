/** A campaign of crashes, stops and cuts: nodes of one deployment, their clients, and a history that is checked afterwards. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { createStore } from '../../src/redis/store/store.js'
import { esbuildLua } from '../../tools/lua.mjs'
import { startCluster, startServer, clients as storeClients } from '../redis/server.js'
import { checkHistory } from './faults-check.js'
import { createClients, pause } from './faults-clients.js'
import type { Entry } from './faults-history.js'
import { startNemesis } from './faults-nemesis.js'
import { startNodes } from './faults-nodes.js'
import { createReader } from './faults-read.js'
import { createSenders, type Senders } from './faults-senders.js'
import type { ClientKind } from './faults-words.js'
import { createRandom } from './fuzz-random.js'

export interface FaultsOptions {
  /** Decides which faults happen in which order, and who sends what; when, the machine decides. */
  seed: number
  /** How long there are faults. */
  seconds: number
  nodes: number
  shards: number
  client: ClientKind
  /** A Cluster of three servers instead of a single one. */
  cluster?: boolean
  /** Where the sources of the campaign are: a program that was built of them is somewhere else. */
  folder: string
}

export interface FaultsReport extends Omit<FaultsOptions, 'folder'> {
  /** How many entries of each kind the history has; faults by what they were. */
  figures: Record<string, number>
  /** What is wrong, a sentence each. */
  violations: string[]
}

const CLIENTS = 12
const USERS = 5
/** How long the nodes may take until all is delivered, once nothing happens to them any more. */
const SETTLING_MS = 90_000

/** Into one file, which loads in half the time: nodes are born often. */
const buildNode = (folder: string, outfile: string) =>
  build({
    entryPoints: [join(folder, 'faults-node.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    plugins: [esbuildLua],
    define: { RELAYSCOPE_VERSION: '""' },
    banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)` },
  })

/** Waits until `check` holds, or until `isOver`. */
async function until(check: () => Promise<boolean> | boolean, isOver: () => boolean): Promise<void> {
  while (!isOver() && !(await check())) await pause(100)
}

export async function runFaults({ folder, ...options }: FaultsOptions): Promise<FaultsReport> {
  const { seed, seconds, shards, client, cluster, nodes: count } = options
  const history: Entry[] = []
  const write = (entry: Entry) => void history.push(entry)
  const began = performance.now()
  const now = () => Math.round(performance.now() - began)
  const deploymentId = `faults${seed}`
  const names = Array.from({ length: CLIENTS }, (_, n) => ({ user_id: `u${n % USERS}`, client_id: `c${n}` }))
  const dir = await mkdtemp(join(tmpdir(), 'relayscope-faults-'))
  const program = join(dir, 'node.mjs')
  await buildNode(folder, program)
  const servers = cluster ? (await startCluster()).servers : [await startServer()]
  const ports = servers.map(({ port }) => port)
  const direct = await storeClients[cluster ? 'node-redis cluster' : 'node-redis'](ports)
  const store = createStore({ client: direct.client, deploymentId, commandTimeoutMs: 20_000 })
  const closing: (() => Promise<unknown>)[] = [
    () => rm(dir, { recursive: true, force: true }),
    ...servers.map((server) => () => server.stop()),
    () => direct.close(),
  ]
  try {
    // The number of shards is the first writer's.
    await store.command(['SET', store.key(0, 'shards'), String(shards)], store.key(0))
    let senders: Senders
    const nodes = await startNodes({
      ...{ program, ports, client, deploymentId, shards, count, record: write, now },
      onHandedOver: (word) => clients.handedOver(word),
      onSuperseded: (word) => clients.superseded(word),
    })
    closing.push(() => nodes.close())
    const intentOf = (command_id: string) => senders.intentOf(command_id)
    const clients = createClients({ nodes: nodes.all, names, random: createRandom(seed, 1), intentOf })
    senders = createSenders({ nodes: nodes.all, names, clients: () => clients, random: createRandom(seed, 2) })
    closing.push(() => clients.close())
    closing.push(() => senders.close())
    const random = createRandom(seed, 3)
    const nemesis = startNemesis({ nodes: nodes.all, servers, random, record: write, now, move: clients.move })
    await pause(1_000 * seconds)
    await nemesis.stop()
    for (const node of nodes.all) if (!node.isUp) await node.start()
    write({ type: 'healed', at: now() })

    const end = performance.now() + SETTLING_MS
    const isOver = () => performance.now() > end
    await senders.stop()
    await senders.probe(isOver)
    const reader = createReader({ client: direct.client, deploymentId, shards })
    await until(async () => nodes.open === 0 && clients.areIdle && (await reader.tracked()) === 0, isOver)
    await until(async () => !(await reader.holds()), isOver)
    await senders.catchUp(isOver)
    for (const entry of await reader.read(senders.commands.values(), senders.streams)) write(entry)
  } finally {
    for (const close of closing.reverse()) await close()
  }
  const figures: Record<string, number> = {}
  for (const entry of history) {
    const kind = entry.type === 'fault' ? (entry.fault.split(' ')[0] as string) : entry.type
    figures[kind] = (figures[kind] ?? 0) + 1
  }
  return { ...options, figures, violations: checkHistory(history) }
}
