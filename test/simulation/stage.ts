/** What actors share: the nodes with what runs on them, and the one way in which they call a facility. */
import type { Library, Load } from './bundle.js'
import type { Config } from './config.js'
import { createClient } from './links.js'
import { type Life, SimulatedNode } from './node.js'
import { createDice, type Dice } from './random.js'
import type { Any, History, Operation, Violate } from './record.js'
import { DIED, type World } from './world.js'

/** The facilities of a node, which both compositions have. */
export type Facilities = ReturnType<Library['createMemoryFacilities']> | ReturnType<Library['createRedisFacilities']>

type Relay = ReturnType<Library['createCooperativeSiteRouter']>

/** What runs on a node in one of its lives. */
export interface Running {
  facilities: Facilities
  relay: Relay
  connector: ReturnType<Library['createDispatchConnector']>
  idempotency: ReturnType<Library['createRedisIdempotencyStore']>
}

/** A client of the relay, from one instance to the next. */
export interface RelayClient {
  user_id: string
  client_id: string
  instances: number
  instance_id: string | null
  former: string | null
}

const DEPLOYMENT = 'simulated'
const UNREACHABLE = /unavailable|closed|timeout|The request deadline has passed/

export class Stage {
  readonly nodes: SimulatedNode[]
  /** The process that only looks. */
  readonly observer: SimulatedNode
  readonly clients: RelayClient[]
  /** Sessions that may be open, by id. */
  readonly sessions = new Map<string, { id: string; owner: string }>()
  /** After it no actor begins anything new, and dead nodes stay dead. */
  isOver = false
  private readonly running = new Map<Life, Running>()
  private counter = 0

  constructor(
    readonly world: World,
    readonly history: History,
    load: Load,
  ) {
    const { config, userIds } = history
    this.nodes = Array.from({ length: config.nodes }, (_, i) => new SimulatedNode('ABC'[i] as string, world, load))
    // In memory it looks from within the node's process.
    const own = this.isMemory ? () => (this.nodes[0] as SimulatedNode).library : load
    this.observer = new SimulatedNode('observer', world, own)
    world.nodes = [...this.nodes, this.observer]
    this.clients = userIds.flatMap((user_id) =>
      Array.from({ length: config.clientsPerUser }, (_, i) => ({
        user_id,
        client_id: `c${i}`,
        instances: 0,
        instance_id: null,
        former: null,
      })),
    )
  }

  get config(): Config {
    return this.history.config
  }

  get isMemory(): boolean {
    return this.config.store === 'memory'
  }

  readonly violate: Violate = (rule, about) => {
    const { violations } = this.history
    if (violations.length < 50) violations.push({ rule, about, at: Math.round(this.world.now) })
    this.world.say(() => `VIOLATION ${rule}: ${about}`)
  }

  dice(name: string): Dice {
    return createDice(this.config.seed, name)
  }

  unique(prefix: string): string {
    return `${prefix}${this.counter++}`
  }

  living(): SimulatedNode[] {
    return this.nodes.filter(({ life }) => !life.isDead)
  }

  anyNode(dice: Dice): SimulatedNode | null {
    const living = this.living()
    return living.length > 0 ? dice.pick(living) : null
  }

  runningOn({ life }: SimulatedNode): Running {
    return this.running.get(life) as Running
  }

  readonly reporter = (node: string) => (error: unknown) => {
    const { code, message = `${error}`, stack } = (error ?? {}) as { code?: string; message?: string; stack?: string }
    // What a store that is away makes the library report is as it should be.
    if (code === 'unavailable' || UNREACHABLE.test(message) || this.config.profile === 'loss') return
    this.history.reported.push({
      node,
      message: `${code ?? ''} ${message}`.slice(0, 200),
      stack: stack?.split('\n')[1]?.trim(),
    })
  }

  private clientOf(node: SimulatedNode): Any {
    return createClient(this.world, node, this.config.clientKinds[world_index(this, node)] as 'ioredis')
  }

