/** Virtual time, and the store as its nodes reach it. Everything that happens is an event of one queue. */
import { createHash } from 'node:crypto'
import type { SimulatedNode } from './node.js'
import { createDice, type Dice } from './random.js'
import type { Reply } from './resp.js'
import { EPOCH, type Store } from './store.js'

const { setImmediate } = globalThis

/** Lets everything run that waits for nothing but its turn. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** What a promise of a node resolves to when the node dies first. */
export const DIED = Symbol('the node died')

const NOSCRIPT = 'NOSCRIPT No matching script. Please use EVAL.'
const NO_FUNCTION = 'ERR Function not found'
const NO_FUNCTIONS = "ERR unknown command 'FCALL', with args beginning with: "

/** Before, with and after other events of the same moment. */
export const Priority = { first: 0, normal: 1, last: 2 } as const

export interface Happening {
  at: number
  priority: number
  order: number
  node: SimulatedNode | null
  life: unknown
  run(): unknown
  /** Nothing else happens until what `run` returned has settled: it talks to the store. */
  isAwaited: boolean
  isLive: boolean
}

const isBefore = (a: Happening, b: Happening): boolean =>
  a.at !== b.at ? a.at < b.at : a.priority !== b.priority ? a.priority < b.priority : a.order < b.order

/** A link of a node to the store, as faults see it. */
export interface Link {
  readonly isSubscriber: boolean
  /** The link breaks; of what was under way a part may still arrive. It comes back after `downMs`, unless it is for good. */
  cut(why: string, downMs: number, isForGood?: boolean): void
  /** Nothing gets through for `ms`: nothing at all, or no replies. */
  stall(ms: number, onlyReplies: boolean): void
  /** Ends every stall. */
  recover(): void
}

/** A subscribing link, as the store sees it. */
export interface Hearer {
  hear(channel: string, message: string): void
}

export class World {
  /** ms since the history began. */
  now = 0
  nodes: SimulatedNode[] = []
  /** Commands of the store so far. */
  commands = 0
  events = 0
  /** ms that the store's clock is ahead of the world. */
  storeOffset = 0
  storeBlockedUntil = 0
  /** Whether the store runs functions, or scripts alone. */
  hasFunctions = true
  /** Which command of a node loses its reply next. */
  loseReply: (node: SimulatedNode) => boolean = () => false
  /** The command that lingers next. */
  private lingering: { node: SimulatedNode; ms: number; isIt(args: readonly string[]): boolean; done(): void } | null =
    null
  /** The longest latency of a packet, in ms; few take that long. */
  slowTail = 200
  readonly trace: string[] = []
  readonly stats: Record<string, number> = {}
  readonly network: Dice
  readonly channels = new Map<string, Set<Hearer>>()
  /** Every write, and when: a store that loses its last ones is rebuilt from the others. */
  writes: { at: number; args: readonly string[] }[] = []
  private queue: Happening[] = []
  private order = 0
  private readonly ids: Dice
  private readonly scripts = new Set<string>()
  private hasLibrary = false
  private readonly hash = createHash('sha256')

  constructor(
    readonly seed: number,
    private readonly realStore: Store | null,
    private readonly isTracing: boolean,
  ) {
    this.network = createDice(seed, 'network')
    this.ids = createDice(seed, 'ids')
  }

  say(text: () => string): void {
    if (this.isTracing) this.trace.push(`${this.now.toFixed(2).padStart(10)}  ${text()}`)
  }

  count(name: string): void {
    this.stats[name] = (this.stats[name] ?? 0) + 1
  }

  /** A digest over all commands and replies of the store so far and `more`: the same for the same seed. */
  digest(more: unknown): string {
    return this.hash.copy().update(JSON.stringify(more)).digest('hex').slice(0, 16)
  }

  // --- Time

  at(at: number, node: SimulatedNode | null, run: () => unknown, priority: number = Priority.normal): Happening {
    const happening: Happening = {
      at: Math.max(at, this.now),
      priority,
      order: this.order++,
      node,
      life: node?.life,
      run,
      isAwaited: false,
      isLive: true,
    }
    this.push(happening)
    return happening
  }

