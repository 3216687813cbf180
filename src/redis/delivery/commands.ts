/** Reads the lists of commands of a deployment, shard by shard, in the order of their admission. */
import type { CommandFilter, DeliveryCommand } from '../../contract/delivery.js'
import { CommandState, TRACKED_STATES } from '../../contract/delivery.js'
import { toDeliveryCommand } from '../../contract/delivery-rules.js'
import type { InspectionContext, Page, PageQuery } from '../../contract/page.js'
import { listOf, type StoreReply } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { mergePage, type Run, type Stretch, shardRange, walkPage } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow } from '../table/rows.js'
import { type Scores, scoresAfter } from '../table/spans.js'
import { ATTACHED_LUA, RECORD_LUA, RECORD_TEXT_BYTES, readDeliveryStatus, withFields } from './format.js'

/** Records that are looked at in one go: a few milliseconds of the store. */
const RECORDS_MAX = 1_000
/** Bytes of records in one answer, beyond which it ends with the record at hand. */
const ANSWER_BYTES = 8_388_608
/** Entries that are read of a list at a time. */
const BATCH = 64

const names = (list: readonly string[]) => list.map((name) => `'${name}'`).join(', ')

// One list or several merged, whichever are the shortest that hold all that is asked for: a list is in the same order as
// any other, so the next page may go on in another one. An entry whose record was admitted under another number, or is
// there no more, is passed over.
const COMMANDS = defineReadScript(
  {
    args: [
      'from',
      'newest',
      'at',
      'max_records',
      'wanted',
      'max_bytes',
      'state',
      'user',
      'client',
      'command',
      'scope',
      'action',
      'overdue',
    ],
    answer: ([cut, last, examined, found]) => ({
      isTruncated: cut === 1,
      last: last === '' ? null : Number(last),
      examined: Number(examined),
      found: listOf(found).map((one) => {
        const [sequence, ref, record = null, attached] = listOf(one)
        return { sequence: Number(sequence), ref: String(ref), record, isAttached: attached === 1 }
      }),
    }),
  },
  withFields(`local after_now = '(' .. at
${RECORD_LUA}${ATTACHED_LUA}
local D, now, most, bytes = 'delivery', tonumber(at), tonumber(max_records), tonumber(max_bytes)
local lists, least
local function offer(keys)
  local size = 0
  for _, key in ipairs(keys) do size = size + (read('ZCARD', key) or 0) end
  if not least or size < least then lists, least = keys, size end
end
local states = state ~= '' and { state } or overdue == 'true' and { ${names(TRACKED_STATES)} } or { ${names(CommandState.options)} }
for i, name in ipairs(states) do states[i] = K(D, 'state', name) end
offer(states)
if user ~= '' then offer({ K(D, 'of-id', user) }) end
if scope ~= '' then offer({ K(D, 'of-id', scope) }) end

-- What stands in the place of a record, by its fields, and whose it is.
local function record(ref)
  local user_id, client_id, id = string.match(ref, '^([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)$')
  local key = id and K(D, 'command', user_id, client_id, id)
  local found = key and read('GETRANGE', key, 0, ${RECORD_TEXT_BYTES})
  local c = fields_of(found)
  if not c and found and found ~= '' then note(key) end
  return found, c or {}, user_id, client_id, id
end

local heads, examined = {}, 0
for i, key in ipairs(lists) do heads[i] = { key = key, from = from, found = {}, at = 1, more = true } end
-- Whether a number comes before another one in the order of the page, and whether it is beyond where the page begins.
local function is_before(a, b) if newest == '1' then return a > b end return a < b end
local bound = tonumber((string.match(from, '^%(?([%d.e+]+)$')))
local function is_beyond(seq)
  if not bound then return newest == '1' or not string.find(from, 'inf', 1, true) end
  return is_before(bound, seq) or seq == bound and string.sub(from, 1, 1) ~= '('
end
if overdue == 'true' then
  local key = K(D, 'deadlines')
  local late = read('ZCOUNT', key, '-inf', at) or 0
  if late <= least and late <= most then
    -- So few that they can be put into the order of the lists.
    local found, sorted = {}, {}
    for _, ref in ipairs(read('ZRANGE', key, '-inf', at, 'BYSCORE') or {}) do
      local _, c = record(ref)
      local seq = tonumber(c.seq)
      if seq and is_beyond(seq) then found[#found + 1] = { ref, seq } else examined = examined + 1 end
    end
    table.sort(found, function(a, b) return is_before(a[2], b[2]) end)
    for _, one in ipairs(found) do sorted[#sorted + 1], sorted[#sorted + 2] = one[1], string.format('%.17g', one[2]) end
    heads = { { found = sorted, at = 1 } }
  end
end

-- The entry at the head of all lists together.
local function first()
  local best
  for _, head in ipairs(heads) do
    if head.more and head.at > #head.found then
      if newest == '1' then
        head.found = read('ZRANGE', head.key, head.from, '(-inf', 'BYSCORE', 'REV', 'LIMIT', 0, ${BATCH}, 'WITHSCORES') or {}
      else
        head.found = read('ZRANGE', head.key, head.from, '(+inf', 'BYSCORE', 'LIMIT', 0, ${BATCH}, 'WITHSCORES') or {}
      end
      head.at, head.more = 1, #head.found == ${2 * BATCH}
      if head.more then head.from = '(' .. head.found[#head.found] end
    end
    local score = tonumber(head.found[head.at + 1])
    if score and (not best or is_before(score, tonumber(best.found[best.at + 1]))) then best = head end
  end
  return best
end

local function isWanted(c, seq, user_id, client_id, id)
  if tonumber(c.seq) ~= seq then return false end
  local over = c.terminal ~= '' and c.terminal
  if over and (tonumber(c.until_ms) or 0) <= now then return false end
  if user ~= '' and user_id ~= user or client ~= '' and client_id ~= client or command ~= '' and id ~= command then return false end
  if scope ~= '' and c.scope_id ~= scope or action ~= '' and c.action ~= action then return false end
  local open = c.acknowledged ~= '' and 'acknowledged' or (tonumber(c.attempts) or 0) > 0 and 'attempted' or 'waiting'
  if state ~= '' and (over or open) ~= state then return false end
  local late = not over and (tonumber(c.deadline_at) or 0) <= now
  return overdue == '' or tostring(late) == overdue
end

local found, last, cut = {}, '', 0
for head in first do
  if examined == most or #found == tonumber(wanted) or bytes <= 0 then cut = 1 break end
  local ref, seq = head.found[head.at], tonumber(head.found[head.at + 1])
  head.at, examined, last = head.at + 2, examined + 1, head.found[head.at + 1]
  local text, c, user_id, client_id, id = record(ref)
  if isWanted(c, seq, user_id, client_id, id) then
    -- The others don't depend on their mailbox.
    found[#found + 1] = { last, ref, text, c.phase == 'ready' and is_attached(user_id, client_id) and 1 or 0 }
    bytes = bytes - #text
  end
end
return { foreign, cut, last, examined, found }`),
)