  start(node: SimulatedNode): void {
    const { config, history, world } = this
    const life = node.revive()
    const { library } = node
    const onError = this.reporter(node.name)
    const shared = { deploymentId: DEPLOYMENT, shards: config.shards, onError }
    const options = {
      connections: { heartbeatTimeoutMs: config.heartbeatTimeoutMs, retentionMs: 600_000 },
      rpc: { defaultTimeoutMs: 20_000 },
      deduplicator: { ttlMs: config.dedupTtlMs },
      dispatcher: {
        ackTimeoutMs: config.ackTimeoutMs,
        maxAttempts: config.maxAttempts,
        capacity: config.capacity,
        retentionMs: 600_000,
      },
      contexts: { ttlMs: 10_000 },
      browserWindows: { ttlMs: 10_000 },
      bus: { queueSize: 5 },
    }
    const client = this.isMemory ? null : this.clientOf(node)
    const facilities: Facilities = this.isMemory
      ? library.createMemoryFacilities(options)
      : library.createRedisFacilities({ client, nodeId: node.name, ...shared, ...options })
    const idempotency = (
      this.isMemory ? library.createIdempotencyStore() : library.createRedisIdempotencyStore({ client, ...shared })
    ) as Running['idempotency']
    const connector = library.createDispatchConnector({ ...facilities, onError: null })
    const authenticate = (request: Request) => {
      const user_id = request.headers.get('x-user')
      return user_id ? { user_id } : null
    }
    const { sites, sessions, subscriptions, bus, ingest } = facilities
    const approvals = this.dice(`approvals of ${node.name} ${life.number}`)
    const relay = library.createCooperativeSiteRouter({
      sites,
      sessions,
      subscriptions,
      bus,
      ingest,
      connector,
      idempotency,
      policy: library.createSessionPolicy({ sessions }),
      authenticateHost: authenticate,
      authenticateViewer: authenticate,
      callsPerViewer: config.callsPerViewer,
      approve: async () => {
        await world.sleep(approvals.between(0, 100))
        return approvals.chance(0.95)
      },
      onError,
    })
    this.running.set(life, { facilities, relay, connector, idempotency })
    history.lives.push({ node: node.name, number: life.number, to: Number.POSITIVE_INFINITY, life })
    world.say(() => `${node.name} starts, life ${life.number}`)
  }

  kill(node: SimulatedNode): void {
    node.kill()
    const life = this.history.lives.find(({ life }) => life === node.life)
    if (life) life.to = this.world.now
  }

  /** The diagnostics router: in memory it shares the facilities' process, else it runs in the observer's. */
  createRouter(): (path: string) => Promise<Any> {
    const { observer, world } = this
    observer.revive()
    const [node] = this.nodes as [SimulatedNode]
    const { library } = this.isMemory ? node : observer
    const onError = this.reporter('observer')
    const composition = this.isMemory
      ? library.memoryComposition(this.runningOn(node).facilities as ReturnType<Library['createMemoryFacilities']>)
      : library.redisComposition({ client: this.clientOf(observer), deploymentId: DEPLOYMENT, onError })
    const router = library.createDiagnosticsRouter({ ...composition, auth: library.noopAuth(), onError })
    return async (path) => {
      const from = world.now
      const response = await router(new Request(`http://observer${path}`))
      return { path, from, to: world.now, status: response.status, body: await response.json() }
    }
  }

  /** Calls something on a node and records what came of it. */
  async call(
    node: SimulatedNode,
    what: string,
    details: Record<string, Any>,
    run: (facilities: Facilities, running: Running, library: Library) => Any,
  ): Promise<Operation> {
    const { world, history } = this
    while (node.pausedUntil > world.now) await world.sleep(node.pausedUntil - world.now + 0.01)
    const { life } = node
    const operation: Operation = {
      i: history.operations.length,
      what,
      node: node.name,
      life: life.number,
      ...details,
      call: world.now,
      ret: Number.POSITIVE_INFINITY,
      state: 'open',
    }
    if (life.isDead) return { ...operation, state: 'unsent' }
    history.operations.push(operation)
    try {
      const running = this.runningOn(node)
      const value = await Promise.race([
        Promise.resolve().then(() => run(running.facilities, running, node.library)),
        life.died,
      ])
      if (value === DIED) operation.state = 'died'
      else Object.assign(operation, { state: 'ok', value, ret: world.now })
    } catch (error) {
      const { code, outcome, stack } = (error ?? {}) as { code?: string; outcome?: string; stack?: string }
      Object.assign(operation, { state: code ? 'refused' : 'error', code, outcome, error, ret: world.now })
      if (!code)
        this.violate('error', `${what} on ${node.name}: ${stack?.split('\n').slice(0, 3).join(' | ') ?? error}`)
    }
    world.say(() => {
      const answer =
        operation.state === 'ok' ? brief(operation.value) : `${operation.code ?? ''} ${operation.outcome ?? ''}`
      return `${node.name} ${what} ${JSON.stringify(details)} -> ${operation.state} ${answer} [since ${operation.call.toFixed(1)}]`
    })
    return operation
  }

  private readonly actors: Promise<void>[] = []

  /** Runs an actor concurrently, with its own dice. */
  act(name: string, actor: (dice: Dice) => Promise<void>): void {
    this.actors.push(
      actor(this.dice(name)).catch((error) => this.violate('simulator', `${name}: ${(error as Error).stack}`)),
    )
  }

  allActed(): Promise<unknown> {
    return Promise.all(this.actors)
  }
}

const world_index = (stage: Stage, node: SimulatedNode) => (node === stage.observer ? 3 : stage.nodes.indexOf(node))

function brief(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 160)
  } catch {
    return String(value)
  }
}
