/** A clean history of a few commands and messages, told anew for each test that plants a violation in it. */
import type { DeliveryStatus } from '../../src/contract/delivery.js'
import type { Answer, Answers, Call, CommandName, Entry, Failure } from './faults-history.js'

const user_id = 'ada'
const client_id = 'tab'
const site_id = 'notes'
const at = (ms: number) => new Date(ms).toISOString()
const name = (command_id: string): CommandName => ({ user_id, client_id, command_id })

export const TOPIC = 'users/ada/sites/notes/events'
/** When the faults of the clean history are over. */
const HEALED_MS = 5_000
const LONG_MS = 600_000

export interface MetricDefinition {
  operation(from: number, to: number, call: Call, end: Failure | { type: 'ok'; answer: Answer }): number
  ok(from: number, to: number, call: Call, answer: Answer): number
  lost(from: number, to: number, call: Call): number
  dispatch(id: string, deadlineMs?: number): Call
  acknowledge(id: string, instance_id?: string): Call
  settle(id: string, instance_id?: string | null): Call
  ingest(id: string, instance_id?: string): Call
  connect(instance_id: string): Call
  handOver(at: number, id: string, change?: { attempt?: number; n?: number; instance_id?: string }): void
  hear(at: number, event_id: string, seq: number, process?: string): void
  /** What stands in the store at last. */
  statuses: Map<string, DeliveryStatus | null>
  retained: { message_id: string; n: number; sequence?: number }[]
  account: { entries?: number }
  left: { tracked_commands?: number; tenants?: Extract<Entry, { type: 'delivery' }>['tenants']; ended?: number }
  entries: Entry[]
}

/** The record of a command that was attempted once, acknowledged and resulted. */
export function recordOf(id: string, change: Partial<DeliveryStatus> = {}): DeliveryStatus {
  return {
    ...name(id),
    admission: { state: 'admitted', at: at(100), scope_id: 's', deadline_at: at(LONG_MS) },
    attempts: { count: 1, confirmed: 1, last_at: at(150), last_node_id: 'n1', last_outcome: 'handed_over' },
    acknowledgement: { state: 'acknowledged', at: at(160), instance_id: 'i1' },
    recovery: { count: 0, last_at: null, reason: null },
    terminal: { state: 'resulted', at: at(170), reason: null },
    ...change,
  }
}
export const UNSEEN: DeliveryStatus['attempts'] = {
  count: 0,
  confirmed: 0,
  last_at: null,
  last_node_id: null,
  last_outcome: null,
}
export const UNACKNOWLEDGED: DeliveryStatus['acknowledgement'] = { state: 'none', at: null, instance_id: null }
export const endOf = (state: NonNullable<DeliveryStatus['terminal']>['state'], ms = 170) => ({
  state,
  at: at(ms),
  reason: null,
})
export const instant = at

export const PUBLISHED: Answer = { duplicate: false, published: true, reason: null }
export const KEPT: Answers['ingest'] = { duplicate: false, published: false, reason: 'bus_unavailable' }
export const ADMITTED: Answer = { admission: 'admitted', terminal: null }
const NOT_RUN: Failure = { type: 'refused', code: 'unavailable', outcome: 'not_run' }
const UNKNOWN: Failure = { type: 'refused', code: 'unavailable', outcome: 'unknown' }

function createTold(): MetricDefinition {
  let ops = 0
  const entries: Entry[] = []
  const told: MetricDefinition = {
    entries,
    statuses: new Map(),
    retained: [],
    account: {},
    left: {},
    operation(from, to, call, end) {
      const op = ++ops
      entries.push({ type: 'invoke', op, at: from, process: 'n1', call })
      entries.push({ op, at: to, ...end })
      return op
    },
    ok: (from, to, call, answer) => told.operation(from, to, call, { type: 'ok', answer }),
    lost: (from, to, call) => told.operation(from, to, call, UNKNOWN),
    dispatch: (id, deadlineMs = LONG_MS) => ({ what: 'dispatch', ...name(id), scope_id: 's', deadlineMs, n: 7 }),
    acknowledge: (id, instance_id = 'i1') => ({ what: 'acknowledge', ...name(id), instance_id, state: 'acknowledged' }),
    settle: (id, instance_id = null) => ({ what: 'settle', ...name(id), instance_id, state: 'resulted' }),
    ingest: (message_id, instance_id = 'i1') => ({
      what: 'ingest',
      user_id,
      client_id,
      instance_id,
      site_id,
      stream: TOPIC,
      message_id,
      n: 7,
    }),
    connect: (instance_id) => ({ what: 'connect', user_id, client_id, instance_id }),
    handOver: (when, id, change) =>
      void entries.push({
        type: 'handed_over',
        at: when,
        process: 'n1',
        ...name(id),
        instance_id: 'i1',
        attempt: 1,
        n: 7,
        ...change,
      }),
    hear: (when, event_id, seq, process = 'n1') =>
      void entries.push({ type: 'heard', at: when, process, topic: TOPIC, epoch: 'e', seq, event_id }),
  }
  return told
}

