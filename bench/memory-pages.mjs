/**
 * Pages, users, actions and registering in memory at 1 k, 100 k and 1 M connections, each against hand-written code that
 * does the same visible work. Build first; run with `node --expose-gc --max-old-space-size=6000 bench/memory-pages.mjs [sizes…]`.
 */
import { createConnectionRegistry } from 'relayscope/memory'
import { report } from './report.mjs'

const SIZES = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1_000, 100_000, 1_000_000]
/** Registered in all at least, by turns: a thousand of a process that has just begun would tell of its compiler. */
const REGISTERED = 100_000
const ASK = { signal: new AbortController().signal }
/** A page, wherever it begins and whatever it is of; and how much the slowest may differ from the fastest. */
const GOALS = { us: 10, flat: 1.5, register: 2 }
const ACTIONS = ['tabs.list', 'tabs.open', 'page.print']

/** CPU µs of one call of each in its least disturbed round; they take turns, so that warming up falls on all alike. */
async function times(...calls) {
  const samples = calls.map(() => [])
  for (let round = 0; round < 25; round++)
    for (const [which, call] of calls.entries()) {
      const from = process.cpuUsage()
      for (let i = 0; i < 400; i++) await call(i)
      // The first rounds only warm up.
      if (round >= 10) samples[which].push(cpuPer(400, from))
    }
  return samples.map((each) => Math.min(...each))
}

const time = async (call) => (await times(call))[0]

/** CPU time since `from` per one of `count`, in µs: on a busy machine waiting must not count. */
function cpuPer(count, from) {
  const { user, system } = process.cpuUsage(from)
  return (user + system) / count
}

const row = (name, us, baseline) =>
  console.log(
    `  ${name.padEnd(40)} ${us.toFixed(2).padStart(9)} µs${baseline ? `   ${(us / baseline).toFixed(2)} × baseline` : ''}`,
  )

const input = (i, users) => ({
  user_id: `user-${i % users}`,
  client_id: `client-${i}`,
  instance_id: `instance-${i}`,
  client_type: i % 2 ? 'web' : 'console',
  actions: ACTIONS,
})

/** What a host would write without us: one Map, and for a page a walk over it from the front. */
function registerByHand(size, users) {
  const map = new Map()
  const from = process.cpuUsage()
  for (let i = 0; i < size; i++) {
    const at = new Date().toISOString()
    const connection_id = crypto.randomUUID()
    map.set(connection_id, {
      connection_id,
      ...input(i, users),
      node_id: null,
      status: 'connected',
      connected_at: at,
      last_seen_at: at,
      disconnected_at: null,
      metadata: {},
    })
  }
  return { map, us: cpuPer(size, from) }
}

function pageByHand(map, skip) {
  const items = []
  for (const connection of map.values()) {
    if (skip-- > 0) continue
    if (items.push(connection) === 50) break
  }
  return items
}

/** Registers `size` connections with us: the registry, their ids and CPU µs of each. */
async function register(size, users) {
  const registry = createConnectionRegistry({ maxConnections: size, maxDisconnected: 1 })
  const ids = []
  const from = process.cpuUsage()
  for (let i = 0; i < size; i++) ids.push((await registry.connect(input(i, users))).connection_id)
  return { registry, ids, us: cpuPer(size, from) }
}

for (const size of SIZES) {
  const users = Math.max(1, size / 4)
  console.log(`${size} connections of ${users} users`)
  const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let all = 0; all < REGISTERED; all += size) {
    best[0] = Math.min(best[0], registerByHand(size, users).us)
    best[1] = Math.min(best[1], (await register(size, users)).us)
  }
  globalThis.gc?.()
  const byHand = registerByHand(size, users)
  row('register, one Map by hand', best[0])
  const first = await time(() => pageByHand(byHand.map, 0))
  row('page of 50, Map, first', first)
  const skips = size > 100_000 ? [] : [size - 50]
  for (const skip of skips) row('page of 50, Map, last by skipping', await time(() => pageByHand(byHand.map, skip)))
  byHand.map.clear()

  globalThis.gc?.()
  const heap = process.memoryUsage().heapUsed
  const { registry, ids } = await register(size, users)
  row('register', best[1], best[0])
  globalThis.gc?.()
  if (globalThis.gc)
    console.log(`  heap per connection ${Math.round((process.memoryUsage().heapUsed - heap) / size)} bytes`)
  row('heartbeat', await time((i) => registry.heartbeat(ids[i % size])))

  const { inspector } = registry
  const page = (cursor) => () => inspector.listConnections({}, { limit: 50, cursor }, ASK)
  const pages = await times(page(null), page(String(size / 2)), page(String(size - 50)))
  for (const [i, name] of ['first', 'middle', 'last'].entries()) row(`page of 50, ${name}`, pages[i], first)
  console.log(`  flat within ${(Math.max(...pages) / Math.min(...pages)).toFixed(2)} ×`)
  const flat = Math.max(...pages) / Math.min(...pages)
  report([
    {
      what: `register one of ${size}, against one Map by hand`,
      goal: GOALS.register,
      found: best[1] / best[0],
      unit: '×',
      better: 'lower',
    },
    { what: `slowest page of 50 of ${size}`, goal: GOALS.us, found: Math.max(...pages), unit: 'µs', better: 'lower' },
    {
      what: 'against the fastest of first, middle and last',
      goal: GOALS.flat,
      found: flat,
      unit: '×',
      better: 'lower',
    },
  ])
  row(
    'page of one user',
    await time(() => inspector.listConnections({ user_id: 'user-7' }, { limit: 50, cursor: null }, ASK)),
  )
  row('exact counts of all', await time(() => inspector.countConnections({}, ASK)))
  row('page of 50 user ids, middle', await time(() => inspector.listUserIds({ after: 'user-5', limit: 50 }, ASK)))
  const some = inspector.listUserIds({ after: 'user-5', limit: 50 }, ASK)
  row('what is known of 50 users', await time(() => inspector.observeUsers(some, ASK)))
  row('actions with exact counts', await time(() => inspector.listActions({}, { limit: 50, cursor: null }, ASK)))
}
