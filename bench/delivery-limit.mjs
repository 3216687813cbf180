/**
 * A minimal dispatcher over one store that keeps the same evidence, as a limit for `redis-delivery.mjs`. A record is
 * one text, written whole; each of four scripts is one transition. It has no fence, recovery, retry, notification or
 * second shard, and no bound on unacknowledged commands.
 *
 * It keeps: the record with its attempt, acknowledgement and end, the payload until then, the capacity in all, per user
 * and per scope, the mailbox in order, deadlines and timeouts, and lists by state and user.
 */
const AT_ONCE = 16
const HOUR_MS = 3_600_000

/** `text` taken apart at its zero bytes, into `names`; the last of them is the rest. */
const apart = (names, text) => {
  const [last, ...first] = names.split(', ').reverse()
  return `${first.reverse().join(', ')}, rest_at = struct.unpack('${'s'.repeat(first.length)}', ${text})
  ${last} = string.sub(${text}, rest_at)`
}

const FIELDS = 'phase, ref, scope, print, at, deadline, action, most, seq, attempts, instance, heard, over, payload'
const READ = `local v, rest_at = redis.call('GET', key)
  local ${FIELDS}
  ${apart(FIELDS, 'v')}`
const WRITE = `redis.call('SET', key, table.concat({ ${FIELDS} }, '\\0'))`

/** Runs `each` for every call; lists are written once. */
const script = (each) => `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local P, held, answers = KEYS[1], {}, {}
local function text(number) return string.format('%d', number) end
local now_text, on, off = text(now), {}, {}
local function enlist(key, seq, ref)
  local of = on[key] or {}
  on[key] = of
  of[#of + 1], of[#of + 2] = seq, ref
end
local function leave(key, ref)
  local of = off[key] or {}
  off[key] = of
  of[#of + 1] = ref
end
local tracked = redis.call('ZCARD', P .. 'deadlines')
local before = redis.call('INCRBY', P .. 'seq', #ARGV) - #ARGV
for n = 1, #ARGV do
  ${each}
end
for user, count in pairs(held) do redis.call('HINCRBY', P .. 'held', user, count) end
for key, of in pairs(on) do redis.call('ZADD', key, unpack(of)) end
for key, of in pairs(off) do redis.call('ZREM', key, unpack(of)) end
return answers`

const taken = (names) => `local rest_at, ${names}\n  ${apart(names, 'ARGV[n]')}`

const ADMIT = script(`${taken('box, user, id, action, scope, capacity, ttl, most, print, payload')}
  local key, place, ref = P .. 'command:' .. box .. ':' .. id, P .. 'scope:' .. scope, box .. ':' .. id
  if redis.call('EXISTS', key) == 0 and tracked + n <= 10000000 then
    local deadline, seq = text(now + ttl), text(before + n)
    redis.call('ZADD', place, 'GT', deadline, ref)
    if redis.call('ZCARD', place) <= tonumber(capacity) then
      local phase, at, attempts, instance, heard, over = 'ready', now_text, '0', '', '', ''
      ${WRITE}
      redis.call('ZADD', P .. 'deadlines', deadline, ref)
      redis.call('ZADD', P .. 'box:' .. box, seq, id)
      held[user] = (held[user] or 0) + 1
      enlist(P .. 'state:waiting', seq, ref)
      enlist(P .. 'of:' .. user, seq, ref)
      answers[n] = deadline
    end
  end`)

const CLAIM = script(`${taken('box, instance, claim')}
  local id = redis.call('ZPOPMIN', P .. 'box:' .. box)[1]
  local key = P .. 'command:' .. box .. ':' .. id
  local by = instance
  ${READ}
  if phase == 'ready' and tonumber(deadline) > now then
    phase, attempts, instance = 'attempted', text(attempts + 1), by
    ${WRITE}
    redis.call('HSET', P .. 'waiter:' .. box, 'claim', claim, 'claimed', id)
    redis.call('ZADD', P .. 'wakes', text(now + 30000), ref)
    leave(P .. 'state:waiting', ref)
    enlist(P .. 'state:attempted', seq, ref)
    answers[n] = { id, action, payload, deadline, redis.call('ZCARD', P .. 'box:' .. box) }
  end`)

