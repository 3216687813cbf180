/** What a job of BullMQ proves, in the words of delivery: its worker's processor stands where `deliver` does. */
import { BadRecord } from '../contract/bad-record.js'
import type { DeliveryStatus } from '../contract/delivery.js'
import { Id, toTimestamp } from '../contract/ids.js'
import type { Ask } from '../contract/page.js'
import { type Identify, ownerOf } from './identity.js'
import { commandIdOf } from './ids.js'
import { INDEXES, type Index, ROW } from './scripts.js'

type Field = (typeof ROW)[number]

/** A job as its queue's store has told it. */
export interface JobRow {
  readonly index: Index
  readonly place: number
  readonly left: number
  readonly id: string
  text(field: Field): string | null
  /** A whole number from 0; 0 for what is none. */
  count(field: Field): number
  /** An instant as it is written on the wire; `null` for what is none. */
  instant(field: Field): string | null
}

const DATE_MAX_MS = 8.64e15

/** @throws TypeError for what no script of ours answers. */
export function toRow(reply: unknown): JobRow {
  const values: unknown[] = Array.isArray(reply) ? reply : []
  const valueAt = (field: Field) => values[ROW.indexOf(field)]
  const text = (field: Field) => {
    const value = valueAt(field)
    return typeof value === 'string' ? value : null
  }
  const number = (field: Field) => {
    const value = Number(text(field) ?? Number.NaN)
    return value >= 0 && value <= DATE_MAX_MS ? Math.floor(value) : null
  }
  const [index, id] = [text('index') as Index, text('id')]
  const [place, left] = [Number(valueAt('place')), Number(valueAt('left'))]
  if (!INDEXES.includes(index) || !Number.isSafeInteger(place) || !Number.isSafeInteger(left) || id === null)
    throw new TypeError('the store of a queue answered what is no job')
  return {
    index,
    place,
    left,
    id,
    text,
    count: (field) => number(field) ?? 0,
    instant(field) {
      const at = number(field)
      return at === null ? null : toTimestamp(at)
    },
  }
}

/** What a job is of, where its name is short enough to be shown. */
export function nameOf(row: JobRow): string | null {
  const { data: name = null } = Id.safeParse(row.text('name'))
  return name
}

const isTerminal = ({ index }: JobRow) => index === 'completed' || index === 'failed'

/** What became of the latest attempt, as far as the counts of the job leave no doubt. */
function outcomeOf(row: JobRow): DeliveryStatus['attempts']['last_outcome'] {
  const [started, ended, stalled] = [row.count('ats'), row.count('atm'), row.count('stc')]
  if (row.index === 'completed') return 'handed_over'
  if (row.index === 'failed') return row.text('stalled') === '1' ? 'timed_out' : 'rejected'
  if (started === 0 || row.index === 'active') return null
  if (started === stalled) return 'timed_out'
  // A job that is sent through again by hand has lost its reason: that its last attempt failed is not known then.
  return started === ended && row.text('stalled') !== null ? 'rejected' : 'other'
}

function recoveryOf(row: JobRow): DeliveryStatus['recovery'] {
  const [ended, stalled] = [row.count('atm'), row.count('stc')]
  // The last end needs no further attempt.
  const failed = Math.max(0, isTerminal(row) ? ended - 1 : ended)
  const count = failed + stalled
  // An attempt that ended well counts, too, when the job is sent through again by hand, which takes the reason of a failure away;
  // and without further attempts nothing else sends one through again.
  const isRejected = row.index === 'failed' ? row.count('attempts') > 1 : row.text('stalled') !== null
  const endedBy = isRejected ? 'deliver_rejected' : 'other'
  const only = stalled === 0 ? endedBy : failed === 0 ? 'lease_expired' : 'other'
  return { count, last_at: null, reason: count === 0 ? null : only }
}

function terminalOf(row: JobRow): DeliveryStatus['terminal'] {
  if (!isTerminal(row)) return null
  const at = row.instant('finishedOn') as string
  if (row.index === 'completed') return { state: 'resulted', at, reason: null }
  if (row.text('stalled') === '1') return { state: 'failed', at, reason: 'stalled' }
  const isExhausted = row.count('atm') >= Math.max(1, row.count('attempts'))
  return { state: 'failed', at, reason: isExhausted ? 'attempts_exhausted' : null }
}

/** The evidence about one job, or what is wrong with it. */
export async function readJob(
  queue: string,
  row: JobRow,
  identify: Identify | undefined,
  ask: Ask,
): Promise<DeliveryStatus | BadRecord> {
  const command_id = commandIdOf(queue, row.id)
  const at = row.instant('timestamp')
  const bad = (path: string, expected: string) =>
    new BadRecord(`a job of the queue ${queue} was left out: ${path || 'job'}: expected ${expected}`, {
      id: command_id,
      fields: [{ path, expected }],
    })
  if (command_id === null) return bad('id', 'at most 256 bytes with the name of its queue')
  if (at === null) return bad('', 'a job that is still there')
  if (isTerminal(row) && row.instant('finishedOn') === null) return bad('finishedOn', 'an instant')
  const count = row.count('ats')
  return {
    ...(await ownerOf(identify, { queue, id: row.id, name: row.text('name') ?? '' }, row.text('data'), ask)),
    command_id,
    admission: { state: 'admitted', at, scope_id: queue, deadline_at: null },
    attempts: {
      count,
      confirmed: row.index === 'completed' ? 1 : 0,
      last_at: count === 0 ? null : row.instant('processedOn'),
      last_node_id: row.text('pb'),
      last_outcome: outcomeOf(row),
    },
    acknowledgement: { state: 'none', at: null, instance_id: null },
    recovery: recoveryOf(row),
    terminal: terminalOf(row),
  }
}
