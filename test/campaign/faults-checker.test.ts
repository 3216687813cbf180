/** Holds the checker of fault histories: each violation, planted alone, is reported by its name, and a clean history passes. */
import { describe, expect, it } from 'vitest'
import { checkHistory } from './faults-checker.js'
import { brokenBy, type Specification, type Step } from './faults-order.js'
import {
  ADMITTED,
  endOf,
  goThrough,
  instant,
  KEPT,
  type MetricDefinition,
  PUBLISHED,
  recordOf,
  TOPIC,
  toldWith,
  UNACKNOWLEDGED,
  UNSEEN,
} from './faults-planted.js'
import { RULES, type Rule } from './faults-rules.js'

const PLANTS: [Rule, string, (told: MetricDefinition) => void][] = [
  ['admitted_and_gone', 'its record is missing', ({ statuses }) => statuses.set('whole', null)],
  ['there_though_refused', 'a command', ({ statuses }) => statuses.set('refused', recordOf('refused'))],
  [
    'rejected_after_admission',
    'dispatched again',
    ({ ok, dispatch }) => ok(112, 114, dispatch('whole'), { admission: 'rejected', terminal: 'rejected' }),
  ],
  [
    'end_from_nowhere',
    'in its record',
    ({ statuses }) => statuses.set('whole', recordOf('whole', { terminal: endOf('cancelled') })),
  ],
  [
    'end_from_nowhere',
    'in an answer',
    ({ ok, dispatch }) => ok(112, 114, dispatch('whole'), { admission: 'admitted', terminal: 'resulted' }),
  ],
  [
    'end_from_nowhere',
    'in the answer that admits it',
    ({ ok, dispatch, statuses }) => {
      ok(600, 610, dispatch('left', 1), { admission: 'admitted', terminal: 'resulted' })
      statuses.set('left', recordOf('left', { attempts: UNSEEN, acknowledgement: UNACKNOWLEDGED }))
    },
  ],
  ['alive_after_end', 'dispatched again', ({ ok, dispatch }) => ok(170, 180, dispatch('whole'), ADMITTED)],
  ['ended_unadmitted', 'settled', ({ ok, settle }) => ok(600, 610, settle('refused'), true)],
  ['ended_twice', 'settled', ({ ok, settle }) => ok(600, 610, settle('whole'), true)],
  ['end_denied', 'settled', ({ ok, settle }) => ok(372, 374, settle('cancelled'), false)],
  [
    'not_ended',
    'in its record',
    ({ ok, dispatch, statuses }) => {
      ok(600, 610, dispatch('left'), ADMITTED)
      const record = { attempts: UNSEEN, acknowledgement: UNACKNOWLEDGED, terminal: null }
      statuses.set('left', recordOf('left', record))
    },
  ],
  [
    'stranded',
    'long after the faults',
    ({ ok, dispatch, statuses }) => {
      ok(600, 610, dispatch('left', 60_000), ADMITTED)
      const record = { attempts: UNSEEN, acknowledgement: UNACKNOWLEDGED, terminal: endOf('expired') }
      statuses.set('left', recordOf('left', record))
    },
  ],
  ['handed_over_unadmitted', 'after a refusal', ({ handOver }) => handOver(600, 'refused')],
  ['handed_over_twice', 'before its end', ({ handOver }) => handOver(125, 'whole')],
  [
    'handed_over_after_end',
    'at a new connection',
    ({ handOver }) => handOver(600, 'whole', { attempt: 2, instance_id: 'i2' }),
  ],
  [
    'handed_over_after_acknowledgement',
    'at a new connection',
    ({ handOver }) => handOver(600, 'unsure', { attempt: 2, instance_id: 'i2' }),
  ],
  [
    'attempted_after_acknowledgement',
    'by its record',
    ({ statuses }) => {
      const { attempts } = recordOf('whole')
      statuses.set('whole', recordOf('whole', { attempts: { ...attempts, last_at: instant(165) } }))
    },
  ],
  [
    'attempted_after_end',
    'by its record',
    ({ statuses }) => {
      const { attempts } = recordOf('cancelled')
      const late = { ...attempts, last_at: instant(175) }
      const record = { attempts: late, acknowledgement: UNACKNOWLEDGED, terminal: endOf('cancelled') }
      statuses.set('cancelled', recordOf('cancelled', record))
    },
  ],
  [
    'attempts_uncounted',
    'by its record',
    ({ statuses }) => statuses.set('whole', recordOf('whole', { attempts: UNSEEN })),
  ],
  ['other_payload', 'handed over', ({ handOver }) => handOver(125, 'whole', { attempt: 2, n: 8 })],
  ['acknowledged_unseen', 'never handed over', ({ ok, acknowledge }) => ok(372, 374, acknowledge('cancelled'), true)],
  ['acknowledged_after_end', 'answered', ({ ok, acknowledge }) => ok(170, 180, acknowledge('whole'), true)],
  [
    'acknowledged_after_end',
    'by its record',
    ({ statuses }) => statuses.set('whole', recordOf('whole', { terminal: endOf('resulted', 155) })),
  ],
  ['acknowledgement_denied', 'handed over', ({ ok, acknowledge }) => ok(122, 124, acknowledge('whole'), false)],
  [
    'acknowledgement_lost',
    'by its record',
    ({ statuses }) => statuses.set('whole', recordOf('whole', { acknowledgement: UNACKNOWLEDGED })),
  ],
  [
    'acknowledgement_from_nowhere',
    'by its record',
    ({ statuses }) => statuses.set('cancelled', recordOf('cancelled', { terminal: endOf('cancelled') })),
  ],
  [
    'stale_word',
    'an acknowledgement',
    (told) => {
      told.ok(420, 430, told.dispatch('moved'), ADMITTED)
      told.handOver(440, 'moved')
      told.ok(600, 610, told.acknowledge('moved'), true)
      told.ok(620, 630, told.settle('moved'), true)
      told.statuses.set('moved', recordOf('moved'))
    },
  ],
  [
    'stale_word',
    'an end',
    (told) => {
      told.ok(420, 430, told.dispatch('moved'), ADMITTED)
      told.ok(620, 630, told.settle('moved', 'i1'), true)
      told.statuses.set('moved', recordOf('moved', { acknowledgement: UNACKNOWLEDGED }))
    },
  ],
  [
    'accepted_and_gone',
    'of the last one',
    ({ retained }) => {
      retained.splice(2, 1)
    },
  ],
  ['there_though_refused', 'a message', ({ retained }) => retained.push({ message_id: 'refused', n: 7 })],
  ['there_though_refused', 'what nobody sent', ({ retained }) => retained.push({ message_id: 'ghost', n: 7 })],
  ['retained_twice', 'at its end', ({ retained }) => retained.push({ message_id: 'open', n: 7 })],
  ['new_twice', 'sent again', ({ ok, ingest }) => ok(495, 498, ingest('kept'), KEPT)],
  [
    'duplicate_of_nothing',
    'sent again',
    ({ ok, ingest }) => ok(495, 498, ingest('refused'), { ...KEPT, duplicate: true }),
  ],
  ['other_content', 'retained', ({ retained }) => retained.splice(2, 1, { message_id: 'kept', n: 8 })],
  [
    'stale_accepted',
    'answered',
    ({ ok, ingest, retained }) => {
      ok(600, 610, ingest('old'), KEPT)
      retained.push({ message_id: 'old', n: 7 })
    },
  ],
  [
    'stale_unfounded',
    'answered',
    ({ operation, ingest }) =>
      operation(600, 610, ingest('new', 'i2'), { type: 'refused', code: 'stale_instance', outcome: 'not_run' }),
  ],
  ['sequence_broken', 'a hole', ({ retained }) => retained.splice(3, 1, { message_id: 'open', n: 7, sequence: 5 })],
  [
    'out_of_order',
    'swapped',
    ({ retained }) =>
      retained.splice(0, 4, ...['unsure', 'kept', 'first', 'open'].map((message_id) => ({ message_id, n: 7 }))),
  ],
  ['account_differs', 'one too many', ({ account }) => Object.assign(account, { entries: 5 })],
  ['published_unretained', 'heard', ({ hear }) => hear(600, 'never', 3)],
  ['published_twice', 'heard', ({ hear }) => hear(600, 'first', 3)],
  ['position_shared', 'heard elsewhere', ({ hear }) => hear(600, 'open', 1, 'n2')],
  ['lost_without_gap', 'heard', ({ hear }) => hear(600, 'open', 4)],
  ['heard_though_denied', 'heard', ({ hear }) => hear(600, 'kept', 3)],
  [
    'published_unheard',
    'answered',
    ({ ok, ingest, retained }) => {
      ok(600, 610, ingest('lost', 'i2'), PUBLISHED)
      retained.push({ message_id: 'lost', n: 7 })
    },
  ],
  ['left_tracked', 'counted', ({ left }) => Object.assign(left, { tracked_commands: 1 })],
  [
    'left_reserved',
    'in one shard',
    ({ left }) =>
      Object.assign(left, { tenants: [{ scope_id: 's', reserved_commands: 1, oldest_deadline_at: instant(90_000) }] }),
  ],
  ['ends_miscounted', 'listed', ({ left }) => Object.assign(left, { ended: 9 })],
  [
    'error',
    'thrown',
    ({ operation, ingest }) => operation(600, 610, ingest('bad', 'i2'), { type: 'error', message: 'TypeError' }),
  ],
  ['died', 'by itself', ({ entries }) => entries.push({ type: 'died', at: 600, node: 'n2' })],
  ['unread', 'a command', ({ statuses }) => statuses.delete('whole')],
]