  after(ms: number, node: SimulatedNode | null, run: () => unknown, priority?: number): Happening {
    return this.at(this.now + ms, node, run, priority)
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, null, resolve, Priority.last))
  }

  /** Lets everything happen up to a moment. */
  async run(until: number): Promise<void> {
    for (let next = this.queue[0]; next !== undefined && next.at <= until; next = this.queue[0]) {
      this.pop()
      const { node } = next
      if (!next.isLive || (node && (node.life !== next.life || node.life.isDead))) continue
      if (node && node.pausedUntil > next.at) {
        next.at = node.pausedUntil
        next.order = this.order++
        this.push(next)
        continue
      }
      this.now = Math.max(this.now, next.at)
      this.events++
      const running = next.run()
      if (next.isAwaited) await running
      await turn()
    }
    this.now = Math.max(this.now, until)
  }

  /** Advances time without running anything. */
  skip(ms: number): void {
    this.queue = []
    this.now += ms
    this.realStore?.setClock(this.storeNow())
  }

  private push(happening: Happening): void {
    const { queue } = this
    let i = queue.push(happening) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!isBefore(queue[i] as Happening, queue[parent] as Happening)) break
      this.swap(i, parent)
      i = parent
    }
  }

  private pop(): void {
    const { queue } = this
    const last = queue.pop() as Happening
    if (queue.length === 0) return
    queue[0] = last
    for (let i = 0; ; ) {
      let least = i
      for (const child of [2 * i + 1, 2 * i + 2])
        if (child < queue.length && isBefore(queue[child] as Happening, queue[least] as Happening)) least = child
      if (least === i) return
      this.swap(i, least)
      i = least
    }
  }

  private swap(i: number, j: number): void {
    const { queue } = this
    const kept = queue[i] as Happening
    queue[i] = queue[j] as Happening
    queue[j] = kept
  }

  // --- Chance

  /** ms that one packet takes. */
  latency(): number {
    const r = this.network.random()
    if (r < 0.9) return this.network.between(0.05, 1)
    return r < 0.985 ? this.network.between(1, 30) : this.network.between(30, this.slowTail)
  }

  random(): number {
    return this.ids.random()
  }

  randomUUID(): string {
    const hex = Array.from({ length: 32 }, () => this.ids.int(16).toString(16)).join('')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`
  }

  /**
   * The next command of a node that `isIt` lingers for `ms` in a connection that has gone, while the node continues
   * over another one. Resolves when the connection breaks.
   */
  lingers(node: SimulatedNode, ms: number, isIt: (args: readonly string[]) => boolean): Promise<void> {
    return new Promise((done) => {
      this.lingering = { node, ms, isIt, done }
    })
  }

  /** How long a command lingers, `null` where it does not. */
  lingerOf(node: SimulatedNode, args: readonly string[]): number | null {
    const lingering = this.lingering
    if (lingering?.node !== node || !lingering.isIt(args)) return null
    this.lingering = null
    this.count('lingers')
    lingering.done()
    return lingering.ms
  }

  // --- The store

  get store(): Store {
    if (!this.realStore) throw new Error('a history of the memory composition has no store')
    return this.realStore
  }

  storeNow(): number {
    return EPOCH + this.now + this.storeOffset
  }

  /** One command at the store, now. */
  async execute(args: readonly string[]): Promise<Reply> {
    const { store } = this
    this.commands++
    store.setClock(this.storeNow())
    const [verb = '', script = ''] = args
    const isScript = ['EVAL', 'EVALSHA', 'FCALL', 'FUNCTION'].includes(verb)
    if (verb === 'FCALL' && !this.hasFunctions) return new Error(NO_FUNCTIONS)
    if (verb === 'FCALL' && !this.hasLibrary) return new Error(NO_FUNCTION)
    if (verb === 'FUNCTION') this.hasLibrary = true
    // The store keeps scripts over histories; a history must not.
    if (verb === 'EVALSHA' && !this.scripts.has(script)) return new Error(NOSCRIPT)
    if (verb === 'EVAL') this.scripts.add(createHash('sha1').update(script).digest('hex'))
    const published: [string, string][] = []
    store.io.onPush = ([kind, channel, message]) => {
      if (kind === 'smessage') published.push([String(channel), String(message)])
    }
    const reply = await store.io.call(args)
    if (isScript) this.writes.push({ at: this.storeNow(), args })
    this.hash.update(
      JSON.stringify([args.map((arg) => (arg.length > 200 ? arg.length : arg)), `${reply}`.slice(0, 200)]),
    )
    for (const [channel, message] of published)
      for (const hearer of this.channels.get(channel) ?? []) hearer.hear(channel, message)
    return reply
  }

  async subscribe(channel: string, hearer: Hearer): Promise<void> {
    const { io, subscribed } = this.store
    if (!subscribed.has(channel)) {
      subscribed.add(channel)
      io.onPush = () => {}
      io.send(['SSUBSCRIBE', channel])
      await io.call(['PING'])
    }
    const hearers = this.channels.get(channel) ?? new Set()
    this.channels.set(channel, hearers.add(hearer))
  }

  *links(): Generator<Link> {
    for (const node of this.nodes) if (!node.life.isDead) yield* node.life.links
  }

  /**
   * The store goes and comes back: every link breaks, every script is gone, and so are the last `lost` writes, as after a
   * failover to a replica that had not had them.
   */
  async restartStore(lost: number, downMs: number): Promise<void> {
    this.say(() => `store restarts, loses ${lost} writes, is down for ${downMs} ms`)
    for (const link of this.links()) link.cut('the store restarts', downMs + this.network.between(1, 300))
    const { io, setClock } = this.store
    if (lost > 0) {
      this.writes = this.writes.slice(0, Math.max(0, this.writes.length - lost))
      await io.call(['FLUSHALL'])
      io.onPush = () => {}
      for (const { at, args } of this.writes) {
        setClock(at)
        await io.call(args)
      }
    }
    await io.call(['SCRIPT', 'FLUSH'])
    await io.call(['FUNCTION', 'FLUSH'])
    this.scripts.clear()
    this.hasLibrary = false
    this.storeBlockedUntil = this.now + downMs
  }

  setFull(isFull: boolean): Promise<Reply> {
    this.say(() => (isFull ? 'store is full' : 'store has room'))
    return this.store.io.call(['CONFIG', 'SET', 'maxmemory', isFull ? '1000' : '0'])
  }

  /** The store as it was before any history. */
  async wipeStore(): Promise<void> {
    const { io, subscribed, setClock } = this.store
    setClock(EPOCH)
    await io.call(['CONFIG', 'SET', 'maxmemory', '0'])
    if (subscribed.size > 0) {
      io.onPush = () => {}
      io.send(['SUNSUBSCRIBE'])
      await io.call(['PING'])
      subscribed.clear()
    }
    await io.call(['FLUSHALL'])
    await io.call(['SCRIPT', 'FLUSH'])
    await io.call(['FUNCTION', 'FLUSH'])
  }
}