/** What a stretch of one shard holds under `filter`. */
async function readStretch(
  store: Store,
  filter: CommandFilter,
  shard: number,
  { from, order }: Scores,
  { wanted, budget }: Stretch,
  ctx: InspectionContext,
): Promise<Run<DeliveryCommand>> {
  const now = await store.time(ctx)
  const bounds = { max_records: Math.min(budget, RECORDS_MAX), wanted, max_bytes: ANSWER_BYTES }
  const { state = '', user_id: user = '', client_id: client = '', command_id: command = '' } = filter
  const { scope_id: scope = '', action = '', overdue = '' } = filter
  const given = {
    from,
    newest: order === 'newest' ? '1' : '',
    at: now,
    ...bounds,
    state,
    user,
    client,
    command,
    scope,
    action,
    overdue: String(overdue),
  }
  const { found, last, examined, isTruncated } = await readShard(store, COMMANDS, shard, given, ctx)
  const entries: Run<DeliveryCommand>['entries'] = found.map(({ sequence, ref, record, isAttached }) => {
    const listed = toRecord(store, shard, ref, record, isAttached, now, ctx)
    return { position: { shard, sequence }, record: listed, isBad: listed === undefined }
  })
  // What was passed over behind the last of them is not looked at again.
  if (last !== null && last !== found.at(-1)?.sequence)
    entries.push({ position: { shard, sequence: last }, record: undefined, isBad: false })
  return { shard, entries, examined, isTruncated }
}

function toRecord(
  store: Store,
  shard: number,
  ref: string,
  record: StoreReply,
  isAttached: boolean,
  now: number,
  ctx: InspectionContext,
) {
  const [user_id = '', client_id = '', command_id = ''] = ref.split('\n')
  const read = readDeliveryStatus(record, { user_id, client_id, command_id })
  if (read) return toDeliveryCommand(read.status, now, read.action, { step: read.step, isAttached })
  const key = store.key(shard, 'delivery', 'command', user_id, client_id, command_id)
  const fault = { id: command_id, fields: [{ path: '', expected: 'the record of that command' }] }
  store.onError(new BadRow(`${key} does not hold the record of that command`, fault), ctx)
  return undefined
}

/** A page of the commands under `filter`. @throws Refusal as `walkPage`, or as `mergePage` where several shards have one order. */
export async function listCommands(
  store: Store,
  filter: CommandFilter,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<DeliveryCommand>> {
  const reach = shardRange(filter.user_id, await store.shards(ctx))
  const { order } = page
  const read = (of: number, scores: Scores, stretch: Stretch) => readStretch(store, filter, of, scores, stretch, ctx)
  // Without an order shard after shard, which reads no more of the others than a page needs.
  return order !== undefined && reach[0] < reach[1]
    ? mergePage(reach, page, ctx, read)
    : walkPage(reach, page, ctx, ({ shard, sequence }, stretch) => read(shard, scoresAfter(sequence, order), stretch))
}
