/** How the evidence about one command is stored, for the scripts that write it and whoever reads it. */
import { ATTEMPTS_KEPT, type Attempt, type CommandKey, DeliveryStatus } from '../../contract/delivery.js'
import { type DeliveryStep, shownAttempts } from '../../contract/delivery-rules.js'
import { commandKey, toTimestamp } from '../../contract/ids.js'
import type { StoreReply } from '../store/reply.js'
import { timestampOf } from '../table/timestamp.js'

/**
 * A record is one text: these fields in this order, each with a zero byte behind it, and '' for what there is not. A script
 * reads it by one command and writes it by one. Instants are epoch ms, `ref` is the key of the command, `seq` the number of its
 * admission. What only whoever looks at the record asks for stands together, a line each:
 * - `attempted`, the last attempt: its instant, the instance, the node (the rest, whatever it is);
 * - `concluded`, the same: the instant of its outcome, and why it led to nothing;
 * - `former`: the attempts before it, oldest first, a line each of fields that a byte 1 separates;
 * - `acknowledged`: its state, instant, and the instance;
 * - `recovered`: how often, when last, and why;
 * - `over`: the instant of its end, and why.
 */
export const RECORD_FIELDS = [
  'ref',
  'phase',
  'seq',
  'deadline_at',
  'scope_id',
  'scope_shard',
  'attempts',
  'incarnation',
  'last_outcome',
  'terminal',
  'until_ms',
  'ended_by',
  'action',
  'fingerprint',
  'max_attempts',
  'admitted_at',
  'attempted',
  'concluded',
  'former',
  'confirmed',
  'handed_over_at',
  'acknowledged',
  'recovered',
  'over',
] as const

/** Bytes of a record at most, with room: nothing longer is one. */
export const RECORD_TEXT_BYTES = 16_384

type RecordField = (typeof RECORD_FIELDS)[number]

/** Lua that puts `expressions` into one text, each with a zero byte behind it: `table.concat` would make a table of them first. */
const joined = (expressions: readonly string[]) =>
  expressions.map((each) => (each === "''" ? "'\\0'" : `(${each}) .. '\\0'`)).join(' .. ')

/** The text of a new record, in Lua: each field by its expression. */
export const recordText = (fields: Partial<Record<RecordField, string>>) =>
  joined(RECORD_FIELDS.map((field) => fields[field] ?? "''"))

/** What a record has in Lua before its fields: whose it is, what its keys end in, and whether it is one. */
const RECORD_HEAD = ['user_id', 'client_id', 'command_id', 'mailbox', 'path', 'good'] as const
const RECORD_PLACES: readonly string[] = [...RECORD_HEAD, ...RECORD_FIELDS]

/**
 * For scripts that read records, before `withFields`. In Lua a record is a list, so that what was read by one call is written by one,
 * and no table of names is made for it.
 */
export const RECORD_LUA = `
local RECORD = '${'s'.repeat(RECORD_FIELDS.length)}'
-- The text of a record that was read, and changed since.
local function text_of(c)
  return ${joined(RECORD_FIELDS.map((_, i) => `c[${RECORD_HEAD.length + 1 + i}]`))}
end
-- The record that a reply is, of which the head is not asked, or nil.
local function fields_of(reply)
  local c = { ${RECORD_HEAD.slice(1)
    .map(() => "''")
    .join(', ')}, pcall(struct.unpack, RECORD, reply) }
  return c.good and c or nil
end`

/** Attempts before the last one that a record keeps. */
const FORMER = ATTEMPTS_KEPT - 1
/** Bytes of the name of a node among them. */
const NODE_BYTES = 256

/** For scripts that claim attempts: keeps the last one among those before it. */
export const FORMER_LUA = `
local function keep_attempt(c)
  local at, instance, at_node = string.match(c.attempted, '^([^\\n]*)\\n([^\\n]*)\\n(.*)$')
  if not at then return end
  local ended_at, reason = string.match(c.concluded, '^([^\\n]*)\\n(.*)$')
  if tonumber(c.attempts) > ${FORMER} then c.former = string.gsub(c.former, '^[^\\n]*\\n?', '', 1) end
  local line = c.attempts .. '\\1' .. at .. '\\1' .. (ended_at or '') .. '\\1' .. c.last_outcome .. '\\1' .. (reason or '')
    .. '\\1' .. instance .. '\\1' .. string.gsub(string.sub(at_node, 1, ${NODE_BYTES}), '%c', ' ')
  c.former = c.former == '' and line or c.former .. '\\n' .. line
end`

/** For scripts that read: whether anybody waits for the client, at a node whose lease has not run out at `after_now`, a bound of a score. */
export const ATTACHED_LUA = `
local living, is_living = read('ZRANGE', K('delivery', 'incarnations'), after_now, '+inf', 'BYSCORE') or {}, {}
for _, node in ipairs(living) do is_living[node] = true end
local function is_attached(user, client)
  local waiter = user and #living > 0 and read('HMGET', K('delivery', 'waiter', user, client), 'incarnation')
  return waiter and waiter[1] and is_living[waiter[1]] or false
end`

/** The state under which a record is listed, for scripts that read records. */
export const STATE_LUA = `
local function state_of(c)
  return c.terminal ~= '' and c.terminal or c.phase == 'acknowledged' and c.phase or c.attempts ~= '0' and 'attempted' or 'waiting'
end`

