/** Reads what waits in the shards of a dispatcher. What is past its deadline is over, whether or not a node is left to say so. */
import {
  CommandState,
  type DeliverySummary,
  LATENCY_SAMPLE,
  NO_REASON,
  REASONS_MAX,
  TerminalState,
  TRACKED_STATES,
  WaitsFor,
} from '../../contract/delivery.js'
import { AGE_SAMPLE, latencyOf, reportedTimes, type StepTimes } from '../../contract/delivery-rules.js'
import { toTimestamp } from '../../contract/ids.js'
import type { InspectionContext } from '../../contract/page.js'
import { count, listOf, strings } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow } from '../table/rows.js'
import { timestampsOf } from '../table/scores.js'
import { allShards } from '../table/shards.js'
import { Millis } from '../table/timestamp.js'
import { ATTACHED_LUA, RECORD_LUA, RECORD_TEXT_BYTES, withFields } from './format.js'
import { type LegacyStream, readLegacy } from './legacy.js'

const NAME = 'delivery'
const names = (list: readonly string[]) => list.map((name) => `'${name}'`).join(', ')
/** Commands of a shard that are looked at one by one, to tell what has expired from what has not: a few milliseconds. */
const RECORDS_MAX = 1_000
/** Mailboxes of attached clients with something ready that one read of a shard counts: some 10 ms of it. */
const MAILBOXES_MAX = 5_000

// Of what is not acknowledged, and so waiting or attempted, `due` does not wait for a later attempt. `attached` are those of
// them whose client waits at a living node, or -1 where more mailboxes have something ready than are counted. What has
// expired counts for nothing: it is taken off where it is little, as it is while a node is alive; else the others are
// counted, where they are few. `sample` has the oldest of these, with their admissions.
//
// `states` are the lengths of the lists by state, without `over`, what is retained no longer; empty where that is too much to
// look at. `waits` are those that have not ended by what they wait for, in the order of WAITS, empty where it is too much.
/** What is counted of what commands wait for, in this order. */
const WAITS = [
  'client_not_attached',
  'turn',
  'delivery',
  'acknowledgement',
  'retry_pause',
  'outcome',
  'unknown',
] as const

