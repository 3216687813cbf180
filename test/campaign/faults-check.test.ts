/** Tests the checker of fault histories: a clean history passes, and planted defects are reported. */
import { expect, it } from 'vitest'
import type { DeliveryStatus } from '../../src/internal/contract/delivery.js'
import { checkHistory } from './faults-check.js'
import type { Answer, Call, Entry } from './faults-history.js'

const name = { user_id: 'ada', client_id: 'tab', command_id: 'k' }
const message = { user_id: 'ada', client_id: 'tab', instance_id: 'i', site_id: 's', stream: 't', message_id: 'm', n: 1 }
const record = {
  ...name,
  admission: { state: 'admitted', at: null, scope_id: 's', deadline_at: null },
  attempts: { count: 1, confirmed: 1, last_at: null, last_node_id: 'n', last_outcome: 'handed_over' },
  terminal: { state: 'resulted', at: '2026-01-01T00:00:00.000Z', reason: null },
} as unknown as DeliveryStatus

let op = 0
const asked = (call: Call, answer: Answer): Entry[] => {
  op++
  return [
    { type: 'invoke', op, at: op, process: 'n1', call },
    { type: 'ok', op, at: op, answer },
  ]
}
const handedOver = { type: 'handed_over', at: 1, process: 'n1', instance_id: 'i', attempt: 1, n: 1, ...name } as const
const heard = { type: 'heard', at: 1, process: 'n1', topic: 't', epoch: 'e', seq: 1, event_id: 'm' } as const
const settle: Call = { what: 'settle', ...name, instance_id: null, state: 'resulted' }
const stream = { type: 'stream', stream: 't', user_id: 'ada', message_count: 1 } as const
const left: Extract<Entry, { type: 'delivery' }> = {
  type: 'delivery',
  now: '',
  shards: 1,
  tracked_commands: 0,
  tenants: [],
}
const held = { message_id: 'm', sequence: 1, n: 1 }

const clean = (): Entry[] => [
  ...asked(
    { what: 'dispatch', ...name, scope_id: 's', deadline_ms: 1, n: 1 },
    { admission: 'admitted', terminal: null },
  ),
  handedOver,
  ...asked(settle, true),
  ...asked({ what: 'ingest', ...message }, { duplicate: false, published: true, reason: null }),
  heard,
  { type: 'command', ...name, status: record },
  { ...stream, messages: [held] },
  { type: 'account', user_id: 'ada', entries: 1, accepted: 1, duplicates: 0 },
  left,
]
const instead = (type: Entry['type'], entry: Entry) => clean().map((one) => (one.type === type ? entry : one))

it('a clean history passes', () => {
  expect(checkHistory(clean())).toEqual([])
})

it.each<[string, Entry[]]>([
  ['ended by itself', [...clean(), { type: 'died', at: 1, node: 'n1' }]],
  ['is nowhere', instead('command', { type: 'command', ...name, status: null })],
  ['has not ended', instead('command', { type: 'command', ...name, status: { ...record, terminal: null } })],
  ['ended twice', [...clean(), ...asked(settle, true)]],
  ['another payload', instead('handed_over', { ...handedOver, n: 2 })],
  ['came twice', [...clean(), handedOver]],
  ['more attempts than are counted', [...clean(), { ...handedOver, attempt: 2 }]],
  ['accepted and is not there', instead('stream', { ...stream, message_count: 0, messages: [] })],
  ['is there twice', instead('stream', { ...stream, message_count: 2, messages: [held, { ...held, sequence: 2 }] })],
  ['another content', instead('stream', { ...stream, messages: [{ ...held, n: 2 }] })],
  ['a hole', instead('stream', { ...stream, messages: [{ ...held, sequence: 2 }] })],
  [
    'what is counted of ada',
    instead('account', { type: 'account', user_id: 'ada', entries: 2, accepted: 2, duplicates: 0 }),
  ],
  ['two positions', [...clean(), { ...heard, seq: 2 }]],
  ['two events are at', [...clean(), { ...heard, process: 'n2', event_id: 'other' }]],
  ['heard 3 after 1', [...clean(), { ...heard, seq: 3, event_id: 'other' }]],
  ['1 commands are left', instead('delivery', { ...left, tracked_commands: 1 })],
  [
    '1 reservations of s',
    instead('delivery', { ...left, tenants: [{ scope_id: 's', reserved_commands: 1, oldest_deadline_at: null }] }),
  ],
])('reports something that %s', (about, history) => {
  expect(checkHistory(history).join()).toContain(about)
})