/** `c.phase` of a record, in Lua, as its place in the list. */
export const withFields = (lua: string) =>
  lua.replace(/(\w+)\.(\w+)/g, (whole, record: string, field) => {
    const at = RECORD_PLACES.indexOf(field)
    return at < 0 ? whole : `${record}[${at + 1}]`
  })

/** Of a command that was admitted just now. */
export const admittedStatus = (
  { user_id, client_id, command_id }: CommandKey,
  scope_id: string,
  now: number,
  deadlineAt: number,
): DeliveryStatus => ({
  user_id,
  client_id,
  command_id,
  admission: { state: 'admitted', at: timestampOf(now), scope_id, deadline_at: timestampOf(deadlineAt) },
  attempts: {
    count: 0,
    confirmed: 0,
    handed_over_at: null,
    last_at: null,
    last_node_id: null,
    last_outcome: null,
    items: [],
    omitted: 0,
  },
  acknowledgement: { state: 'none', at: null, instance_id: null },
  recovery: { count: 0, last_at: null, reason: null },
  terminal: null,
})

/** The lines of a group: the last has whatever is left. */
function linesOf(group: string, count: number): (string | null)[] {
  if (group === '') return Array(count).fill(null)
  const lines = group.split('\n')
  const last = lines.splice(count - 1).join('\n')
  return [...lines, last].map((line) => (line === '' ? null : line))
}

const numberOf = (text: string | null) => (text === null || text === '' ? 0 : Number(text))

/** @throws RangeError for an instant that no `Date` can hold. */
const instantOf = (text: string | null | undefined) => (text ? toTimestamp(Number(text)) : null)

/** The attempts before the last one, nothing of them checked. */
function attemptsIn(former: string): Attempt[] {
  if (former === '') return []
  return former.split('\n').map((line) => {
    const [number = '', at, ended_at, outcome, reason, instance_id, node_id] = line.split('\x01')
    return {
      number: Number(number),
      at: instantOf(at),
      ended_at: instantOf(ended_at),
      outcome: outcome || null,
      reason: reason || null,
      instance_id: instance_id || null,
      node_id: node_id || null,
    } as Attempt
  })
}

/** Nothing is checked. @throws RangeError as above. */
function toDeliveryStatus(
  record: Record<RecordField, string>,
  { user_id, client_id, command_id }: CommandKey,
): DeliveryStatus {
  const { terminal } = record
  const isRejected = terminal === 'rejected'
  const [lastAt, lastInstance = null, lastNode = null] = linesOf(record.attempted, 3)
  const [concludedAt, concludedReason = null] = linesOf(record.concluded, 2)
  const count = numberOf(record.attempts)
  const latest = {
    number: count,
    at: instantOf(lastAt),
    node_id: lastNode,
    instance_id: lastInstance,
    outcome: record.last_outcome || null,
    ended_at: instantOf(concludedAt),
    reason: concludedReason,
  }
  const [acknowledged, acknowledgedAt, acknowledgedBy = null] = linesOf(record.acknowledged, 3)
  const [recoveries = null, recoveredAt, recoveryReason = null] = linesOf(record.recovered, 3)
  const [overAt, overReason = null] = linesOf(record.over, 2)
  return {
    user_id,
    client_id,
    command_id,
    admission: {
      state: isRejected ? 'rejected' : 'admitted',
      at: instantOf(record.admitted_at),
      scope_id: record.scope_id,
      deadline_at: isRejected ? null : instantOf(record.deadline_at),
    },
    attempts: {
      count,
      confirmed: numberOf(record.confirmed),
      handed_over_at: instantOf(record.handed_over_at),
      last_at: instantOf(lastAt),
      last_node_id: lastNode,
      last_outcome: record.last_outcome || null,
      ...shownAttempts(count === 0 ? [] : [...attemptsIn(record.former), latest as Attempt], count),
    },
    acknowledgement: {
      state: acknowledged ?? 'none',
      at: instantOf(acknowledgedAt),
      instance_id: acknowledgedBy,
    },
    recovery: { count: numberOf(recoveries), last_at: instantOf(recoveredAt), reason: recoveryReason },
    terminal: terminal === '' ? null : { state: terminal, at: instantOf(overAt), reason: overReason },
  } as DeliveryStatus
}

function fieldsOf(reply: StoreReply): Record<RecordField, string> | undefined {
  if (typeof reply !== 'string') return undefined
  const texts = reply.split('\0')
  if (texts.length !== RECORD_FIELDS.length + 1) return undefined
  return Object.fromEntries(RECORD_FIELDS.map((field, i) => [field, texts[i]])) as Record<RecordField, string>
}

const STEPS: Readonly<Record<string, DeliveryStep['step']>> = {
  ready: 'ready',
  attempted: 'attempted',
  backoff: 'pause',
}

interface ReadRecord {
  status: DeliveryStatus
  action: string | null
  step: DeliveryStep['step']
  /** When it is forgotten; `null` before its end. */
  untilMs: number | null
}

/** A record as it was found under `key`, or `undefined` for anything else. */
export function readDeliveryStatus(reply: StoreReply, key: CommandKey): ReadRecord | undefined {
  const record = fieldsOf(reply)
  if (record?.ref !== commandKey(key)) return undefined
  try {
    const read = DeliveryStatus.safeParse(toDeliveryStatus(record, key))
    if (!read.success) return undefined
    const untilMs = record.until_ms ? Number(record.until_ms) : null
    return { status: read.data, action: record.action || null, step: STEPS[record.phase] ?? null, untilMs }
  } catch {
    // An instant that no Date can hold.
    return undefined
  }
}
