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
import { report } from './report.mjs'

const ENTRIES = Number(process.argv[2] ?? 1_000_000)
const KIND = process.argv[3] ?? 'node-redis'
/** Against a plain `MGET` of the same keys; and of the last page against the first. */
const GOALS = { page: 2.6, last: 1.3 }
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
  const filled = {
    ...JSON.parse(state),
    context_id: `ctx-${i}`,
    user_id: `user-${i % 1_000}`,
    seq: i + 1,
    ttl_ms: 1e12,
  }
  return `${JSON.stringify(filled)}\n${body}`
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

/** Milliseconds of one call of each in its least disturbed round; they take turns. */
async function times(calls) {
  const samples = calls.map(() => [])
  for (let round = 0; round < 30; round++)
    for (const [which, call] of calls.entries()) {
      const from = performance.now()
      for (let i = 0; i < 40; i++) await call()
      if (round >= 10) samples[which].push((performance.now() - from) / 40)
    }
  return samples.map((each) => Math.min(...each))
}

const now = Date.now()
const { contextRegistry } = redisComposition({ client, deploymentId: 'bench', now: () => now }).inspectors
const page = (after) => () => contextRegistry.listContexts({}, { limit: 50, cursor: `0.${after}` }, ASK)
const keys = Array.from({ length: 50 }, (_, i) => `${prefix}row:ctx-${ENTRIES / 2 + i}`)
const parse = (rows) => rows.map((text) => JSON.parse(text.slice(0, text.indexOf('\n'))))
const [plain, parsed, first, middle, last] = await times([
  () => send('MGET', ...keys),
  async () => parse(await send('MGET', ...keys)),
  page(0),
  page(ENTRIES / 2),
  page(ENTRIES - 50),
])
if ((await page(ENTRIES - 50)()).items.length !== 50) throw new Error('the last page is short')
const line = (name, ms) =>
  console.log(
    `${name.padEnd(24)} ${ms.toFixed(3)} ms   ${(ms / plain).toFixed(2)} × MGET   ${(ms / parsed).toFixed(2)} × MGET and JSON.parse`,
  )
console.log(`${ENTRIES} contexts, ${KIND}`)
line('plain MGET of 50', plain)
line('MGET and JSON.parse', parsed)
line('page of 50, first', first)
line('page of 50, middle', middle)
line('page of 50, last', last)
console.log(`last / first ${(last / first).toFixed(2)}`)
report([
  {
    what: `middle page of 50 of ${ENTRIES}, against MGET`,
    goal: GOALS.page,
    found: middle / plain,
    unit: '×',
    better: 'lower',
  },
  { what: 'the last page against the first', goal: GOALS.last, found: last / first, unit: '×', better: 'lower' },
])
close()
process.exit()
