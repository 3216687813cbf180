/** The topics of an event bus that somebody on this node reads: what they hear, and what they find they have missed. */
import { SiteEvent } from '../contract/event-bus.js'
import { createTopic, type Topic } from '../contract/event-topic.js'
import { deepFreeze } from '../contract/json.js'
import { shardOf } from './keys.js'
import { BadRow } from './observe/rows.js'
import { runScript } from './script.js'
import { STAND } from './scripts/event-bus.js'
import type { Store } from './store.js'
import { openSubscriber, type Subscriber } from './subscriber.js'

/** How often the position in the store is compared: an event that never came shows as a gap within two of these. */
const LOOK_MS = 2_000
/** How long a topic without readers is still heard: a viewer that reconnects finds it where it was. */
const UNREAD_MS = 10_000
/** Topics asked about in one script: tens of microseconds each. */
const LOOK_BATCH = 100
/** Longest wait for events that were published before and are still on their way. */
const CATCH_UP_MS = 1_000

export interface LocalTopic {
  readonly name: string
  readonly topic: Topic
  /** Empty until the number of shards is known. */
  channel: string
  shard: number
  /** Messages heard before the position was known; the ring takes no more than its size anyway. `null`: it is known. */
  early: string[] | null
  /** Where the store stood ahead of this node at the last look, else `null`. */
  behind: number | null
  unreadAt: number
  placing: Promise<void> | undefined
  /** Who waits for which seq. */
  waiting: { seq: number; resolve: () => void }[]
}

export interface EventTopicsOptions {
  store: Store
  queueSize: number
  newId: () => string
}

const MESSAGE = /^([^\n]*)\n([1-9][0-9]{0,15})\n/

export type EventTopics = ReturnType<typeof createEventTopics>

