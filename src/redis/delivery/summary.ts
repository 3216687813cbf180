/** Reads what waits in the shards of a dispatcher. What is past its deadline is over, whether or not a node is left to say so. */
import type { DeliverySummary } from '../../contract/delivery.js'
import { TRACKED_STATES } from '../../contract/delivery.js'
import { AGE_SAMPLE } from '../../contract/delivery-rules.js'
import { toTimestamp } from '../../contract/ids.js'
import type { InspectionContext } from '../../contract/page.js'
import { count, listOf } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow } from '../table/rows.js'
import { timestampsOf } from '../table/scores.js'
import { allShards } from '../table/shards.js'
import { Millis } from '../table/timestamp.js'
import { RECORD_LUA, RECORD_TEXT_BYTES, STATE_LUA, withFields } from './format.js'
import { type LegacyStream, readLegacy } from './legacy.js'

const NAME = 'delivery'
/** Commands of a shard that are looked at one by one, to tell what has expired from what has not: a few milliseconds. */
const RECORDS_MAX = 1_000
/** Mailboxes of attached clients with something ready that one read of a shard counts: some 10 ms of it. */
const MAILBOXES_MAX = 5_000

// Of what is not acknowledged, and so waiting or attempted, `due` does not wait for a later attempt. `attached` are those of
// them whose client waits at a living node, or -1 where more mailboxes have something ready than are counted. What has
// expired counts for nothing: it is taken off where it is little, as it is while a node is alive; else the others are
// counted, where they are few. `sample` has the oldest of these, with their admissions.
const SHARD = defineReadScript(
  {
    args: ['at', 'max_records', 'max_mailboxes', 'max_sample'],
    answer: ([tracked = null, byState = null, due = null, attached = null, deadline = null, sample]) => ({
      tracked: count(tracked),
      byState: listOf(byState).map((one) => count(one as never)),
      due: count(due),
      attached: attached === -1 ? null : count(attached),
      deadline,
      sample: listOf(sample).map((one) => listOf(one).map(String)),
    }),
  },
  withFields(`${RECORD_LUA}${STATE_LUA}
local function key(...) return K('${NAME}', ...) end
local now, after, most, records = tonumber(at), '(' .. at, tonumber(max_sample), tonumber(max_records)
local states = { key('state', 'waiting'), key('state', 'attempted') }

local function record(ref)
  local user, client, id = string.match(ref, '^([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)$')
  return id and fields_of(read('GETRANGE', key('command', user, client, id), 0, ${RECORD_TEXT_BYTES}))
end

-- Nodes whose lease has not run out.
local living, isLiving = read('ZRANGE', key('incarnations'), after, '+inf', 'BYSCORE') or {}, {}
for _, node in ipairs(living) do isLiving[node] = true end

local function is_attached(ref)
  local user, client = string.match(ref, '^([^\\n]*)\\n([^\\n]*)')
  local waiter = user and #living > 0 and read('HMGET', key('waiter', user, client), 'incarnation')
  return waiter and waiter[1] and isLiving[waiter[1]] or false
end

-- How many commands are due, and of how many of them the client is attached.
local function due_of(from, to)
  local due, attached, isLater = 0, 0, {}
  local refs = read('ZRANGE', key('deadlines'), from, to, 'BYSCORE', 'LIMIT', 0, records) or {}
  if #refs == 0 then return 0, 0 end
  for _, ref in ipairs(read('ZRANGE', key('wakes'), after, '+inf', 'BYSCORE', 'LIMIT', 0, records) or {}) do
    isLater[ref] = true
  end
  for _, ref in ipairs(refs) do
    local c = record(ref)
    if c and c.acknowledged == '' and c.terminal == '' and not isLater[ref] then
      due = due + 1
      if is_attached(ref) then attached = attached + 1 end
    end
  end
  return due, attached
end

-- The same of attached clients alone, whatever has expired: what lies in their mailboxes, and what the next pass takes on.
local function attached_due()
  local attached, left = 0, tonumber(max_mailboxes)
  for _, node in ipairs(living) do
    local places = read('ZRANGE', key('todo', node), 0, left) or {}
    left = left - #places
    if left < 0 then return nil end
    for _, place in ipairs(places) do
      local user, client = string.match(place, '^([^\\n]*)\\n([^\\n]*)$')
      if user then attached = attached + (read('ZCARD', key('box', user, client)) or 0) end
    end
  end
  for _, ref in ipairs(#living > 0 and read('ZRANGE', key('wakes'), '-inf', at, 'BYSCORE', 'LIMIT', 0, records) or {}) do
    if is_attached(ref) then attached = attached + 1 end
  end
  return attached
end

local tracked = read('ZCOUNT', key('deadlines'), after, '+inf') or 0
local expired = read('ZCOUNT', key('deadlines'), '-inf', at) or 0
local later = read('ZCOUNT', key('wakes'), after, '+inf') or 0
local due, attached
if expired > records and tracked <= records and later <= records then
  due, attached = due_of(after, '+inf')
else
  local late, lateAttached = due_of('-inf', at)
  due, attached = -later - late, attached_due()
  attached = attached and math.max(0, attached - lateAttached)
  for _, state in ipairs(states) do due = due + (read('ZCARD', state) or 0) end
end

-- Empty where too much has expired to be taken off one by one.
local by_state, at_of = {}, {}
for i, state in ipairs(expired <= records and { ${TRACKED_STATES.map((state) => `'${state}'`).join(', ')} } or {}) do
  by_state[i], at_of[state] = read('ZCARD', key('state', state)) or 0, i
end
for _, ref in ipairs(expired > 0 and #by_state > 0 and read('ZRANGE', key('deadlines'), '-inf', at, 'BYSCORE') or {}) do
  local c = record(ref)
  local i = c and at_of[state_of(c)]
  if i then by_state[i] = by_state[i] - 1 end
end

local oldest, sample = {}, {}
for _, state in ipairs(states) do
  local found = read('ZRANGE', state, 0, most - 1, 'WITHSCORES') or {}
  for i = 1, #found, 2 do oldest[#oldest + 1] = { found[i], tonumber(found[i + 1]) } end
end
table.sort(oldest, function(a, b) return a[2] < b[2] end)
for _, one in ipairs(oldest) do
  local c = #sample < most and record(one[1])
  if c and (tonumber(c.deadline_at) or 0) > now then sample[#sample + 1] = { one[1], c.admitted_at } end
end
local deadline = read('ZRANGE', key('deadlines'), after, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
return { foreign, tracked, by_state, due, attached or -1, deadline or {}, sample }`),
)

