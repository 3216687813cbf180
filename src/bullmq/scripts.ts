/** What is asked of a queue's store: scripts that only read, each of one instant, and never a payload unless one is asked for. */

import { type Arguments, argvOf, localsOf } from '../redis/store/arguments.js'

/** A script, which is given the beginning of the queue's keys as its key, and has its arguments by their names. */
export interface Script<Given> {
  /** What it is called among the commands of the client. */
  readonly name: string
  readonly lua: string
  argv(given: Given): string[]
}

function defineScript<Names extends string, Rest extends string = never>(
  name: string,
  args: readonly Names[],
  rest: Rest | undefined,
  lua: string,
): Script<Arguments<Names, Rest>> {
  return { name, lua: `${localsOf(args, rest)}${READ_JOB}${lua}`, argv: (given) => argvOf(args, rest, given) }
}

/**
 * The indexes that hold the jobs of a queue, in the order in which a job goes through them: one that goes on to a later index
 * while a list is walked is met there.
 */
export const INDEXES = [
  'waiting-children',
  'delayed',
  'prioritized',
  'paused',
  'wait',
  'active',
  'completed',
  'failed',
] as const
export type Index = (typeof INDEXES)[number]

/** What a row of a job is made of, in its order. All but places are text, or `null` where the job has not got it. */
export const ROW = [
  'index',
  /** How many of the index stood before it. */
  'place',
  /** How many of those that the index held when the walk came to it are still to be shown; below 0 for none. */
  'left',
  /** By which its index is sorted; a list is by nothing. */
  'score',
  'id',
  'timestamp',
  'ats',
  'atm',
  'stc',
  'processedOn',
  'finishedOn',
  'pb',
  /** How many attempts it may take. */
  'attempts',
  /** `1` where it has failed because it stalled too often, `0` where it failed otherwise, in the end or before. */
  'stalled',
  'name',
  'data',
] as const

/**
 * `read_job` of one id. The options, the reason and the payload of a job may be long: of the first two only what is needed leaves
 * the store, of the last only what is at most `payload_bytes` long.
 */
const READ_JOB = `
local prefix = KEYS[1]

local function is_list(index)
  return index == 'wait' or index == 'paused' or index == 'active'
end

-- Before 5.0 a waiting list could end in a marker, which is no job.
local function length_of(index)
  local key = prefix .. index
  if not is_list(index) then return redis.call('ZCARD', key) end
  local length = redis.call('LLEN', key)
  if index ~= 'active' and length > 0 then
    local last = redis.call('LINDEX', key, -1)
    if last and string.sub(last, 1, 2) == '0:' then return length - 1 end
  end
  return length
end

local function attempts_in(options)
  local ok, read = pcall(cjson.decode, options or '')
  local attempts = ok and type(read) == 'table' and tonumber(read.attempts)
  return attempts and string.format('%d', attempts) or false
end

local function read_job(index, id, payload_bytes)
  local key = prefix .. id
  local values = redis.pcall('HMGET', key, 'timestamp', 'ats', 'atm', 'stc', 'processedOn', 'finishedOn', 'pb', 'name')
  if values.err then return {index, 0, 0, false, id} end
  local attempts, stalled, data = false, false, false
  local reason = redis.call('HGET', key, 'failedReason')
  if reason then stalled = string.find(reason, 'job stalled more than allowable limit', 1, true) == 1 and '1' or '0' end
  if index == 'failed' then attempts = attempts_in(redis.call('HGET', key, 'opts')) end
  if payload_bytes > 0 and redis.call('HSTRLEN', key, 'data') <= payload_bytes then
    data = redis.call('HGET', key, 'data')
  end
  return {index, 0, 0, false, id, values[1], values[2], values[3], values[4], values[5], values[6], values[7],
    attempts, stalled, values[8], data}, data and #data or 0
end
`

/** Jobs of a list that are looked through for the one that was shown last. */
const LOOKED_THROUGH = 100_000

/**
 * `wanted` jobs of `indexes`, the oldest first within each; `all_bytes` is what their payloads may come to. Of the first index
 * those behind `last`, which stood before `place` with this `score`; `left` of those that it held at first are still to be
 * shown, or `''` where the walk begins it. Answers the index to go on with, or `''` at the end, and the rows.
 */