const SHARD = defineReadScript(
  {
    args: ['at', 'max_records', 'max_mailboxes', 'max_sample'],
    answer: ([tracked, due, attached, deadline, sample, expired, states, reasons, waits, oldest, ended]) => ({
      tracked: count(tracked ?? null),
      due: count(due ?? null),
      attached: attached === -1 ? null : count(attached ?? null),
      deadline: deadline ?? null,
      sample: listOf(sample).map((one) => listOf(one).map(String)),
      expired: count(expired ?? null),
      states: listOf(states).map(Number),
      reasons: listOf(reasons).map(String),
      waits: listOf(waits).map(Number),
      oldest: strings(oldest ?? null).map(Number),
      ended: strings(ended ?? null),
    }),
  },
  withFields(`local after_now = '(' .. at
${RECORD_LUA}${ATTACHED_LUA}
local function key(...) return K('${NAME}', ...) end
local now, after, most, records = tonumber(at), after_now, tonumber(max_sample), tonumber(max_records)
local states = { key('state', 'waiting'), key('state', 'attempted') }

local function record(ref)
  local user, client, id = string.match(ref, '^([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)$')
  return id and fields_of(read('GETRANGE', key('command', user, client, id), 0, ${RECORD_TEXT_BYTES}))
end

local function attached_of(ref) return is_attached(string.match(ref, '^([^\\n]*)\\n([^\\n]*)')) end

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
      if attached_of(ref) then attached = attached + 1 end
    end
  end
  return due, attached
end

-- The same of attached clients alone, whatever has expired: what lies in their mailboxes, and what the next pass takes on.
local function attached_due()
  local attached, left, ready = 0, tonumber(max_mailboxes), 0
  for _, node in ipairs(living) do
    local places = read('ZRANGE', key('todo', node), 0, left) or {}
    left = left - #places
    if left < 0 then return nil end
    for _, place in ipairs(places) do
      local user, client = string.match(place, '^([^\\n]*)\\n([^\\n]*)$')
      if user then ready = ready + (read('ZCARD', key('box', user, client)) or 0) end
    end
  end
  attached = ready
  for _, ref in ipairs(#living > 0 and read('ZRANGE', key('wakes'), '-inf', at, 'BYSCORE', 'LIMIT', 0, records) or {}) do
    if attached_of(ref) then attached = attached + 1 end
  end
  return attached, ready
end

local tracked = read('ZCOUNT', key('deadlines'), after, '+inf') or 0
local expired = read('ZCOUNT', key('deadlines'), '-inf', at) or 0
local later = read('ZCOUNT', key('wakes'), after, '+inf') or 0
local due, attached
local allAttached, readyAttached = attached_due()
if expired > records and tracked <= records and later <= records then
  due, attached = due_of(after, '+inf')
else
  local late, lateAttached = due_of('-inf', at)
  due, attached = -later - late, allAttached
  attached = attached and math.max(0, attached - lateAttached)
  for _, state in ipairs(states) do due = due + (read('ZCARD', state) or 0) end
end

-- By state, and by reason: what is retained no longer is taken off.
local counted, counts, ended_by = {}, {}, {}
for i, state in ipairs({ ${names(CommandState.options)} }) do counts[i], counted[state] = read('ZCARD', key('state', state)) or 0, i end
local over = 0
for _, kind in ipairs({ 'ended', 'rejected' }) do over = over + (read('ZCOUNT', key(kind), '-inf', at) or 0) end
ended_by = read('ZRANGE', key('reasons'), 0, ${2 * REASONS_MAX}, 'WITHSCORES') or {}
if over > records then counts = {} end
for _, kind in ipairs(over > 0 and over <= records and { 'ended', 'rejected' } or {}) do
  for _, ref in ipairs(read('ZRANGE', key(kind), '-inf', at, 'BYSCORE') or {}) do
    local c = record(ref)
    local i = c and counted[c.terminal]
    if i then
      counts[i] = counts[i] - 1
      ended_by[#ended_by + 1], ended_by[#ended_by + 2] = string.match(c.over, '\\n(.+)$') or '${NO_REASON}', '-1'
    end
  end
end

-- By what they wait for: those that lie in mailboxes, and those whose attempt or pause is under way. What has expired is
-- counted apart.
local waits = {}
local function wait_of(c)
  if c.phase == 'acknowledged' then return 6 end
  if c.phase == 'backoff' then return 5 end
  return c.last_outcome == '' and 3 or 4
end
if expired <= records then
  waits = { 0, readyAttached or 0, 0, 0, 0, read('ZCARD', key('state', 'acknowledged')) or 0, 0 }
  local awake, ready = read('ZCARD', key('wakes')) or 0, 0
  for _, state in ipairs(states) do ready = ready + (read('ZCARD', state) or 0) end
  ready = ready - awake
  if awake > records then waits[7] = awake end
  for _, ref in ipairs(awake <= records and read('ZRANGE', key('wakes'), 0, -1) or {}) do
    local c = record(ref)
    if c and (tonumber(c.deadline_at) or 0) > now then waits[wait_of(c)] = waits[wait_of(c)] + 1 end
  end
  for _, ref in ipairs(expired > 0 and read('ZRANGE', key('deadlines'), '-inf', at, 'BYSCORE') or {}) do
    local c = record(ref)
    if c and c.phase == 'ready' then
      ready = ready - 1
      if attached_of(ref) then waits[2] = waits[2] - 1 end
    elseif c and c.phase == 'acknowledged' then waits[6] = waits[6] - 1
    elseif c and awake > records then waits[7] = waits[7] - 1 end
  end
  if readyAttached then waits[1] = ready - waits[2] else waits[7], waits[2] = waits[7] + ready, 0 end
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
-- The first that is within its deadline, acknowledged ones too.
local open = sample[1] and { sample[1][2] } or {}
for _, ref in ipairs(read('ZRANGE', key('state', 'acknowledged'), 0, most - 1) or {}) do
  local c = record(ref)
  if c and (tonumber(c.deadline_at) or 0) > now then
    open[#open + 1] = c.admitted_at
    break
  end
end
-- Of those that ended last: when they were admitted, handed over, acknowledged, and when they ended.
local times = {}
for _, ref in ipairs(read('ZRANGE', key('ended'), 0, ${LATENCY_SAMPLE - 1}, 'REV') or {}) do
  local c = record(ref)
  if c and c.terminal ~= '' and (tonumber(c.until_ms) or 0) > now then
    local acknowledged = string.match(c.acknowledged, '^[^\\n]*\\n([^\\n]*)') or ''
    times[#times + 1] = c.admitted_at .. ' ' .. c.handed_over_at .. ' ' .. acknowledged .. ' ' .. (string.match(c.over, '^%d+') or '')
  end
end
local deadline = read('ZRANGE', key('deadlines'), after, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
return { foreign, tracked, due, attached or -1, deadline or {}, sample, expired, counts, ended_by, waits, open, times }`),
)

const summed = (counts: readonly number[]) => counts.reduce((sum, n) => sum + n, 0)

/** What commands of a shard that have not ended wait for; `null` where that doesn't add up: somebody else wrote there. */
function waitsOf(tracked: number, expired: number, waits: readonly number[]): DeliverySummary['waits_for'] {
  const counts = Object.fromEntries(WaitsFor.options.map((name) => [name, 0]))
  // Too much has expired to be told apart.
  if (waits.length === 0) return { ...counts, unknown: tracked, expiry: expired } as DeliverySummary['waits_for']
  if (summed(waits) !== tracked || waits.some((n) => n < 0)) return null
  for (const [i, name] of WAITS.entries()) counts[name] = waits[i] as number
  return { ...counts, expiry: expired } as DeliverySummary['waits_for']
}

