/**
 * The clients of a node, by the shape of `redis` or `ioredis`: in order both ways; what is under way when a link breaks
 * may still arrive, its reply never does.
 */
import { EventEmitter } from 'node:events'
import type { SimulatedNode } from './node.js'
import type { Reply } from './resp.js'
import type { Happening, Hearer, Link, World } from './world.js'

export type ClientKind = 'node-redis' | 'ioredis'

interface Sent {
  args: readonly string[]
  resolve(reply: Reply): void
  reject(error: Error): void
  /** Times that it was written. */
  writes: number
  arrival: Happening | null
}

/** Why a link breaks whose last command arrives much later. */
const LINGERS = 'a command lingers'

const broken = () => new Error('Socket closed unexpectedly')

/** Waits until the store answers at all, then runs `back`. */
function whenStoreIsUp(world: World, node: SimulatedNode, back: () => unknown): void {
  const { storeBlockedUntil, now, network } = world
  if (storeBlockedUntil > now)
    world.at(storeBlockedUntil + network.between(1, 100), node, () => whenStoreIsUp(world, node, back))
  else back()
}

class CommandLink extends EventEmitter implements Link {
  readonly isSubscriber = false
  isReady = true
  private isUp = true
  /** Counts the connections: what belongs to an earlier one is dropped. */
  private connection = 0
  private lastArrival = 0
  private lastReply = 0
  private stalledUntil = 0
  private repliesStalledUntil = 0
  private underWay: Sent[] = []
  private queued: Sent[] = []
  private readonly life

  constructor(
    readonly world: World,
    readonly node: SimulatedNode,
    readonly kind: ClientKind,
    private readonly setStatus: (status: string) => void,
  ) {
    super()
    this.setMaxListeners(0)
    this.life = node.life
    this.life.links.add(this)
  }

  send(args: readonly unknown[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const sent: Sent = { args: args.map(String), resolve, reject, writes: 0, arrival: null }
      if (this.isUp) this.write(sent)
      else this.queued.push(sent)
    })
  }

  private write(sent: Sent): void {
    const { world, connection } = this
    if (sent.writes++ > 0) world.count('sent again')
    this.underWay.push(sent)
    this.lastArrival = Math.max(this.lastArrival, world.now + world.latency(), this.stalledUntil)
    const ms = world.lingerOf(this.node, sent.args)
    this.arriveAt(ms === null ? this.lastArrival : world.now + ms, sent, connection)
    if (ms !== null) this.cut(LINGERS, world.network.between(1, 30))
  }

  private arriveAt(at: number, sent: Sent, connection: number): void {
    sent.arrival = this.world.at(at, null, () => this.arrive(sent, connection))
    sent.arrival.isAwaited = true
  }

  private async arrive(sent: Sent, connection: number): Promise<void> {
    const { world, node } = this
    if (world.storeBlockedUntil > world.now) return this.arriveAt(world.storeBlockedUntil, sent, connection)
    const reply = await world.execute(sent.args)
    if (connection !== this.connection || this.life.isDead) return
    if (world.loseReply(node)) {
      world.say(() => `${node.name} loses the reply to ${sent.args[0]}`)
      this.cut('its reply is lost', world.network.between(1, 400))
      return
    }
    this.lastReply = Math.max(this.lastReply, world.now + world.latency(), this.repliesStalledUntil)
    world.at(this.lastReply, node, () => {
      if (connection !== this.connection) return
      this.underWay.splice(this.underWay.indexOf(sent), 1)
      if (reply instanceof Error) sent.reject(reply)
      else sent.resolve(reply)
    })
  }

  cut(why: string, downMs: number, isForGood = false): void {
    const { world, node, kind, underWay } = this
    world.say(() => `${node.name} loses its link (${why}), ${underWay.length} commands under way`)
    world.count('links cut')
    this.underWay = []
    this.connection++
    const arriving =
      why === 'the store restarts'
        ? 0
        : why === LINGERS || world.network.chance(0.5)
          ? underWay.length
          : world.network.int(underWay.length + 1)
    for (const { arrival } of underWay.slice(arriving)) if (arrival) arrival.isLive = false
    this.isUp = this.isReady = false
    this.setStatus('reconnecting')
    if (isForGood) return
    world.after(world.network.between(0.1, 5), node, () => {
      if (kind === 'ioredis') {
        this.emit('close')
        // Its `autoResendUnfulfilledCommands`.
        this.queued = [...underWay, ...this.queued]
        return
      }
      this.emit('error', broken())
      this.emit('reconnecting')
      for (const sent of underWay) sent.reject(broken())
    })
    world.after(Math.max(6, downMs), node, () => whenStoreIsUp(world, node, () => this.rise()))
  }

  private rise(): void {
    this.isUp = this.isReady = true
    this.lastArrival = this.lastReply = this.world.now
    this.setStatus('ready')
    const { queued } = this
    this.queued = []
    // A client writes what it kept before it says that it is ready.
    for (const sent of queued) this.write(sent)
    this.emit('ready')
  }

  stall(ms: number, onlyReplies: boolean): void {
    const until = this.world.now + ms
    this.repliesStalledUntil = Math.max(this.repliesStalledUntil, until)
    if (!onlyReplies) this.stalledUntil = Math.max(this.stalledUntil, until)
    this.world.say(() => `${this.node.name} hears nothing for ${ms} ms${onlyReplies ? ', but is heard' : ''}`)
  }

  recover(): void {
    this.stalledUntil = this.repliesStalledUntil = 0
  }
}

