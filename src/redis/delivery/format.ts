/** How the evidence about one command is stored, for the scripts that write it and whoever reads it. */
import { type CommandKey, DeliveryStatus } from '../../contract/delivery.js'
import { commandKey, toTimestamp } from '../../contract/ids.js'
import type { StoreReply } from '../store/reply.js'
import { timestampOf } from '../table/timestamp.js'

/**
 * What leaves as a `DeliveryStatus`, in the order in which it is read. `ref` is the key of the command, instants are epoch ms,
 * and a count that is not there is 0.
 */
export const SHOWN_FIELDS = [
  'ref',
  'scope_id',
  'admitted_at',
  'deadline_at',
  'attempts',
  'confirmed',
  'last_at',
  'last_node_id',
  'last_outcome',
  'acknowledged',
  'acknowledged_at',
  'acknowledged_by',
  'recoveries',
  'recovered_at',
  'recovery_reason',
  'terminal',
  'terminal_at',
  'terminal_reason',
  'until_ms',
] as const

/** What scripts read of a record before each move; whatever else there is, when a move asks for it. */
export const RULING_FIELDS = [
  'phase',
  'seq',
  'deadline_at',
  'scope_id',
  'scope_shard',
  'attempts',
  'incarnation',
  'terminal',
] as const

type ShownField = (typeof SHOWN_FIELDS)[number]

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
  attempts: { count: 0, confirmed: 0, last_at: null, last_node_id: null, last_outcome: null },
  acknowledgement: { state: 'none', at: null, instance_id: null },
  recovery: { count: 0, last_at: null, reason: null },
  terminal: null,
})

/** A record as a script of ours has just answered it: nothing is checked. @throws RangeError for anything else. */
function toDeliveryStatus(reply: StoreReply, { user_id, client_id, command_id }: CommandKey): DeliveryStatus {
  const values = Array.isArray(reply) ? reply : []
  const text = (field: ShownField) => {
    const value = values[SHOWN_FIELDS.indexOf(field)]
    return typeof value === 'string' ? value : null
  }
  const number = (field: ShownField) => {
    const value = text(field)
    return value === null ? null : Number(value)
  }
  const instant = (field: ShownField) => {
    const at = number(field)
    return at === null ? null : toTimestamp(at)
  }
  const terminal = text('terminal')
  const isRejected = terminal === 'rejected'
  return {
    user_id,
    client_id,
    command_id,
    admission: {
      state: isRejected ? 'rejected' : 'admitted',
      at: instant('admitted_at'),
      scope_id: text('scope_id'),
      deadline_at: isRejected ? null : instant('deadline_at'),
    },
    attempts: {
      count: number('attempts') ?? 0,
      confirmed: number('confirmed') ?? 0,
      last_at: instant('last_at'),
      last_node_id: text('last_node_id'),
      last_outcome: text('last_outcome'),
    },
    acknowledgement: {
      state: text('acknowledged') ?? 'none',
      at: instant('acknowledged_at'),
      instance_id: text('acknowledged_by'),
    },
    recovery: { count: number('recoveries') ?? 0, last_at: instant('recovered_at'), reason: text('recovery_reason') },
    terminal:
      terminal === null ? null : { state: terminal, at: instant('terminal_at'), reason: text('terminal_reason') },
  } as DeliveryStatus
}

/** A record as it was found under `key`, or `undefined` for anything else. `untilMs`: when it is forgotten, `null` before its end. */
export function readDeliveryStatus(
  reply: StoreReply,
  key: CommandKey,
): { status: DeliveryStatus; untilMs: number | null } | undefined {
  const until = Array.isArray(reply) ? reply[SHOWN_FIELDS.indexOf('until_ms')] : null
  try {
    if (!Array.isArray(reply) || reply[0] !== commandKey(key)) return undefined
    const read = DeliveryStatus.safeParse(toDeliveryStatus(reply, key))
    return read.success ? { status: read.data, untilMs: typeof until === 'string' ? Number(until) : null } : undefined
  } catch {
    // An instant that no Date can hold.
    return undefined
  }
}