describe('the checker of fault histories', () => {
  it('has nothing against a history in which what nobody was told happened or did not', () => {
    expect(checkHistory(toldWith(() => {}))).toEqual([])
  })

  it('has nothing against commands of whose ends one alone counted', () => {
    const history = toldWith((told) => {
      goThrough(told, 'again', 600, 'i2')
      told.ok(700, 710, told.settle('again'), false)
      told.lost(720, 730, told.settle('again'))
      told.ok(740, 750, told.dispatch('again'), { admission: 'admitted', terminal: 'resulted' })
    })
    expect(checkHistory(history)).toEqual([])
  })

  it('has nothing against an answer that a client has sent for again after the effect', () => {
    const history = toldWith((told) => {
      goThrough(told, 'resent', 600, 'i2')
      const first = told.entries.findIndex((entry) => entry.type === 'invoke' && entry.at === 600)
      Object.assign(told.entries[first + 1] as object, {
        at: 690,
        answer: { admission: 'admitted', terminal: 'resulted' },
      })
    })
    expect(checkHistory(history)).toEqual([])
  })

  it.each(PLANTS)('reports %s (%s) and nothing else', (rule, _how, plant) => {
    const history = toldWith((told) => void plant(told))
    expect(checkHistory(history).map((violation) => violation.rule)).toEqual([rule])
  })

  it('reports what the last read leaves out', () => {
    const without = (type: string) => toldWith(() => {}).filter((entry) => entry.type !== type)
    expect(new Set(checkHistory(without('stream')).map(({ rule }) => rule))).toEqual(
      new Set(['unread', 'account_differs']),
    )
    expect(checkHistory(without('delivery'))).toEqual([{ rule: 'unread', about: 'delivery as a whole' }])
  })

  it('tells a gap from a hole', () => {
    const history = toldWith(({ entries, hear }) => {
      entries.push({ type: 'gap', at: 590, process: 'n1', topic: TOPIC, last_seq: 3 })
      hear(600, 'open', 4)
    })
    expect(checkHistory(history)).toEqual([])
  })

  it('leaves a reservation in another shard to its deadline, and not longer', () => {
    const left = (oldest_deadline_at: string) =>
      toldWith(({ left }) =>
        Object.assign(left, { shards: 4, tenants: [{ scope_id: 's', reserved_commands: 1, oldest_deadline_at }] }),
      )
    expect(checkHistory(left(instant(90_000)))).toEqual([])
    expect(checkHistory(left(instant(4_000))).map(({ rule }) => rule)).toEqual(['left_reserved'])
  })

  it('says so where it cannot decide', () => {
    const open = Array.from({ length: 24 }, (_, i): Step<number> => ({ from: 0, to: Infinity, isSure: false, move: i }))
    const last: Step<number> = { from: 1, to: 2, isSure: true, move: -1 }
    const specification: Specification<number[], number> = (state, move) => (move < 0 ? 'error' : [...state, move])
    expect(brokenBy([...open, last], [], specification, 1_000)).toBe('undecided')
  })

  it('has each of its rules tried here', () => {
    const tried = new Set<string>(['undecided', ...PLANTS.map(([rule]) => rule)])
    expect(Object.keys(RULES).filter((rule) => !tried.has(rule))).toEqual([])
  })
})
