// The event bus against one bounded queue per subscriber behind an EventEmitter: 10,000 subscribers that iterate.
// Run: npm run build && node --expose-gc bench/bus.mjs. Quote the ratios; absolute numbers are this machine's.
import { EventEmitter } from 'node:events'
import { createCooperativeSiteEventBus } from 'relayscope/cooperative-site'
import { check, report } from './report.mjs'

const SUBSCRIBERS = 10_000
const QUEUE = 100
const ROUNDS = 9
/** One event at a time the queue has nothing to save, and a ring also finds what was lost. */
const GOALS = { burst: 1.4, single: 0.8, idleBytes: 100, laggingBytes: 100 }
const event = { event_id: 'e', name: 'changed', site_id: 's', published_at: '2026-01-01T00:00:00.000Z', data: null }

/** What a careful host writes by hand: a queue that drops its oldest, and counts what it dropped. */
class BoundedQueue {
  items = []
  dropped = 0
  waiting = null
  closed = false

  push(value) {
    if (this.waiting) {
      const resolve = this.waiting
      this.waiting = null
      resolve({ done: false, value: { type: 'event', event: value } })
      return
    }
    if (this.items.push(value) > QUEUE) {
      this.items.shift()
      this.dropped++
    }
  }

  next() {
    if (this.items.length > 0)
      return Promise.resolve({ done: false, value: { type: 'event', event: this.items.shift() } })
    if (this.closed) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => {
      this.waiting = resolve
    })
  }

  close() {
    this.closed = true
    this.waiting?.({ done: true, value: undefined })
  }

  [Symbol.asyncIterator]() {
    return this
  }
}

const peers = {
  'EventEmitter + queues'() {
    const emitter = new EventEmitter().setMaxListeners(0)
    let seq = 0
    return {
      publish: () => emitter.emit('t', { ...event, seq: ++seq }),
      subscribe() {
        const queue = new BoundedQueue()
        emitter.on('t', (value) => queue.push(value))
        return queue
      },
    }
  },
  relayscope() {
    const bus = createCooperativeSiteEventBus({ queueSize: QUEUE })
    return { publish: () => bus.publish('t', event), subscribe: () => bus.subscribe('t') }
  },
}

/**
 * The least for one event at a time: resolves the promises of those who wait, with one result for all. Keeps nothing for
 * others, so it can neither take bursts nor tell what was lost.
 */
function promisesAlone() {
  let waiting = []
  let seq = 0
  return {
    publish() {
      const result = { done: false, value: { type: 'event', event: { ...event, seq: ++seq } } }
      const woken = waiting
      waiting = []
      for (const resolve of woken) resolve(result)
    },
    subscribe: () => ({
      next: () => new Promise((resolve) => waiting.push(resolve)),
      close() {},
      [Symbol.asyncIterator]() {
        return this
      },
    }),
  }
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1]

/** Subscribers that iterate, and how to give them `burst` events at once and wait until all have come. */
function audience(make, burst) {
  const { publish, subscribe } = make()
  const subscriptions = Array.from({ length: SUBSCRIBERS }, subscribe)
  let left = 0
  let arrived = () => {}
  for (const subscription of subscriptions)
    void (async () => {
      for await (const delivery of subscription) if (delivery.type === 'event' && --left === 0) arrived()
    })()
  return {
    /** Million deliveries per second of CPU: on a busy machine waiting must not count. */
    async round() {
      const repeats = Math.ceil(40 / burst)
      const start = process.cpuUsage()
      for (let n = 0; n < repeats; n++) {
        left = burst * SUBSCRIBERS
        const all = new Promise((resolve) => {
          arrived = resolve
        })
        for (let i = 0; i < burst; i++) publish()
        await all
      }
      const { user, system } = process.cpuUsage(start)
      return (repeats * burst * SUBSCRIBERS) / (user + system)
    },
    close() {
      for (const subscription of subscriptions) subscription.close()
    },
  }
}

/** The rates of `kinds`, and each against the first one's of the same round: they take turns. */
async function rates(kinds, burst) {
  const audiences = kinds.map((make) => audience(make, burst))
  const seen = audiences.map(() => [])
  for (let round = 0; round <= ROUNDS; round++)
    for (const [index, each] of audiences.entries()) {
      const rate = await each.round()
      if (round > 0) seen[index].push(rate)
    }
  for (const each of audiences) each.close()
  const against = (rates) => median(rates.map((rate, round) => rate / seen[0][round]))
  return { each: seen.map(median), ratios: seen.map(against) }
}