/** A command that went its whole way between `from` and `from + 80`. */
export function goThrough(told: MetricDefinition, id: string, from: number, instance_id = 'i1') {
  told.ok(from, from + 10, told.dispatch(id), ADMITTED)
  told.handOver(from + 20, id, { instance_id })
  told.ok(from + 30, from + 40, told.acknowledge(id, instance_id), true)
  told.ok(from + 50, from + 60, told.settle(id), true)
  told.statuses.set(id, recordOf(id))
}

/** The clean history, with what `plant` adds or changes. */
export function toldWith(plant: (told: MetricDefinition) => void): Entry[] {
  const told = createTold()
  const { ok, lost, operation, dispatch, settle, ingest, statuses, retained } = told
  ok(0, 10, told.connect('i1'), true)
  ok(20, 30, { what: 'subscribe', topic: TOPIC }, true)
  goThrough(told, 'whole', 100)
  // Admitted and settled as nobody was told, and acknowledged twice.
  lost(200, 210, dispatch('unsure'))
  told.handOver(220, 'unsure')
  ok(230, 240, told.acknowledge('unsure'), true)
  ok(241, 244, told.acknowledge('unsure'), true)
  operation(900, 910, settle('unsure'), { type: 'unanswered' })
  statuses.set('unsure', recordOf('unsure'))
  operation(300, 310, dispatch('refused'), NOT_RUN)
  statuses.set('refused', null)
  ok(320, 330, dispatch('full'), { admission: 'rejected', terminal: 'rejected' })
  statuses.set('full', null)
  ok(340, 350, dispatch('late', 100), ADMITTED)
  statuses.set(
    'late',
    recordOf('late', { attempts: UNSEEN, acknowledgement: UNACKNOWLEDGED, terminal: endOf('expired') }),
  )
  ok(360, 370, dispatch('cancelled'), ADMITTED)
  ok(380, 390, { what: 'cancel', ...name('cancelled') }, true)
  const ended = { acknowledgement: UNACKNOWLEDGED, terminal: endOf('cancelled') }
  statuses.set('cancelled', recordOf('cancelled', ended))

  ok(400, 410, ingest('first'), PUBLISHED)
  told.hear(412, 'first', 1)
  ok(415, 418, ingest('first'), { duplicate: true, published: false, reason: 'duplicate' })
  lost(420, 430, ingest('unsure'))
  told.hear(432, 'unsure', 2)
  operation(440, 450, ingest('refused'), NOT_RUN)
  lost(460, 470, ingest('never'))
  ok(480, 490, ingest('kept'), KEPT)
  ok(492, 494, ingest('open'), { duplicate: false, published: null, reason: 'unknown' })
  for (const message_id of ['first', 'unsure', 'kept', 'open']) retained.push({ message_id, n: 7 })

  ok(500, 510, told.connect('i2'), true)
  operation(520, 530, ingest('stale'), { type: 'refused', code: 'stale_instance', outcome: 'not_run' })
  plant(told)
  return [...told.entries, { type: 'healed', at: HEALED_MS }, ...lastRead(told)]
}

function lastRead({ statuses, retained, account, left }: MetricDefinition): Entry[] {
  const accepted = account.entries ?? retained.length
  const ended = [...statuses.values()].filter((status) => status?.terminal).length
  return [
    ...[...statuses].map(([id, status]): Entry => ({ type: 'command', ...name(id), status })),
    {
      type: 'stream',
      stream: TOPIC,
      user_id,
      message_count: retained.length,
      messages: retained.map((message, i) => ({ sequence: i + 1, ...message })),
    },
    { type: 'account', user_id, entries: accepted, accepted, duplicates: 1 },
    { type: 'delivery', now: at(HEALED_MS), shards: 1, tracked_commands: 0, tenants: [], ended, ...left },
  ]
}