type Listener = (message: string, channel: string) => void

class SubscriberLink extends EventEmitter implements Link, Hearer {
  readonly isSubscriber = true
  readonly handlers = new Map<string, Set<Listener>>()
  /** The link is up, but no message comes through: as behind a proxy that has forgotten it. */
  isDeaf = false
  isReady = false
  isOpen = true
  private isUp = false
  private isClosed = false
  private hasOpened = false
  private connection = 0
  private lastMessage = 0
  private stalledUntil = 0
  private readonly subscribed = new Set<string>()
  private waiting: (() => void)[] = []
  private underWay: ((error: Error) => void)[] = []
  private readonly life

  constructor(
    readonly world: World,
    readonly node: SimulatedNode,
    readonly kind: ClientKind,
    private readonly setStatus: (status: string) => void,
  ) {
    super()
    this.setMaxListeners(0)
    this.life = node.life
  }

  /** Connects; resolves when it has. */
  open(): Promise<void> {
    this.life.links.add(this)
    return new Promise((resolve) => {
      this.world.after(this.world.latency(), this.node, () => void this.rise().then(resolve))
    })
  }

  close(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.leaveChannels()
    this.isOpen = this.isReady = false
    this.setStatus('end')
    this.life.links.delete(this)
  }

  hear(channel: string, message: string): void {
    const { world, connection } = this
    if (this.isDeaf) {
      world.count('messages unheard')
      return
    }
    this.lastMessage = Math.max(this.lastMessage, world.now + world.latency(), this.stalledUntil)
    world.at(this.lastMessage, this.node, () => {
      if (connection !== this.connection || this.isClosed) return
      if (this.kind === 'ioredis') this.emit('smessage', channel, message)
      else for (const listener of this.handlers.get(channel) ?? []) listener(message, channel)
    })
  }

  hasJoined(channel: string): boolean {
    return this.subscribed.has(channel)
  }

  join(channel: string): Promise<void> {
    return this.command(async () => {
      await this.world.subscribe(channel, this)
      this.subscribed.add(channel)
    })
  }

  part(channel: string): Promise<void> {
    return this.command(async () => {
      this.subscribed.delete(channel)
      this.world.channels.get(channel)?.delete(this)
    })
  }

