/** The topics of an event bus that have readers on this node. */
import { createTicker } from '../../internal/async/timer.js'
import { shardOf } from '../store/keys.js'
import { listen } from '../store/listener.js'
import { count, listOf } from '../store/reply.js'
import { defineScript, runScript } from '../store/script.js'
import type { Store } from '../store/store.js'
import { badPosition, createLocalTopic, type LocalTopic, type StorePosition } from './local-topic.js'
import { scripts } from './topic.lua'

// The scripts of the event bus: a topic counts and publishes in one step, and returns its position.

/** Reply to a publication of an event that the topic has had. */
const REPEATED = 2

/**
 * Publishes an event. `known_epoch` and `known_seq`: the position that the publisher knows; `event_id`: detects events
 * that the topic has had, '' for none; `published_at`: the time in the event; `name`: the name of this publication.
 * Returns the position of the event, or that of the topic where the publication had arrived before.
 */
export const PUBLISH = defineScript(
  'event-bus.publish',
  {
    args: ['topic', 'event', 'fresh', 'known_epoch', 'known_seq', 'event_id', 'published_at', 'name'],
    constants: { REPEATED },
    answer: (reply) => {
      if (reply === REPEATED) return { isRepeated: true, isSpoilt: false, position: undefined }
      const [spoilt, epoch, seq = null] = listOf(reply)
      return { isRepeated: false, isSpoilt: spoilt === 1, position: { epoch: String(epoch), seq: count(seq) } }
    },
  },
  scripts.publish,
)

/** Returns the position of each topic. `known`: topic, epoch and seq known to the node, for each of them. */
const POSITIONS = defineScript(
  'event-bus.stand',
  {
    args: ['fresh'],
    rest: 'known',
    answer: (reply) => {
      const found = listOf(reply)
      return Array.from({ length: found.length / 3 }, (_, i) => ({
        epoch: String(found[3 * i]),
        seq: count(found[3 * i + 1] ?? 0),
        isSpoilt: found[3 * i + 2] === 1,
      }))
    },
  },
  scripts.positions,
)

/** Interval between comparisons with the store, in ms: a lost event appears as a gap within two of them. */
const LOOK_MS = 2_000
/** How long a topic without readers stays subscribed, in ms: a viewer that reconnects in this time misses nothing. */
const UNREAD_MS = 10_000
/** Maximum number of topics per script: tens of microseconds each. */
const LOOK_BATCH = 100

type ReadPositions = (some: readonly LocalTopic[]) => Promise<StorePosition[]>
/** Applies the store's position to a topic. */
type Notify = (local: LocalTopic, position: StorePosition) => void
const compare: Notify = (local, position) => local.compare(position)

interface EventTopicsOptions {
  store: Store
  queueSize: number
  newId: () => string
}

/** Reads the store's positions of `some`, all in one shard. `fresh` is the name for a new epoch. */
async function readPositions(store: Store, fresh: string, some: readonly LocalTopic[]): Promise<StorePosition[]> {
  const known = some.flatMap(({ name, topic, isPlaced }) => {
    const { epoch, seq } = isPlaced ? topic.position : { epoch: '', seq: 0 }
    return [name, epoch, seq]
  })
  const found = await runScript(store, POSITIONS, some[0]?.shard ?? 0, { fresh, known })
  some.forEach(({ name }, i) => {
    if (found[i]?.isSpoilt) store.onError(badPosition(name))
  })
  return found
}

/** Reads the positions of `some` and applies them, unless they are outdated by then. */
async function look(some: readonly LocalTopic[], readPositions: ReadPositions, notify: Notify): Promise<void> {
  const epochs = some.map(({ topic }) => topic.position.epoch)
  const found = await readPositions(some)
  some.forEach((local, i) => {
    // An epoch that was received in the meantime is newer than the one in the reply.
    if (local.topic.position.epoch === epochs[i]) notify(local, found[i] as StorePosition)
  })
}

