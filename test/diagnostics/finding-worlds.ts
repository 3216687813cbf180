/** Commands and clients of which findings are made, and the request for findings. */
import { expect } from 'vitest'
import { FindingPage } from '../../src/internal/views/findings/finding.js'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/kits.js'
import { createSubject, get, type RouterOptions } from './subject.js'
import { call, connection, NOW } from './world.js'

export const at = (ms: number) => new Date(NOW + ms).toISOString()
export const desk = connection({ client_id: 'desk', instance_id: 'inst-1' })
export const gone = { user_id: 'alice', client_id: 'gone' }

/** A command as the fakes hold it, `ms` after its admission, without any further record. */
export const command = (over: object = {}, admittedAt = at(-60_000), deadlineAt = at(60_000)) => ({
  user_id: 'alice',
  client_id: 'desk',
  command_id: 'cmd-1',
  admission: { state: 'admitted' as const, at: admittedAt, scope_id: 'alice', deadline_at: deadlineAt },
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
  acknowledgement: { state: 'none' as const, at: null, instance_id: null },
  recovery: { count: 0, last_at: null, reason: null },
  terminal: null,
  ...over,
})
// Fakes go by a time of their own, at which a deadline of last year has passed.
export const PAST = '2025-06-01T00:00:00.000Z'
export const LONG_AGO = '2025-05-31T00:00:00.000Z'
export const overdue = command({}, LONG_AGO, PAST)
export const attempted = { count: 1, confirmed: 0, last_at: at(-59_000), last_node_id: 'node-1', last_outcome: null }
export const confirmed = { ...attempted, count: 2, confirmed: 2, last_outcome: 'handed_over' }
export const timedOut = { count: 1, last_at: at(-54_000), reason: 'ack_timeout' }
export const acknowledged = { state: 'acknowledged', at: at(-50_000), instance_id: 'inst-1' }

/** A command that used up its attempts for `instance`, admitted and ended `ms` before now. */
export function leftUnanswered(command_id: string, ms: number, over: object = {}, instance = 'inst-1') {
  const ended_at = at(-ms)
  const last = {
    number: 2,
    at: at(-ms - 5_000),
    node_id: 'node-1',
    instance_id: instance,
    outcome: 'timed_out' as const,
  }
  const items = [
    { ...last, number: 1, ended_at, reason: 'ack_timeout' },
    { ...last, ended_at, reason: 'ack_timeout' },
  ]
  const attempts = { ...confirmed, items, last_outcome: 'timed_out' }
  const terminal = { state: 'failed', at: ended_at, reason: 'attempts_exhausted' }
  return command({ command_id, attempts, recovery: timedOut, terminal, ...over }, at(-ms - 30_000))
}

export async function findingsOf(world: FakeWorld, query = '', options: RouterOptions = {}): Promise<FindingPage> {
  const router = createSubject({ inspectors: createFakeInspectors(world), ...options })
  const { status, body } = await get(router, `/findings${query}`)
  expect(status).toBe(200)
  return FindingPage.parse(body)
}

/** Findings about observed calls: a world with the finding, the same world without it, and the expected subject. */
export const CALL_CASES = {
  call_not_answered: [
    { calls: [call({ observed: true, answered_since: 'later' })] },
    {
      calls: [
        call({ observed: true, answered_since: 'earlier' }),
        call({ correlation_id: 'call-2', observed: true, answered_since: 'none' }),
        call({ correlation_id: 'call-3' }),
      ],
    },
    { correlation_id: 'call-1', user_id: 'alice', client_id: 'desk' },
  ],
  client_not_answering: [
    {
      connections: [desk],
      calls: [
        call({ observed: true, answered_since: 'earlier' }),
        call({ correlation_id: 'call-2', observed: true, answered_since: 'none' }),
        call({ correlation_id: 'call-3', observed: true, answered_since: 'none' }),
      ],
    },
    {
      connections: [desk],
      calls: [
        call({ observed: true, answered_since: 'earlier' }),
        call({ correlation_id: 'call-2', observed: true, answered_since: 'none', direction: 'to_server' }),
        call({ correlation_id: 'call-3', observed: true, answered_since: 'none', ...gone }),
        call({ correlation_id: 'call-4' }),
      ],
    },
    { user_id: 'alice', client_id: 'desk' },
  ],
  calls_lost_with_connection: [
    {
      endedCalls: [
        { correlation_id: 'call-1', observed: true, outcome: 'unanswered', connection_reason: 'ping_timeout' },
        { correlation_id: 'call-2', observed: true, outcome: 'unanswered', connection_reason: 'ping_timeout' },
      ],
    },
    {
      endedCalls: [
        { correlation_id: 'call-1', observed: true, outcome: 'unanswered', connection_reason: null },
        { correlation_id: 'call-2', observed: true, outcome: 'failed' },
        { correlation_id: 'call-3', outcome: 'timed_out' },
      ],
    },
    { reason: 'ping_timeout' },
  ],
} satisfies Record<string, [FakeWorld, FakeWorld, Record<string, string>]>