  private command(run: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const { world, node, connection } = this
      if (!this.isUp) {
        this.waiting.push(() => this.command(run).then(resolve, reject))
        return
      }
      const next = () => {
        this.lastMessage = Math.max(this.lastMessage, world.now + world.latency(), this.stalledUntil)
        return this.lastMessage
      }
      const isOver = () => connection !== this.connection || this.isClosed || this.life.isDead
      const arrival = world.at(next(), null, async () => {
        if (isOver()) return
        await run()
        world.at(next(), node, () => (connection === this.connection ? resolve() : reject(broken())))
      })
      arrival.isAwaited = true
      this.underWay.push(reject)
    })
  }

  private async rise(): Promise<void> {
    const { world, node } = this
    if (this.isClosed || this.life.isDead) return
    if (world.storeBlockedUntil > world.now) {
      await new Promise<void>((resolve) => whenStoreIsUp(world, node, resolve))
      return this.rise()
    }
    this.isUp = true
    this.isDeaf = false
    this.lastMessage = world.now
    // `redis` renews its subscriptions before it says that it is ready.
    if (this.kind === 'node-redis' && this.hasOpened)
      await Promise.all([...this.handlers.keys()].map((channel) => this.join(channel))).catch(() => {})
    if (this.isClosed || this.life.isDead || !this.isUp) return
    this.hasOpened = true
    this.isReady = true
    this.setStatus('ready')
    this.emit('ready')
    const { waiting } = this
    this.waiting = []
    for (const go of waiting) go()
  }

  cut(why: string, downMs: number, isForGood = false): void {
    const { world, node, underWay } = this
    if (this.isClosed) return
    world.say(() => `${node.name} loses its subscriber (${why})`)
    this.leaveChannels()
    this.connection++
    this.isUp = this.isReady = false
    this.setStatus('reconnecting')
    this.underWay = []
    if (isForGood) return
    world.after(world.network.between(0.1, 5), node, () => {
      this.emit(this.kind === 'ioredis' ? 'close' : 'reconnecting')
      for (const reject of underWay) reject(broken())
    })
    world.after(Math.max(6, downMs), node, () => void this.rise())
  }

  stall(ms: number): void {
    this.stalledUntil = this.world.now + ms
  }

  recover(): void {
    this.stalledUntil = 0
    this.isDeaf = false
  }

  private leaveChannels(): void {
    for (const channel of this.subscribed) this.world.channels.get(channel)?.delete(this)
    this.subscribed.clear()
  }
}

function createNodeRedisSubscriber(world: World, node: SimulatedNode) {
  const link = new SubscriberLink(world, node, 'node-redis', () => {})
  const { handlers } = link
  return Object.assign(link, {
    connect: () => link.open().then(() => link),
    destroy: () => link.close(),
    async sSubscribe(channel: string, listener: Listener) {
      const known = handlers.get(channel)
      handlers.set(channel, (known ?? new Set()).add(listener))
      if (!known || !link.hasJoined(channel)) await link.join(channel)
    },
    async sUnsubscribe(channel: string, listener: Listener) {
      const known = handlers.get(channel)
      known?.delete(listener)
      if (known && known.size > 0) return
      handlers.delete(channel)
      await link.part(channel)
    },
  })
}

function createIoredisSubscriber(world: World, node: SimulatedNode) {
  const link: SubscriberLink & { status?: string } = new SubscriberLink(world, node, 'ioredis', (status) => {
    link.status = status
  })
  link.status = 'connecting'
  void link.open()
  return Object.assign(link, {
    connect: async () => {},
    disconnect: () => link.close(),
    ssubscribe: (channel: string) => link.join(channel),
    sunsubscribe: (channel: string) => link.part(channel),
  })
}

/** A client as a host would pass it. */
export function createClient(world: World, node: SimulatedNode, kind: ClientKind) {
  if (kind === 'node-redis') {
    const link = new CommandLink(world, node, kind, () => {})
    return Object.assign(link, {
      isOpen: true,
      sendCommand: (args: readonly string[]) => link.send(args),
      duplicate: () => createNodeRedisSubscriber(world, node),
    })
  }
  const link: CommandLink & { status?: string } = new CommandLink(world, node, kind, (status) => {
    link.status = status
  })
  link.status = 'ready'
  return Object.assign(link, {
    call: (name: string, ...args: unknown[]) => link.send([name, ...args]),
    duplicate: () => createIoredisSubscriber(world, node),
  })
}