export const READ_JOBS = defineScript(
  'relayscopeReadJobs',
  ['wanted', 'payload_bytes', 'all_bytes', 'place', 'left', 'score', 'last'],
  'indexes',
  `
wanted, payload_bytes, all_bytes = tonumber(wanted), tonumber(payload_bytes), tonumber(all_bytes)
place, left = tonumber(place), tonumber(left)
local bytes = 0
local rows = {}

-- Jobs leave an index while it is walked, most often the oldest: what comes next is told by the job that was shown last.
local function behind_last(index, length)
  local key = prefix .. index
  if not is_list(index) then
    if redis.call('ZSCORE', key, last) == score then return redis.call('ZRANK', key, last) + 1 end
    return redis.call('ZCOUNT', key, '-inf', '(' .. score)
  end
  if place <= length and redis.call('LINDEX', key, length - place) == last then return place end
  local at = redis.call('LPOS', key, last, 'RANK', -1, 'MAXLEN', math.min(place + 1, ${LOOKED_THROUGH}))
  if at then return length - at end
  if place >= ${LOOKED_THROUGH} then return place end
  -- It has gone, and in a list all that are older had gone before it. One that moves faster than it is walked has an end, too.
  return left > 0 and 0 or length
end

local function ids_from(index, length, first, count)
  local key = prefix .. index
  if not is_list(index) then
    local ids, scores = {}, {}
    for i, told in ipairs(redis.call('ZRANGE', key, first, first + count - 1, 'WITHSCORES')) do
      if i % 2 == 1 then ids[#ids + 1] = told else scores[#scores + 1] = told end
    end
    return ids, scores
  end
  -- Jobs are taken from the end of a list: the oldest is the last.
  local last = length - 1 - first
  local ids = redis.call('LRANGE', key, math.max(0, last - count + 1), last)
  local oldest_first = {}
  for i = #ids, 1, -1 do oldest_first[#oldest_first + 1] = ids[i] end
  return oldest_first, {}
end

for _, index in ipairs(indexes) do
  local length = length_of(index)
  if last ~= '' then place = behind_last(index, length) end
  left = left or length
  if place < length then
    if #rows >= wanted or (#rows > 0 and bytes >= all_bytes) then return {index, rows} end
    local ids, scores = ids_from(index, length, place, wanted - #rows)
    for i, id in ipairs(ids) do
      if #rows > 0 and bytes >= all_bytes then return {index, rows} end
      local row, size = read_job(index, id, payload_bytes)
      left = left - 1
      row[2], row[3], row[4] = place, left, scores[i] or false
      rows[#rows + 1] = row
      bytes = bytes + (size or 0)
      place = place + 1
    end
  end
  if place < length then return {index, rows} end
  place, left, last = 0, nil, ''
end
return {'', rows}
`,
)

/** Answers the row of the job `id`; of what is no job one that says nothing of it. */
export const READ_JOB_BY_ID = defineScript<'id' | 'payload_bytes'>(
  'relayscopeReadJob',
  ['id', 'payload_bytes'],
  undefined,
  `
local index = 'wait'
if redis.call('ZSCORE', prefix .. 'completed', id) then index = 'completed'
elseif redis.call('ZSCORE', prefix .. 'failed', id) then index = 'failed'
elseif redis.call('LPOS', prefix .. 'active', id) then index = 'active' end
local row = read_job(index, id, tonumber(payload_bytes))
return row
`,
)

/** What is counted of a queue, in the order of the answer. `null` where the queue has not got it. */
export const COUNTS = ['paused', 'concurrency', 'max', 'duration', 'completed_total', 'failed_total'] as const

/**
 * Answers the lengths of all indexes, how many of the delayed have a score below `due_below`, `COUNTS`, and the instants at which
 * the oldest `sample` jobs of each of `indexes` were added.
 */
export const READ_COUNTS = defineScript(
  'relayscopeReadCounts',
  ['due_below', 'sample'],
  'indexes',
  `
sample = tonumber(sample)
local lengths = {}
for _, index in ipairs({${INDEXES.map((index) => `'${index}'`).join(', ')}}) do lengths[#lengths + 1] = length_of(index) end
local meta = redis.call('HMGET', prefix .. 'meta', 'paused', 'concurrency', 'max', 'duration')
local instants = {}
for i = 1, sample > 0 and #indexes or 0 do
  local index, ids = indexes[i], {}
  if is_list(index) then ids = redis.call('LRANGE', prefix .. index, -sample, -1)
  else ids = redis.call('ZRANGE', prefix .. index, 0, sample - 1) end
  for _, id in ipairs(ids) do
    local instant = redis.pcall('HGET', prefix .. id, 'timestamp')
    if type(instant) == 'string' then instants[#instants + 1] = instant end
  end
end
return {
  lengths,
  redis.call('ZCOUNT', prefix .. 'delayed', '-inf', '(' .. due_below),
  {meta[1], meta[2], meta[3], meta[4],
    redis.call('HGET', prefix .. 'metrics:completed', 'count'), redis.call('HGET', prefix .. 'metrics:failed', 'count')},
  instants,
}
`,
)