/** The retained commands of a shard; `null` where they are not counted, or don't add up with what is tracked. */
function statesOf(open: number, states: readonly number[]): DeliverySummary['by_state'] {
  if (states.length === 0 || states.some((n) => n < 0)) return null
  const counts = Object.fromEntries(CommandState.options.map((state, i) => [state, states[i]]))
  const isWhole = summed(TRACKED_STATES.map((state) => counts[state] as number)) === open
  return isWhole ? (counts as DeliverySummary['by_state']) : null
}

/** Ends by reason, from names and how many more of each, alternately; `null` where they are not as many as have ended. */
function reasonsOf(states: DeliverySummary['by_state'], pairs: readonly string[]): DeliverySummary['by_reason'] {
  if (states === null) return null
  const counts = new Map<string, number>()
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const reason = pairs[i] as string
    counts.set(reason, (counts.get(reason) ?? 0) + Number(pairs[i + 1]))
  }
  const others = [...counts].filter(([, n]) => n < 0)
  // What was counted as another one is taken off there.
  for (const [reason, n] of others) {
    counts.delete(reason)
    counts.set('other', (counts.get('other') ?? 0) + n)
  }
  const known = [...counts].filter(([, n]) => n !== 0)
  const ended = summed(TerminalState.options.map((state) => states[state]))
  const isWhole = known.every(([, n]) => n > 0) && summed(known.map(([, n]) => n)) === ended
  return isWhole ? Object.fromEntries(known) : null
}

/** `parts` added up by their names; `null` where one of them is not known. */
function total<Counts extends Readonly<Record<string, number>>>(parts: readonly (Counts | null)[]): Counts | null {
  const sums: Record<string, number> = {}
  for (const part of parts) {
    if (part === null) return null
    for (const [name, n] of Object.entries(part)) sums[name] = (sums[name] ?? 0) + n
  }
  return sums as Counts
}

/** The times of a command that has ended, as the script tells them. */
function timesOf(text: string): { endedAt: number; times: StepTimes } {
  const texts = text.split(' ')
  return { endedAt: Number(texts[3] ?? 0), times: reportedTimes(texts) }
}

async function partOf(store: Store, shard: number, now: number, ctx: InspectionContext) {
  const given = { at: now, max_records: RECORDS_MAX, max_mailboxes: MAILBOXES_MAX, max_sample: AGE_SAMPLE }
  const read = await readShard(store, SHARD, shard, given, ctx)
  const { tracked, attached, expired } = read
  const due = Math.min(tracked, read.due)
  const queuedSince = read.sample.flatMap(([ref = '', text]) => {
    const since = Millis.safeParse(Number(text))
    if (since.success) return [since.data]
    const key = store.key(shard, NAME, 'command', ...ref.split('\n'))
    store.onError(new BadRow(`${key} has a wrong admitted_at`), ctx)
    return []
  })
  const byState = statesOf(tracked + expired, read.states)
  return {
    tracked,
    byState,
    byReason: reasonsOf(byState, read.reasons),
    waits: waitsOf(tracked, expired, read.waits),
    due: attached === null ? null : Math.min(due, attached),
    waiting: attached === null ? null : Math.max(0, due - attached),
    deadlines: timestampsOf(store, store.key(shard, NAME, 'deadlines'), read.deadline, ctx),
    queuedSince: queuedSince.slice(0, tracked),
    openSince: read.oldest.filter((at) => Millis.safeParse(at).success),
    ended: read.ended.map(timesOf),
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
  const sum = (of: (part: Part) => number) => summed(parts.map(of))
  const isCounted = parts.every(({ due }) => due !== null)
  const deadlines = parts.flatMap((part) => part.deadlines)
  const sample = parts
    .flatMap((part) => part.queuedSince)
    .sort((a, b) => a - b)
    .slice(0, AGE_SAMPLE)
  const [oldest] = sample
  const openSince = parts.flatMap((part) => part.openSince)
  const ended = parts.flatMap((part) => part.ended).sort((a, b) => b.endedAt - a.endedAt)
  return {
    deployment_id: store.deploymentId,
    mode: 'shared_store',
    tracked_commands: sum((part) => part.tracked),
    by_state: total(parts.map(({ byState }) => byState)),
    by_reason: total(parts.map(({ byReason }) => byReason)),
    waits_for: total(parts.map(({ waits }) => waits)),
    due_commands: isCounted ? sum(({ due }) => due ?? 0) : null,
    waiting_for_client: isCounted ? sum(({ waiting }) => waiting ?? 0) : null,
    oldest_deadline_at: deadlines.length === 0 ? null : toTimestamp(Math.min(...deadlines)),
    oldest_queued_age_ms: oldest === undefined ? null : Math.max(0, Math.round(now - oldest)),
    sample_size: sample.length,
    oldest_open_age_ms: openSince.length === 0 ? null : Math.max(0, Math.round(now - Math.min(...openSince))),
    latency: latencyOf(ended.slice(0, LATENCY_SAMPLE).map(({ times }) => times)),
    ...legacyFields,
    observed_at: toTimestamp(now),
  }
}