export function createEventTopics({ store, queueSize, newId }: EventTopicsOptions) {
  const topics = new Map<string, LocalTopic>()
  const channels = new Map<string, LocalTopic>()
  let subscriber: Subscriber | undefined
  let timer: ReturnType<typeof setInterval> | undefined
  let relistening: Promise<void> | undefined
  let closed = false

  function listener(): Subscriber {
    subscriber ??= openSubscriber({
      client: store.client,
      onMessage(channel, message) {
        const local = channels.get(channel)
        if (local) hear(local, message)
      },
      onLink: (isUp) => void (isUp && relink()),
    })
    return subscriber
  }

  function hear(local: LocalTopic, message: string) {
    if (local.early) {
      local.early.push(message)
      if (local.early.length > queueSize) local.early.shift()
    } else take(local, message)
  }

  function take(local: LocalTopic, message: string) {
    const { name, topic } = local
    const match = MESSAGE.exec(message)
    if (!match) return store.report(new BadRow(`a message of the topic ${JSON.stringify(name)} is none`))
    const [head, epoch, digits] = match as unknown as [string, string, string]
    const seq = Number(digits)
    // Another epoch: how many were lost of the former one nobody can say, but this one is not among them.
    if (epoch !== topic.position.epoch) topic.moveTo({ epoch, seq: seq - 1 })
    if (seq <= topic.position.seq) {
      // A store that went back, or a message that a look has overtaken: the store knows which.
      look([local], false).catch((error) => store.report(error))
      return
    }
    const event = parse(message.slice(head.length), seq)
    if (event) topic.append(event)
    else {
      store.report(new BadRow(`an event of the topic ${JSON.stringify(name)} is none`))
      topic.moveTo({ epoch, seq })
    }
    settle(local)
  }

  function parse(text: string, seq: number): SiteEvent | undefined {
    try {
      const read = SiteEvent.safeParse({ ...JSON.parse(text), seq })
      return read.success ? deepFreeze(read.data) : undefined
    } catch {
      return undefined
    }
  }

  function settle(local: LocalTopic) {
    if (local.waiting.length === 0) return
    const { seq } = local.topic.position
    for (const waits of local.waiting) if (waits.seq <= seq) waits.resolve()
    local.waiting = local.waiting.filter((waits) => waits.seq > seq)
  }

  /** Where the store stands in each of `some`, which are of one shard. */
  async function stand(some: readonly LocalTopic[]): Promise<{ epoch: string; seq: number }[]> {
    const known = some.flatMap(({ name, topic, early }) => {
      const { epoch, seq } = early ? { epoch: '', seq: 0 } : topic.position
      return [name, epoch, seq]
    })
    const reply = await runScript(store, STAND, some[0]?.shard ?? 0, newId(), ...known)
    const found = Array.isArray(reply) ? reply : []
    return some.map((_, i) => ({ epoch: String(found[2 * i]), seq: Number(found[2 * i + 1]) }))
  }

  /** Subscribes, then asks for the position: what was heard in between comes after it. */
  function place(local: LocalTopic): Promise<void> {
    local.placing ??= (async () => {
      try {
        local.shard = shardOf(local.name, await store.claimShards())
        local.channel = store.key(local.shard, 'bus', 'on', local.name)
        if (topics.get(local.name) !== local) return
        channels.set(local.channel, local)
        await listener().subscribe(local.channel)
        const [position] = await stand([local])
        if (!local.early || !position) return
        const early = local.early
          .map((message) => MESSAGE.exec(message))
          .filter((match) => match?.[1] === position.epoch)
        const before = Math.min(position.seq, ...early.map((match) => Number(match?.[2]) - 1))
        local.topic.begin({ epoch: position.epoch, seq: before })
        const messages = local.early
        local.early = null
        for (const message of messages) if (MESSAGE.exec(message)?.[1] === position.epoch) take(local, message)
      } finally {
        local.placing = undefined
      }
    })()
    return local.placing
  }

  /**
   * Compares positions. An event that is not here may still be on its way: lost is what was missing at the look before
   * too, or, `isRelinked`, what the store had before the link stood again.
   */
  async function look(some: readonly LocalTopic[], isRelinked: boolean): Promise<void> {
    const found = await stand(some)
    some.forEach((local, i) => {
      const { epoch, seq } = found[i] as { epoch: string; seq: number }
      const { topic } = local
      if (local.early) return
      if (epoch !== topic.position.epoch || (isRelinked && seq > topic.position.seq)) topic.moveTo({ epoch, seq })
      else if (local.behind !== null && local.behind > topic.position.seq) {
        topic.moveTo({ epoch, seq: local.behind })
        relisten()
      }
      local.behind = seq > topic.position.seq ? seq : null
      settle(local)
    })
  }

  function* batches(): Generator<LocalTopic[]> {
    const byShard = new Map<number, LocalTopic[]>()
    for (const local of topics.values()) {
      if (local.early) continue
      const batch = byShard.get(local.shard) ?? []
      byShard.set(local.shard, batch)
      if (batch.push(local) < LOOK_BATCH) continue
      byShard.delete(local.shard)
      yield batch
    }
    yield* byShard.values()
  }

  async function pass(): Promise<void> {
    for (const local of topics.values()) {
      if (local.topic.readers === 0 && !local.placing && performance.now() - local.unreadAt > UNREAD_MS) forget(local)
      else if (local.early) place(local).catch((error) => store.report(error))
    }
    for (const batch of batches()) await look(batch, false)
  }

  /** The client believes that it listens, and does not hear: a new connection is cheaper than knowing why. */
  function relisten() {
    if (closed) return
    relistening ??= (async () => {
      const deaf = subscriber
      subscriber = undefined
      await deaf?.close()
      await relink()
      relistening = undefined
    })()
  }

  /** The link stands again: subscribes anew, so that nothing falls between, and takes what is missing for lost. */
  async function relink(): Promise<void> {
    try {
      for (const batch of batches()) {
        await Promise.all(batch.map(({ channel }) => listener().subscribe(channel)))
        await look(batch, true)
      }
    } catch (error) {
      // The next pass finds the same.
      store.report(error)
    }
  }

  function forget(local: LocalTopic) {
    topics.delete(local.name)
    channels.delete(local.channel)
    if (local.channel !== '') subscriber?.unsubscribe(local.channel).catch((error) => store.report(error))
    if (topics.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  let isPassing = false
  function tick() {
    if (isPassing) return
    isPassing = true
    pass()
      .catch((error) => store.report(error))
      .finally(() => {
        isPassing = false
      })
  }

  return {
    find: (name: string) => topics.get(name),

    /** The topic of that name, heard from now on. */
    open(name: string): LocalTopic {
      const known = topics.get(name)
      if (known) return known
      const local: LocalTopic = {
        name,
        shard: 0,
        channel: '',
        topic: createTopic({
          queueSize,
          position: null,
          onUnread() {
            local.unreadAt = performance.now()
          },
        }),
        early: [],
        behind: null,
        unreadAt: performance.now(),
        placing: undefined,
        waiting: [],
      }
      topics.set(name, local)
      if (timer === undefined) {
        timer = setInterval(tick, LOOK_MS)
        if (typeof timer === 'object') timer.unref?.()
      }
      return local
    },

    place,

    /** Resolves when `local` stands where the store stood at the call. */
    async catchUp(local: LocalTopic): Promise<void> {
      await relistening
      if (local.early) await place(local)
      local.unreadAt = performance.now()
      const [position] = await stand([local])
      const { epoch, seq } = local.topic.position
      if (!position || position.epoch !== epoch || position.seq <= seq) return
      await new Promise<void>((resolve) => {
        const waits = {
          seq: position.seq,
          resolve() {
            clearTimeout(late)
            resolve()
          },
        }
        const late = setTimeout(() => {
          local.waiting = local.waiting.filter((other) => other !== waits)
          resolve()
        }, CATCH_UP_MS)
        local.waiting.push(waits)
      })
    },

    async close(): Promise<void> {
      closed = true
      clearInterval(timer)
      for (const { topic, waiting } of topics.values()) {
        topic.close()
        for (const { resolve } of waiting) resolve()
      }
      topics.clear()
      channels.clear()
      await subscriber?.close()
    },
  }
}
