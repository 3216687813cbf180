/**
 * Pages, users, actions and registering in memory at 1 k, 100 k and 1 M connections, each against hand-written code that
 * does the same visible work. Build first; run with `node --expose-gc --max-old-space-size=6000 bench/memory-pages.mjs [sizes…]`.
 */
import { createConnectionRegistry } from 'relayscope/memory'
import * as z from 'zod'
import { check, report } from './report.mjs'

const SIZES = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1_000, 100_000, 1_000_000]
/** Minimum registrations in turn: a thousand in a new process would measure its compiler. */
const REGISTERED = 100_000
const ASK = { signal: new AbortController().signal }
/**
 * A page, wherever it begins and whatever it is of; how much the slowest may differ from the fastest; and registering against as
 * much by hand, which is itself twice one bare map.
 */
const GOALS = { us: 10, flat: 1.5, register: 1.75 }
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

const Id = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^\p{Cc}]*$/u)
const Given = z.object({
  user_id: Id,
  client_id: Id,
  instance_id: Id,
  client_type: z.enum(['browser', 'console', 'mobile', 'web']),
  actions: z.array(Id).max(1_000),
})

/**
 * What a host would write who is to be asked as we are: checked, and kept by id, order, user, client and state, with
 * users in order, what ages first, and who offers which action. It can neither change nor forget any of it.
 */
function createRegistryByHand() {
  const [byId, current, lastSeen, byUser, byClient] = Array.from({ length: 5 }, () => new Map())
  const [all, userIds, aging, states, offers] = [[], [], new Set(), new Map(), new Map()]
  const listIn = (map, key, entry) => {
    const list = map.get(key)
    if (list) list.push(entry)
    else map.set(key, [entry])
  }
  const raise = (map, key) => map.set(key, (map.get(key) ?? 0) + 1)
  function insert(id) {
    let [low, high] = [0, userIds.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (userIds[middle] < id) low = middle + 1
      else high = middle
    }
    userIds.splice(low, 0, id)
  }
  return {
    async connect(given) {
      const { user_id, client_id, instance_id, client_type, actions } = Given.parse(given)
      const client = `${user_id}\n${client_id}`
      if (current.has(client)) throw new Error('taken over')
      const at = new Date().toISOString()
      const connection = Object.freeze({
        connection_id: crypto.randomUUID(),
        user_id,
        client_id,
        instance_id,
        client_type,
        node_id: null,
        status: 'connected',
        connected_at: at,
        last_seen_at: at,
        disconnected_at: null,
        actions: Object.freeze(actions),
        metadata: {},
      })
      const entry = { connection, sequence: all.length, touchedAt: Date.now() }
      byId.set(connection.connection_id, entry)
      all.push(entry)
      if (!byUser.has(user_id)) insert(user_id)
      listIn(byUser, user_id, entry)
      listIn(byClient, client_id, entry)
      current.set(client, entry)
      aging.add(entry)
      lastSeen.set(user_id, at)
      raise(states, `connected ${client_type}`)
      for (const name of actions) {
        const offer = offers.get(name) ?? { types: new Map(), users: new Map() }
        offers.set(name, offer)
        raise(offer.types, client_type)
        raise(offer.users, user_id)
      }
      return connection
    },
  }
}

function pageByHand(map, skip) {
  const items = []
  for (const connection of map.values()) {
    if (skip-- > 0) continue
    if (items.push(connection) === 50) break
  }
  return items
}

const createOurs = (size) => createConnectionRegistry({ maxConnections: size, maxDisconnected: 1 })

/** Registers `size` connections: the registry, their ids and CPU µs of each. */
async function register(size, users, registry = createOurs(size)) {
  const ids = []
  const from = process.cpuUsage()
  for (let i = 0; i < size; i++) ids.push((await registry.connect(input(i, users))).connection_id)
  return { registry, ids, us: cpuPer(size, from) }
}

for (const size of SIZES) {
  const users = Math.max(1, size / 4)
  console.log(`${size} connections of ${users} users`)
  const best = Array.from({ length: 3 }, () => Number.POSITIVE_INFINITY)
  for (let all = 0; all < REGISTERED; all += size) {
    best[0] = Math.min(best[0], registerByHand(size, users).us)
    best[1] = Math.min(best[1], (await register(size, users)).us)
    best[2] = Math.min(best[2], (await register(size, users, createRegistryByHand())).us)
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
  row('register, as much by hand', best[2], best[0])
  globalThis.gc?.()
  if (globalThis.gc)
    console.log(`  heap per connection ${Math.round((process.memoryUsage().heapUsed - heap) / size)} bytes`)
  row('heartbeat', await time((i) => registry.heartbeat(ids[i % size])))

  const { inspector } = registry
  const page = (cursor) => () => inspector.listConnections({}, { limit: 50, cursor }, ASK)
  for (const from of [0, size / 2, size - 50]) {
    const { items } = await page(from === 0 ? null : String(from))()
    const wanted = ids.slice(from, from + 50)
    check(
      'every page has the right rows',
      items.map(({ connection_id }) => connection_id),
      wanted,
      50,
      `${from} of ${size}`,
    )
  }
  check('the count is exact', (await inspector.countConnections({}, ASK)).total, size, size)
  const pages = await times(page(null), page(String(size / 2)), page(String(size - 50)))
  for (const [i, name] of ['first', 'middle', 'last'].entries()) row(`page of 50, ${name}`, pages[i], first)
  console.log(`  flat within ${(Math.max(...pages) / Math.min(...pages)).toFixed(2)} ×`)
  const flat = Math.max(...pages) / Math.min(...pages)
  report([
    {
      what: `register one of ${size}, against as much by hand`,
      goal: GOALS.register,
      found: best[1] / best[2],
      unit: '×',
      better: 'lower',
    },
    {
      what: `the same by hand of ${size}, against one Map`,
      goal: null,
      found: best[2] / best[0],
      unit: '×',
      better: 'lower',
    },
    { what: `slowest page of 50 of ${size}`, goal: GOALS.us, found: Math.max(...pages), unit: 'µs', better: 'lower' },
    {
      what: `the slowest page of ${size}, against the fastest of first, middle and last`,
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
