/** How the store keeps the record of a command and the waiter of a mailbox: for the Lua that writes them, and for readers. */
import { type Attempt, type CommandKey, DeliveryStatus } from '../../contract/delivery.js'
import { type DeliveryStep, shownAttempts } from '../../contract/delivery-rules.js'
import { encodePart, toTimestamp } from '../../contract/ids.js'
import type { StoreReply } from '../store/reply.js'
import { timestampOf } from '../table/timestamp.js'

/** Fields of a record, in order, each with a zero byte after it. The payload follows until an acknowledgement or the end. */
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

const WAITER_FIELDS = ['order', 'incarnation', 'instance', 'node', 'most', 'since', 'stuck', 'held', 'hand'] as const

/** A record in Lua is a list: its reference, what was stored, its fields, and where its payload begins. */
const RECORD_PLACES: readonly string[] = ['ref', 'stored', ...RECORD_FIELDS, 'payload_at']
const WAITER_PLACES: readonly string[] = WAITER_FIELDS

const joined = (variable: string, fields: readonly string[]) =>
  fields.map((field) => `${variable}.${field} .. '\\0'`).join(' .. ')

/** Replaces `c.state` of a record and `w.order` of a waiter by their places: a list costs less than a table of names. */
const withPlaces = (lua: string): string =>
  lua.replace(/\b(c|over|w|was)\.([a-z_]+)/g, (whole, variable: string, field: string) => {
    const places = variable === 'c' || variable === 'over' ? RECORD_PLACES : WAITER_PLACES
    const at = places.indexOf(field)
    return at < 0 ? whole : `${variable}[${at + 1}]`
  })

/** Completes Lua that reads or writes records and waiters. */
export const withRecords = (lua: string): string =>
  withPlaces(
    lua
      .replaceAll('{{RECORD}}', `'${'s'.repeat(RECORD_FIELDS.length)}'`)
      .replaceAll('{{RECORD_TEXT}}', joined('c', RECORD_FIELDS))
      .replaceAll('{{WAITER}}', `'${'s'.repeat(WAITER_FIELDS.length)}'`)
      .replaceAll('{{WAITER_TEXT}}', joined('w', WAITER_FIELDS)),
  )

/** Bytes of a record without its payload, with room: nothing longer is one. */
export const RECORD_TEXT_BYTES = 16_384
/**
 * Letters of the states in records and columns. Of attempted commands: `a` given to a node, `h` handed over, `p` in a pause, `q`
 * waiting for another attempt. `.` is a command that was forgotten.
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

/** The reference of a command: the last parts of its key. */
export const refOf = ({ user_id, client_id, command_id }: CommandKey): string =>
  `${encodePart(user_id)}:${encodePart(client_id)}:${encodePart(command_id)}`

/** The mailbox of a client, as references and keys name it. */
export const mailboxOf = ({ user_id, client_id }: { user_id: string; client_id: string }): string =>
  `${encodePart(user_id)}:${encodePart(client_id)}`

/** The mailbox of a command, by its reference. */
export const mailboxOfRef = (ref: string): string => ref.slice(0, ref.lastIndexOf(':'))

/** The ids in a reference. @throws URIError for a text that is no reference */
export function keyOfRef(ref: string): CommandKey {
  const parts = ref.split(':')
  const [user_id = '', client_id = '', command_id = ''] = ref.includes('%') ? parts.map(decodeURIComponent) : parts
  return { user_id, client_id, command_id }
}

const instantOf = (text: string | undefined) => (text ? toTimestamp(Number(text)) : null)

/** What the lines of a history say. */
interface Story {
  attempts: (Attempt & { confirmed: boolean })[]
  /** Of attempts without lines of their own. */
  omitted: { attempts: number; confirmed: number; recoveries: number }
  handedOverAt: string | null
  acknowledgement: { state: string; at: string | null; instance_id: string | null }
  recoveries: { at: string | null; reason: string }[]
}

const OUTCOMES = { H: 'handed_over', J: 'rejected', T: 'timed_out' } as const

/** The events of a history, in their order. Nothing is checked. */
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
        node_id: decodeURIComponent(fourth),
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
      // Given back, an attempt came to nothing that is known.
      if (second === 'requeued' && last) Object.assign(last, { ended_at: instantOf(first), reason: second })
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

/** Nothing is checked. @throws RangeError for an instant that no `Date` can hold. */
function toDeliveryStatus(record: Record<RecordField, string>, key: CommandKey) {
  const [, action = '', admittedAt, ...events] = record.history.split('\n')
  const { attempts, omitted, handedOverAt, acknowledgement, recoveries } = readStory(
    events.filter((event) => event !== ''),
  )
  const state = STATE_OF[record.state]
  const isRejected = state === 'rejected'
  const last = attempts.at(-1)
  const recovery = recoveries.at(-1)
  const count = omitted.attempts + attempts.length
  const status = {
    ...key,
    admission: {
      state: isRejected ? 'rejected' : 'admitted',
      at: instantOf(admittedAt),
      scope_id: decodeURIComponent(record.scope),
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
  }
  return { status, action: action || null }
}

function fieldsOf(text: string): Record<RecordField, string> | undefined {
  const texts = text.split('\0', RECORD_FIELDS.length + 1)
  if (texts.length !== RECORD_FIELDS.length + 1) return undefined
  return Object.fromEntries(RECORD_FIELDS.map((field, i) => [field, texts[i]])) as Record<RecordField, string>
}

/** How far a command without an end has come, by the letter of its state. */
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
  /** When it is forgotten, in epoch ms; `null` before its end. */
  untilMs: number | null
}

/** A record as it was found under the key of a command, or `undefined` for anything else. */
export function readRecord(reply: StoreReply, key: CommandKey): ReadRecord | undefined {
  const record = typeof reply === 'string' ? fieldsOf(reply) : undefined
  if (!record || STATE_OF[record.state] === undefined) return undefined
  try {
    const { status, action } = toDeliveryStatus(record, key)
    const read = DeliveryStatus.safeParse(status)
    if (!read.success || !Number.isSafeInteger(Number(record.seq))) return undefined
    const untilMs = record.until_ms === '' ? null : Number(record.until_ms)
    return { status: read.data, action, step: STEPS[record.state] ?? null, untilMs }
  } catch {
    // An instant that no Date can hold, or a part that nobody of ours encoded.
    return undefined
  }
}

/** The status of a command that was admitted just now, and given to a node if `node` is not ''. */
export function admittedStatus(
  { user_id, client_id, command_id }: CommandKey,
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
  }
}