async function partOf(store: Store, shard: number, now: number, ctx: InspectionContext) {
  const given = { at: now, max_records: RECORDS_MAX, max_mailboxes: MAILBOXES_MAX, max_sample: AGE_SAMPLE }
  const { tracked, byState, due: allDue, attached, deadline, sample } = await readShard(store, SHARD, shard, given, ctx)
  const due = Math.min(tracked, allDue)
  const queuedSince = sample.flatMap(([ref = '', text]) => {
    const since = Millis.safeParse(Number(text))
    if (since.success) return [since.data]
    const key = store.key(shard, NAME, 'command', ...ref.split('\n'))
    store.onError(new BadRow(`${key} has a wrong admitted_at`), ctx)
    return []
  })
  return {
    tracked,
    // What does not add up was not written by us.
    byState: byState.reduce((sum, n) => sum + n, 0) === tracked ? byState : [],
    due: attached === null ? null : Math.min(due, attached),
    waiting: attached === null ? null : Math.max(0, due - attached),
    deadlines: timestampsOf(store, store.key(shard, NAME, 'deadlines'), deadline, ctx),
    queuedSince: queuedSince.slice(0, tracked),
  }
}

/** The summary over all shards. */
export async function readSummary(
  store: Store,
  legacy: LegacyStream | undefined,
  ctx: InspectionContext,
): Promise<DeliverySummary> {
  const shards = await allShards(store, ctx)
  const [now, legacyFields] = await Promise.all([store.time(ctx), readLegacy(store, legacy, ctx)])
  const parts = await Promise.all(shards.map((shard) => partOf(store, shard, now, ctx)))
  type Part = (typeof parts)[number]
  const sum = (of: (part: Part) => number) => parts.reduce((n, part) => n + of(part), 0)
  const tracked_commands = sum((part) => part.tracked)
  const isCounted = parts.every(({ due }) => due !== null)
  const [waiting = 0, attempted = 0, acknowledged = 0] = TRACKED_STATES.map((_, i) =>
    sum(({ byState }) => byState[i] ?? 0),
  )
  const isByState = waiting + attempted + acknowledged === tracked_commands
  const deadlines = parts.flatMap((part) => part.deadlines)
  const sample = parts
    .flatMap((part) => part.queuedSince)
    .sort((a, b) => a - b)
    .slice(0, AGE_SAMPLE)
  const [oldest] = sample
  return {
    deployment_id: store.deploymentId,
    mode: 'shared_store',
    tracked_commands,
    tracked_by_state: isByState ? { waiting, attempted, acknowledged } : null,
    due_commands: isCounted ? sum(({ due }) => due ?? 0) : null,
    waiting_for_client: isCounted ? sum(({ waiting }) => waiting ?? 0) : null,
    oldest_deadline_at: deadlines.length === 0 ? null : toTimestamp(Math.min(...deadlines)),
    oldest_queued_age_ms: oldest === undefined ? null : Math.max(0, Math.round(now - oldest)),
    sample_size: sample.length,
    ...legacyFields,
    observed_at: toTimestamp(now),
  }
}