const ACKNOWLEDGE = script(`${taken('box, id, by')}
  local key = P .. 'command:' .. box .. ':' .. id
  ${READ}
  if phase == 'attempted' and instance == by and tonumber(deadline) > now then
    phase, heard = 'acknowledged', now_text
    ${WRITE}
    redis.call('ZREM', P .. 'wakes', ref)
    leave(P .. 'state:attempted', ref)
    enlist(P .. 'state:acknowledged', seq, ref)
    answers[n] = 1
  end`)

const END = script(`${taken('box, user, id, call')}
  local key = P .. 'command:' .. box .. ':' .. id
  ${READ}
  if over == '' and redis.call('ZREM', P .. 'deadlines', ref) == 1 then
    local place = P .. 'scope:' .. scope
    held[user] = (held[user] or 0) - 1
    phase, over, payload = 'ended', 'resulted ' .. now_text .. ' ' .. call, ''
    ${WRITE}
    redis.call('ZREM', place, ref)
    if redis.call('EXISTS', place) == 0 then redis.call('ZREM', P .. 'scopes', scope) end
    redis.call('ZADD', P .. 'ended', text(now + ${HOUR_MS}), ref)
    leave(P .. 'state:acknowledged', ref)
    enlist(P .. 'state:resulted', seq, ref)
    answers[n] = 1
  end`)

/** Calls of one turn run together; each has its own answer. */
function createRun(connection, prefix, lua) {
  const sha = connection.script('LOAD', lua)
  let batch
  async function send(calls) {
    batch = undefined
    const answers = await connection.evalsha(
      await sha,
      1,
      prefix,
      calls.map(({ given }) => given.join('\0')),
    )
    for (const [i, { resolve }] of calls.entries()) resolve(answers[i])
  }
  return (...given) =>
    new Promise((resolve) => {
      if (!batch) {
        const calls = []
        batch = calls
        queueMicrotask(() => batch === calls && send(calls))
      }
      batch.push({ given, resolve })
      if (batch.length === AT_ONCE) send(batch)
    })
}

/** As the other kinds: `add` admits command n, `onStart` hears that it reached its client, `onEnd` that its end is recorded. */
export async function limit({ connection, prefix, clientOf, payload }, { onStart, onEnd } = {}) {
  const [admit, claim, acknowledge, end] = [ADMIT, CLAIM, ACKNOWLEDGE, END].map((lua) =>
    createRun(connection, prefix, lua),
  )
  const text = JSON.stringify(payload)
  const print = 'x'.repeat(43)
  /** By their mailboxes: commands that wait there; and those mailboxes that are being emptied. */
  const waiting = new Map()
  const busy = new Set()
  let claims = 0

  /** One command after the other reaches the client, until its mailbox is empty. */
  async function drain(box, user) {
    if (busy.has(box)) return
    busy.add(box)
    while (waiting.get(box) > 0) {
      waiting.set(box, waiting.get(box) - 1)
      const [id, , given] = await claim(box, 'i1', `${++claims}`)
      JSON.parse(given)
      onStart(Number(id.slice(1)))
      await acknowledge(box, id, 'i1')
      await end(box, user, id, crypto.randomUUID())
      onEnd()
    }
    busy.delete(box)
  }

  return {
    async add(n) {
      const { user_id, client_id } = clientOf(n)
      const box = `${user_id}:${client_id}`
      await admit(box, user_id, `c${n}`, 'work', user_id, '1000000', '600000', '3', print, text)
      waiting.set(box, (waiting.get(box) ?? 0) + 1)
      if (onEnd) drain(box, user_id)
    },
    close: () => connection.flushall(),
  }
}
