/**
 * A page of 50 contexts of a million in Redis, first, middle and last, against a plain `MGET` of the same keys, alone
 * and parsed, over the same client. Build first; needs redis-server. Run with `node bench/redis-pages.mjs [entries] [node-redis|ioredis]`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { createRedisFacilities, redisComposition } from 'relayscope/redis'
import { check, report } from './report.mjs'

const ENTRIES = Number(process.argv[2] ?? 1_000_000)
const KIND = process.argv[3] ?? 'node-redis'
/**
 * Against the same by hand, which is what a page over a store costs: an index read, an `MGET` and `JSON.parse` take 2.7 of a
 * plain `MGET`, where 2.6 was wanted once; and of the last page against the first.
 */
const GOALS = { page: 1.1, last: 1.3 }
const ASK = { signal: new AbortController().signal }

const probe = createServer().listen(0, '127.0.0.1')
await once(probe, 'listening')
const PORT = probe.address().port
probe.close()
await once(probe, 'close')
const server = spawn(
  'redis-server',
  ['--port', String(PORT), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
  {
    stdio: 'ignore',
  },
)
process.on('exit', () => server.kill('SIGKILL'))

async function connect() {
  if (KIND === 'ioredis') {
    const client = new Redis(PORT, '127.0.0.1', { retryStrategy: () => 50 }).on('error', () => {})
    await new Promise((resolve) => client.once('ready', resolve))
    return { client, send: (...args) => client.call(...args), close: () => client.disconnect() }
  }
  const client = createClient({ url: `redis://127.0.0.1:${PORT}` }).on('error', () => {})
  // Both try again until the server is up.
  await client.connect()
  return { client, send: (...args) => client.sendCommand(args), close: () => client.destroy() }
}
const { client, send, close } = await connect()

// One entry by the facility, the others after its pattern by mass insertion: a million reports would take minutes.
const { contexts } = createRedisFacilities({ client, deploymentId: 'bench' })
await contexts.report({ context_id: 'ctx-0', user_id: 'user-0', client_id: 'c', client_type: 'web', status: 'idle' })
const prefix = 'relayscope:{bench:0}:contexts:'
const [state, body] = (await send('GET', `${prefix}row:ctx-0`)).split('\n')
const row = (i) => {
  const ids = { context_id: `ctx-${i}`, user_id: `user-${i % 1_000}` }
  const filled = { ...JSON.parse(state), user_id: ids.user_id, seq: i + 1 }
  return `${JSON.stringify(filled)}\n${JSON.stringify({ ...JSON.parse(body), ...ids, ttl_ms: 1e12 })}`
}
const command = (...parts) =>
  `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`
const pipe = spawn('redis-cli', ['-p', String(PORT), '--pipe'], { stdio: ['pipe', 'ignore', 'inherit'] })
for (let i = 0; i < ENTRIES; i += 1_000) {
  let chunk = ''
  const members = []
  for (let j = i; j < Math.min(i + 1_000, ENTRIES); j++) {
    chunk += command('SET', `${prefix}row:ctx-${j}`, row(j))
    members.push(String(j + 1), `ctx-${j}`)
  }
  chunk += command('ZADD', `${prefix}all`, ...members)
  if (!pipe.stdin.write(chunk)) await once(pipe.stdin, 'drain')
}
pipe.stdin.end()
if (pipe.exitCode === null) await once(pipe, 'exit')

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1]

/** Milliseconds of one call of each, round by round; they take turns, since a machine is twice as fast in one second as in another. */
async function times(calls) {
  const samples = calls.map(() => [])
  for (let round = 0; round < 100; round++)
    for (const [which, call] of calls.entries()) {
      const from = performance.now()
      for (let i = 0; i < 20; i++) await call()
      if (round >= 20) samples[which].push((performance.now() - from) / 20)
    }
  return samples
}

/** How much more one takes than another, round by round. */
const ratio = (these, those) => median(these.map((ms, round) => ms / those[round]))

const now = Date.now()
const { contextRegistry } = redisComposition({ client, deploymentId: 'bench', now: () => now }).inspectors
const page = (after) => () => contextRegistry.listContexts({}, { limit: 50, cursor: `0.${after}` }, ASK)
const keys = Array.from({ length: 50 }, (_, i) => `${prefix}row:ctx-${ENTRIES / 2 + i}`)
const parse = (rows) => rows.map((text) => JSON.parse(text.slice(text.indexOf('\n'))))
const read = ['ZRANGE', `${prefix}all`, `(${ENTRIES / 2}`, '+inf', 'BYSCORE', 'LIMIT', '0', '51', 'WITHSCORES']
/** A page without us, of which nothing is checked: ids and places, then rows. One client answers pairs, the other a flat list. */
async function pageByHand() {
  const ids = (await send(...read)).flat().filter((_, i) => i % 2 === 0)
  return parse(await send('MGET', ...ids.slice(0, 50).map((id) => `${prefix}row:${id}`)))
}
const [plain, parsed, byHand, first, middle, last] = await times([
  () => send('MGET', ...keys),
  async () => parse(await send('MGET', ...keys)),
  pageByHand,
  page(0),
  page(ENTRIES / 2),
  page(ENTRIES - 50),
])
for (const [name, from] of Object.entries({ first: 0, middle: ENTRIES / 2, last: ENTRIES - 50 })) {
  const wanted = Array.from({ length: 50 }, (_, i) => `ctx-${from + i}`)
  const { items } = await page(from)()
  check(
    'every page has the right rows',
    items.map(({ context_id }) => context_id),
    wanted,
    50,
    name,
  )
}
check(
  'every page has the right rows',
  (await pageByHand()).map(({ context_id }) => context_id),
  Array.from({ length: 50 }, (_, i) => `ctx-${ENTRIES / 2 + i}`),
  50,
  'by hand',
)
const line = (name, each) =>
  console.log(
    `${name.padEnd(24)} ${median([...each]).toFixed(3)} ms   ${ratio(each, plain).toFixed(2)} × MGET   ${ratio(each, parsed).toFixed(2)} × MGET and JSON.parse`,
  )
console.log(`${ENTRIES} contexts, ${KIND}`)
line('plain MGET of 50', plain)
line('MGET and JSON.parse', parsed)
line('page of 50, by hand', byHand)
line('page of 50, first', first)
line('page of 50, middle', middle)
line('page of 50, last', last)
console.log(`last / first ${ratio(last, first).toFixed(2)}`)
const better = 'lower'
report([
  {
    what: `middle page of 50 of ${ENTRIES}, against the same by hand`,
    goal: GOALS.page,
    found: ratio(middle, byHand),
    unit: '×',
    better,
  },
  { what: 'that page, against MGET', goal: 5, found: ratio(middle, plain), unit: '×', better },
  { what: 'the same by hand, against MGET', goal: null, found: ratio(byHand, plain), unit: '×', better },
  { what: 'the last page against the first', goal: GOALS.last, found: ratio(last, first), unit: '×', better },
])
close()
process.exit()