/** Bytes in use, when what is over has gone: some of it needs a turn of the loop more than a collection. */
async function heap() {
  let bytes = Number.POSITIVE_INFINITY
  while (true) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    globalThis.gc()
    const { heapUsed } = process.memoryUsage()
    if (heapUsed > bytes - SUBSCRIBERS) return Math.min(heapUsed, bytes)
    bytes = heapUsed
  }
}

/** Bytes per subscriber: idle, and how many more when it lags by a full queue. */
async function bytes(make) {
  // Excludes one-time costs such as compiled code.
  const former = make()
  for (let n = 0; n < SUBSCRIBERS; n++) former.subscribe().close()
  const { publish, subscribe } = make()
  const subscriptions = []
  subscriptions.length = SUBSCRIBERS
  const empty = await heap()
  for (let n = 0; n < SUBSCRIBERS; n++) subscriptions[n] = subscribe()
  const idle = await heap()
  for (let n = 0; n < 2 * QUEUE; n++) publish()
  const lagging = await heap()
  if (subscriptions.length !== SUBSCRIBERS) throw new Error('kept alive until here')
  return [(idle - empty) / SUBSCRIBERS, (lagging - idle) / SUBSCRIBERS]
}

/** Nanoseconds per publish when readers fall behind. */
function publishing(make) {
  const { publish, subscribe } = make()
  const subscriptions = Array.from({ length: SUBSCRIBERS }, subscribe)
  const start = performance.now()
  const count = make === peers.relayscope ? 100_000 : 200
  for (let n = 0; n < count; n++) publish()
  const ns = ((performance.now() - start) * 1e6) / count
  return subscriptions.length > 0 ? ns : 0
}

/** Every subscriber receives every event of a burst once and in order. */
async function checkDelivery(name, make) {
  const { publish, subscribe } = make()
  const subscriptions = Array.from({ length: 1_000 }, subscribe)
  const received = subscriptions.map(async (subscription) => {
    const ids = []
    for await (const { type, event } of subscription)
      if (type === 'event' && ids.push(event.seq) === QUEUE) return ids
      else if (type !== 'event') return [type]
    return ids
  })
  for (let n = 0; n < QUEUE; n++) publish()
  const [first, ...others] = await Promise.all(received)
  const inOrder = Array.from({ length: QUEUE }, (_, i) => i + 1)
  check('every subscriber receives each event once, in order', first, inOrder, QUEUE, name)
  const same = others.filter((ids) => JSON.stringify(ids) === JSON.stringify(inOrder)).length
  check('every subscriber receives each event once, in order', same, others.length, others.length * QUEUE, name)
  for (const subscription of subscriptions) subscription.close()
}

for (const [name, make] of Object.entries(peers)) await checkDelivery(name, make)

// Memory first: what the rates leave behind would be counted.
const memory = []
for (const make of Object.values(peers)) memory.push(globalThis.gc ? await bytes(make) : [Number.NaN, Number.NaN])
const kinds = Object.values(peers)
const [burst, single] = [await rates(kinds, 20), await rates([...kinds, promisesAlone], 1)]
console.log(
  `${SUBSCRIBERS} subscribers, million deliveries per second of CPU (median of ${ROUNDS}), bytes per subscriber`,
)
for (const [index, [name, make]] of Object.entries(peers).entries()) {
  const [idle, lagging] = memory[index].map((bytes) => bytes.toFixed(0))
  console.log(`  ${name}`)
  console.log(`    bursts of 20        ${burst.each[index].toFixed(2)}`)
  console.log(`    one event at a time ${single.each[index].toFixed(2)}`)
  console.log(`    bytes, idle         ${idle}; lagging by a full queue ${lagging} more`)
  console.log(`    publish with readers behind ${publishing(make).toFixed(0)} ns`)
}
const [idle, lagging] = memory[1]
const against = 'against an EventEmitter with queues'
const higher = (what, goal, found) => ({ what, goal, found, unit: '×', better: 'higher' })
report([
  higher(`deliveries in bursts of 20, ${against}`, GOALS.burst, burst.ratios[1]),
  higher(`deliveries one at a time, ${against}`, GOALS.single, single.ratios[1]),
  higher(`promises alone, one at a time, ${against}`, null, single.ratios[2]),
])
// Not known unless it runs with --expose-gc.
if (Number.isFinite(idle))
  report([
    { what: 'an idle subscriber', goal: GOALS.idleBytes, found: idle, unit: 'bytes', better: 'lower' },
    { what: 'one that lags, more', goal: GOALS.laggingBytes, found: lagging, unit: 'bytes', better: 'lower' },
  ])
