/** Format of command records and waiters in the store, for the Lua that writes them and for readers. */
import { type Attempt, type CommandKey, DeliveryStatus } from '../../internal/contract/delivery.js'
import { type DeliveryStep, shownAttempts } from '../../internal/contract/delivery-rules.js'
import { encodePart, toTimestamp, traceFields } from '../../internal/contract/ids.js'
import type { StoreReply } from '../store/reply.js'
import { timestampOf } from '../table/rows.js'

/** Fields of a record, in order, each followed by a zero byte. The payload follows until the command is acknowledged or ends. */
export const RECORD_FIELDS = [
  'state',
  'seq',
  'stamp',
  'deadline_at',
  'scope',
  'scope_shard',
  'attempts',
  'delivery',
  'incarnation',
  'waiter_order',
  'outcome',
  'instance',
  'max_attempts',
  'ended_at',
  'until_ms',
  'reason',
  'ended_by',
  'history',
] as const
type RecordField = (typeof RECORD_FIELDS)[number]

const WAITER_FIELDS = [
  'order',
  'incarnation',
  'instance',
  'node',
  'most',
  'since',
  'backlogged',
  'held',
  'given',
] as const

/** A record in Lua is a list: its reference, the stored string, its fields, and the position of its payload. */
const RECORD_PLACES: readonly string[] = ['ref', 'stored', ...RECORD_FIELDS, 'payload_at']
const WAITER_PLACES: readonly string[] = WAITER_FIELDS

const joined = (variable: string, fields: readonly string[]) =>
  fields.map((field) => `${variable}.${field} .. '\\0'`).join(' .. ')

/** Replaces fields such as `c.state` and `w.order` in Lua by list indexes: a list costs less than a table with names. */
const withPlaces = (lua: string): string =>
  lua.replace(/\b(c|over|w|was)\.([a-z_]+)/g, (whole, variable: string, field: string) => {
    const places = variable === 'c' || variable === 'over' ? RECORD_PLACES : WAITER_PLACES
    const at = places.indexOf(field)
    return at < 0 ? whole : `${variable}[${at + 1}]`
  })

/** Fills in the formats and field indexes in Lua that reads or writes records and waiters. */
export const withRecords = (lua: string | undefined): string | undefined =>
  lua &&
  withPlaces(
    lua
      .replaceAll('{{RECORD}}', `'${'s'.repeat(RECORD_FIELDS.length)}'`)
      .replaceAll('{{RECORD_TEXT}}', joined('c', RECORD_FIELDS))
      .replaceAll('{{WAITER}}', `'${'s'.repeat(WAITER_FIELDS.length)}'`)
      .replaceAll('{{WAITER_TEXT}}', joined('w', WAITER_FIELDS)),
  )

/** Maximum size of a record without its payload, in bytes. Longer values are invalid. */
export const RECORD_TEXT_BYTES = 16_384
/**
 * Letters of the states in records and state columns. Attempted commands: `a` given to a node, `h` `deliver` resolved, `p` paused
 * before a retry, `q` waiting for another attempt. In columns, `.` is a deleted command.
 */
export const STATE_LETTERS = {
  waiting: 'w',
  attempted: 'ahpq',
  acknowledged: 'k',
  resulted: 'r',
  failed: 'f',
  expired: 'x',
  cancelled: 'c',
  rejected: 'j',
} as const
type StateName = keyof typeof STATE_LETTERS
const STATE_OF: Readonly<Record<string, StateName>> = Object.fromEntries(
  Object.entries(STATE_LETTERS).flatMap(([name, letters]) => [...letters].map((letter) => [letter, name])),
) as Record<string, StateName>
export const OPEN_LETTERS = 'wahpqk'

/** Returns the mailbox of a client, as in references and keys. */
export const mailboxOf = ({ user_id, client_id }: { user_id: string; client_id: string }): string =>
  `${encodePart(user_id)}:${encodePart(client_id)}`