/** Yields the topics whose position is known, in batches per shard. */
function* batchesOf(topics: Iterable<LocalTopic>): Generator<LocalTopic[]> {
  const byShard = new Map<number, LocalTopic[]>()
  for (const local of topics) {
    if (!local.isPlaced) continue
    const batch = byShard.get(local.shard) ?? []
    byShard.set(local.shard, batch)
    if (batch.push(local) < LOOK_BATCH) continue
    byShard.delete(local.shard)
    yield batch
  }
  yield* byShard.values()
}

export function createEventTopics({ store, queueSize, newId }: EventTopicsOptions) {
  const topics = new Map<string, LocalTopic>()
  const checking = new Set<LocalTopic>()
  let isClosed = false
  // After the end, a command that is still in flight may fail because the host closes its client.
  const onError = (error: unknown) => {
    if (!isClosed) store.onError(error)
  }
  const listening = listen(store, (isUp) => void (isUp && relink()))
  const positionsOf: ReadPositions = (some) => readPositions(store, newId(), some)
  const ticker = createTicker(() => pass().catch(onError), LOOK_MS)

  /** Subscribes to a topic, then reads its position. */
  function place(local: LocalTopic): Promise<void> {
    local.placing ??= (async () => {
      try {
        local.shard = shardOf(local.name, await store.claimShards())
        local.channel = store.key(local.shard, 'bus', 'on', local.name)
        if (topics.get(local.name) !== local) return
        await listening.subscribe(local.shard, local.channel, (message) => {
          // Either the store lost data, or a comparison overtook the message: the store's position tells which.
          if (local.hear(message)) checkOnce(local).catch(onError)
        })
        const [position] = await positionsOf([local])
        if (position) local.place(position)
      } finally {
        local.placing = undefined
      }
    })()
    return local.placing
  }

  /** Late messages arrive in groups, and one comparison is enough for all of them. */
  async function checkOnce(local: LocalTopic): Promise<void> {
    if (checking.has(local)) return
    checking.add(local)
    await look([local], positionsOf, compare).finally(() => checking.delete(local))
  }

  /** Compares all topics. A shard that fails does not delay others, and is retried in the next pass. */
  async function lookAtAll(notify: Notify): Promise<void> {
    for (const batch of batchesOf(topics.values())) await look(batch, positionsOf, notify).catch(onError)
  }

  async function pass(): Promise<void> {
    for (const local of topics.values()) {
      const isWanted = local.topic.readers > 0 || local.preparing > 0
      const isOver = !isWanted && performance.now() - local.unreadAt > UNREAD_MS
      if (isOver && !local.placing) forget(local)
      else if (!local.isPlaced) place(local).catch(onError)
    }
    await lookAtAll(compare)
  }

  /** Called after a reconnect. On a Cluster it may concern another node, with nothing lost. */
  const relink = () => lookAtAll((local, position) => void local.relink(position))

  function forget(local: LocalTopic) {
    topics.delete(local.name)
    if (local.channel !== '') listening.unsubscribe(local.channel).catch(onError)
    if (topics.size === 0) ticker.stop()
  }

  return {
    find: (name: string) => topics.get(name),
    place,

    /** Returns the topic with that name, and starts to receive its messages. */
    open(name: string): LocalTopic {
      const known = topics.get(name)
      if (known) return known
      const local = createLocalTopic(name, queueSize, onError)
      topics.set(name, local)
      ticker.start()
      return local
    },

    /** Resolves when `local` has reached the store's position at the time of the call. */
    async catchUp(local: LocalTopic): Promise<void> {
      local.preparing++
      try {
        await listening.renewed()
        if (!local.isPlaced) await place(local)
        const [position] = await positionsOf([local])
        if (position) await local.reach(position)
      } finally {
        local.preparing--
        local.unreadAt = performance.now()
      }
    },

    async close(): Promise<void> {
      isClosed = true
      ticker.stop()
      for (const local of topics.values()) local.close()
      topics.clear()
      await listening.close()
    },
  }
}
