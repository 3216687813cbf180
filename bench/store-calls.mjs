/**
 * What one call of the store costs from Lua, CPU µs of the store, thirty-two in a script as in a run of the dispatcher: what an
 * admission is made of (docs/performance.md). Needs redis-server. Run with `node bench/store-calls.mjs`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createClient } from 'redis'
import { check, report } from './report.mjs'

const IN_A_RUN = 32
const RUNS = 1_000
const ROUNDS = 5
/** Scripts that are on their way at once. */
const TOGETHER = 50
const PAYLOAD = '{"page":7,"filter":"open","note":"a payload of ordinary size"}'
/** The text of a record, of fields as a dispatcher has them. */
const RECORD = `table.concat({ ref, 'ready', seq, at, 'user-1', '', '0', '', '', '', '', '', 'work', 'abcdef0123456789', '3', at,
  '', '', '', '', '', '' }, '\\0')`

/** By what it does: what a script does thirty-two times, and once behind that. `n` is another number each time. */
const CALLS = {
  'nothing but its loop': [''],
  'a counter that is raised': [`redis.call('INCR', 'seq')`],
  'a field that is read': [`redis.call('HGET', 'held', user)`],
  'a field that is raised': [`redis.call('HINCRBY', 'held', user, 1)`],
  'whether a key is there': [`redis.call('EXISTS', 'absent:' .. n)`],
  'an entry of a long sorted set': [`redis.call('ZADD', 'z', at, ref)`],
  'the same, all in one call': [`t[#t + 1] = at t[#t + 1] = ref`, `redis.call('ZADD', 'z', unpack(t))`],
  'an entry of one of fifty short ones': [`redis.call('ZADD', 'box:' .. n % 50, seq, 'c' .. n)`],
  'a record and its payload': [`redis.call('MSET', 'command:' .. n, ${RECORD}, 'payload:' .. n, '${PAYLOAD}')`],
  'a record that is read and written again': [
    `if n == 1 then redis.call('SET', 'command', ${RECORD}) end
  local c = { struct.unpack('${'s'.repeat(21)}', redis.call('GET', 'command')) }
  c[22] = '' redis.call('SET', 'command', table.concat(c, '\\0'))`,
  ],
}

const scriptOf = ([each, last = '']) => `
local n, t = tonumber(ARGV[1]), {}
for _ = 1, ${IN_A_RUN} do
  n = n + 1
  local user, ref = 'user-' .. n % 10, 'user-1\\nclient-1\\nc' .. n
  local at, seq = string.format('%.0f', 1763868000000 + n), string.format('%.0f', 1763868000000000 + n)
  ${each}
end
${last}`

const probe = createServer().listen(0, '127.0.0.1')
await once(probe, 'listening')
const { port } = probe.address()
probe.close()
await once(probe, 'close')
const given = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
const server = spawn('redis-server', given, { stdio: 'ignore' })
process.on('exit', () => server.kill('SIGKILL'))
// Tries again until the server is up.
const client = createClient({ url: `redis://127.0.0.1:${port}` }).on('error', () => {})
await client.connect()

async function cpuOfStore() {
  const info = await client.sendCommand(['INFO', 'cpu'])
  const of = (name) => Number(new RegExp(`^${name}:(.*)`, 'm').exec(info)[1])
  return (of('used_cpu_user') + of('used_cpu_sys')) * 1e6
}

/** CPU µs of one of the thirty-two, in the least disturbed round. */
async function measure(call) {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    await client.sendCommand(['FLUSHALL'])
    const sha = await client.sendCommand(['SCRIPT', 'LOAD', scriptOf(call)])
    const from = await cpuOfStore()
    for (let i = 0; i < RUNS; i += TOGETHER)
      await Promise.all(
        Array.from({ length: TOGETHER }, (_, j) =>
          client.sendCommand(['EVALSHA', sha, '0', String((i + j) * IN_A_RUN)]),
        ),
      )
    best = Math.min(best, ((await cpuOfStore()) - from) / (RUNS * IN_A_RUN))
    if (call[0].includes(`'INCR'`))
      check('every script ran once', await client.sendCommand(['GET', 'seq']), String(RUNS * IN_A_RUN), RUNS)
  }
  return best
}

let loop = 0
for (const [what, call] of Object.entries(CALLS)) {
  const us = await measure(call)
  if (loop === 0) loop = us
  const found = us === loop ? us : us - loop
  report([{ what: `${what}, from Lua`, goal: null, found, unit: 'µs', better: 'lower' }])
}
client.destroy()
process.exit(0)