/** Returns the reference of a command: the last parts of its key. */
export const refOf = (key: CommandKey): string => `${mailboxOf(key)}:${encodePart(key.command_id)}`

/** Returns the mailbox of a command from its reference. */
export const mailboxOfRef = (ref: string): string => ref.slice(0, ref.lastIndexOf(':'))

/** Decodes a part of a key. Returns it unchanged if it is not a valid encoding, as in keys of another application. */
export function decodePart(part: string): string {
  if (!part.includes('%')) return part
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Returns the ids in a reference. `refOf` of them is another one if the reference is invalid. */
export function keyOfRef(ref: string): CommandKey {
  const [user_id = '', client_id = '', command_id = ''] = ref.split(':').map(decodePart)
  return { user_id, client_id, command_id }
}

const instantOf = (text: string | undefined) => (text ? toTimestamp(Number(text)) : null)

/** The parsed history of a command. */
interface Story {
  attempts: (Attempt & { confirmed: boolean })[]
  /** Totals of the oldest attempts, whose lines were dropped. */
  omitted: { attempts: number; confirmed: number; recoveries: number }
  handedOverAt: string | null
  acknowledgement: { state: string; at: string | null; instance_id: string | null }
  recoveries: { at: string | null; reason: string }[]
}

const OUTCOMES = { H: 'handed_over', J: 'rejected', T: 'timed_out' } as const

/** Parses the events of a history, in order. Does not validate them. */
function readStory(events: readonly string[]): Story {
  const story: Story = {
    attempts: [],
    omitted: { attempts: 0, confirmed: 0, recoveries: 0 },
    handedOverAt: null,
    acknowledgement: { state: 'none', at: null, instance_id: null },
    recoveries: [],
  }
  for (const event of events) {
    const [first = '', second = '', third = '', fourth = ''] = event.slice(1).split('\t')
    const last = story.attempts.at(-1)
    const kind = event[0]
    if (kind === 'A') {
      story.attempts.push({
        number: Number(second),
        at: instantOf(first),
        node_id: decodePart(fourth),
        instance_id: third,
        outcome: null,
        ended_at: null,
        reason: null,
        confirmed: false,
      })
    } else if (kind === 'H' || kind === 'J' || kind === 'T') {
      if (kind === 'H') story.handedOverAt ??= instantOf(first)
      if (!last) continue
      const reason = (second || null) as Attempt['reason']
      Object.assign(last, { outcome: OUTCOMES[kind], ended_at: instantOf(first), reason })
      last.confirmed ||= kind === 'H'
    } else if (kind === 'R') {
      story.recoveries.push({ at: instantOf(first), reason: second })
    } else if (kind === 'K' || kind === 'N') {
      const state = kind === 'K' ? 'acknowledged' : 'refused'
      story.acknowledgement = { state, at: instantOf(first), instance_id: second }
    } else if (kind === 'Z') {
      story.omitted = { attempts: Number(first), confirmed: Number(second), recoveries: Number(third) }
      story.handedOverAt = instantOf(fourth)
    }
  }
  return story
}

/** Converts a record to a status at `now`. Does not validate it. @throws RangeError for an instant outside the range of `Date`. */
function toDeliveryStatus(
  record: Record<RecordField, string>,
  { user_id, client_id, command_id }: CommandKey,
  now: number,
) {
  const [, named = '', admittedAt, ...events] = record.history.split('\n')
  const [action, trace] = named.split('\t')
  const { attempts, omitted, handedOverAt, acknowledgement, recoveries } = readStory(
    events.filter((event) => event !== ''),
  )
  const state = STATE_OF[record.state]
  const isRejected = state === 'rejected'
  const last = attempts.at(-1)
  const recovery = recoveries.at(-1)
  const count = omitted.attempts + attempts.length
  const status = {
    user_id,
    client_id,
    command_id,
    admission: {
      state: isRejected ? 'rejected' : 'admitted',
      at: instantOf(admittedAt),
      scope_id: decodePart(record.scope),
      deadline_at: isRejected ? null : instantOf(record.deadline_at),
    },
    attempts: {
      count,
      confirmed: omitted.confirmed + attempts.filter(({ confirmed }) => confirmed).length,
      handed_over_at: handedOverAt,
      last_at: last?.at ?? null,
      last_node_id: last?.node_id ?? null,
      last_outcome: last?.outcome ?? null,
      ...shownAttempts(attempts, count),
    },
    acknowledgement,
    recovery: {
      count: omitted.recoveries + recoveries.length,
      last_at: recovery?.at ?? null,
      reason: recovery?.reason ?? null,
    },
    terminal: record.ended_at === '' ? null : { state, at: instantOf(record.ended_at), reason: record.reason || null },
    overdue: record.ended_at === '' && Number(record.deadline_at) <= now,
    ...traceFields(trace),
  }
  return { status, action: action || null }
}

function fieldsOf(text: string): Record<RecordField, string> | undefined {
  const texts = text.split('\0', RECORD_FIELDS.length + 1)
  if (texts.length !== RECORD_FIELDS.length + 1) return undefined
  return Object.fromEntries(RECORD_FIELDS.map((field, i) => [field, texts[i]])) as Record<RecordField, string>
}

/** The delivery step of an open command, by the letter of its state. */
const STEPS: Readonly<Record<string, DeliveryStep['step']>> = {
  w: 'ready',
  q: 'ready',
  a: 'attempted',
  h: 'attempted',
  p: 'pause',
}

interface ReadRecord {
  status: DeliveryStatus
  action: string | null
  step: DeliveryStep['step']
  /** When its retention ends, in epoch ms; `null` for an open command. */
  untilMs: number | null
}

/** Parses the value under the key of a command, as of `now`. Returns `undefined` if it is not a valid record. */
export function readRecord(reply: StoreReply, key: CommandKey, now: number): ReadRecord | undefined {
  const record = typeof reply === 'string' ? fieldsOf(reply) : undefined
  if (!record || STATE_OF[record.state] === undefined) return undefined
  try {
    const { status, action } = toDeliveryStatus(record, key, now)
    const read = DeliveryStatus.safeParse(status)
    if (!read.success || !Number.isSafeInteger(Number(record.seq))) return undefined
    const untilMs = record.until_ms === '' ? null : Number(record.until_ms)
    return { status: read.data, action, step: STEPS[record.state] ?? null, untilMs }
  } catch {
    // An instant outside the range of Date, or an invalid encoding.
    return undefined
  }
}

/** Returns the status of a newly admitted command. `node` is the node that got its first attempt, or ''. */
export function admittedStatus(
  { user_id, client_id, command_id, trace }: CommandKey & { trace?: string | undefined },
  scope_id: string,
  now: number,
  deadlineAt: number,
  [node, instance]: readonly [node: string, instance: string],
): DeliveryStatus {
  const at = timestampOf(now)
  const isGiven = node !== ''
  const attempt = { number: 1, at, node_id: node, instance_id: instance, outcome: null, ended_at: null, reason: null }
  return {
    user_id,
    client_id,
    command_id,
    admission: { state: 'admitted', at, scope_id, deadline_at: timestampOf(deadlineAt) },
    attempts: {
      count: isGiven ? 1 : 0,
      confirmed: 0,
      handed_over_at: null,
      last_at: isGiven ? at : null,
      last_node_id: isGiven ? node : null,
      last_outcome: null,
      items: isGiven ? [attempt] : [],
      omitted: 0,
    },
    acknowledgement: { state: 'none', at: null, instance_id: null },
    recovery: { count: 0, last_at: null, reason: null },
    terminal: null,
    overdue: false,
    ...traceFields(trace),
  }
}
