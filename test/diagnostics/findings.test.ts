/** What `/findings` reports about contradicting sources: each kind provoked, next to a healthy world, and its bounds. */
import { describe, expect, it } from 'vitest'
import type { ConnectionFilter } from '../../src/internal/contract/connections.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { PageQuery } from '../../src/internal/contract/page.js'
import { Refusal } from '../../src/internal/refusal.js'
import { type Finding, FindingKind, FindingSummary } from '../../src/internal/views/findings/finding.js'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/kits.js'
import {
  acknowledged,
  at,
  attempted,
  CALL_CASES,
  command,
  confirmed,
  desk,
  findingsOf,
  gone,
  LONG_AGO,
  leftUnanswered,
  overdue,
  PAST,
  timedOut,
} from './finding-worlds.js'
import { createSubject, createWatched, expectProblem, get, type RouterOptions } from './subject.js'
import { browserWindow, call, connection, context, node } from './world.js'

type OfRecords = Exclude<FindingKind, 'counts_disagree' | 'store_evicts'>
/** By kind: a world with the finding, the same world without it, and the expected subject. */
const CASES: Record<OfRecords, [FakeWorld, FakeWorld, Record<string, string>]> = {
  command_overdue: [
    { delivery: { statuses: [overdue], nodes: [node()] } },
    // The loop has not passed since.
    { delivery: { statuses: [overdue], nodes: [node({ updated_at: PAST })] } },
    { user_id: 'alice', client_id: 'desk', command_id: 'cmd-1' },
  ],
  command_waiting_though_listened: [
    { connections: [desk], delivery: { statuses: [command()], nodes: [node()] } },
    // One before it is in the client's hands.
    {
      connections: [desk],
      delivery: { statuses: [command(), command({ command_id: 'cmd-0', attempts: attempted })], nodes: [node()] },
    },
    { user_id: 'alice', client_id: 'desk', command_id: 'cmd-1' },
  ],
  command_waiting_for_nobody: [
    { connections: [desk], delivery: { statuses: [command(gone)], nodes: [node()] } },
    { connections: [desk], delivery: { statuses: [command({}, at(-10))], nodes: [node()] } },
    { ...gone, command_id: 'cmd-1' },
  ],
  command_not_acknowledged: [
    { connections: [desk], delivery: { statuses: [command({ attempts: confirmed, recovery: timedOut })] } },
    {
      connections: [desk],
      delivery: {
        statuses: [
          // Its client is not connected.
          command({ ...gone, attempts: confirmed, recovery: timedOut }),
          // Its first attempt is still open.
          command({ command_id: 'cmd-2', attempts: confirmed }),
          // Its node failed, not its client.
          command({ command_id: 'cmd-3', attempts: confirmed, recovery: { ...timedOut, reason: 'lease_expired' } }),
          command({ command_id: 'cmd-4', attempts: confirmed, recovery: timedOut, acknowledgement: acknowledged }),
        ],
      },
    },
    { user_id: 'alice', client_id: 'desk', command_id: 'cmd-1' },
  ],
  client_not_acknowledging: [
    {
      connections: [desk],
      delivery: {
        statuses: [
          command({ command_id: 'cmd-0', attempts: confirmed, acknowledgement: acknowledged }),
          leftUnanswered('cmd-1', 40_000),
          leftUnanswered('cmd-2', 20_000),
          // These say nothing of the client.
          command(
            { command_id: 'cmd-3', terminal: { state: 'rejected', at: at(-9_000), reason: 'no_waiter' } },
            at(-9_000),
          ),
          leftUnanswered('cmd-4', 5_000, { terminal: { state: 'cancelled', at: at(-4_000), reason: 'cancelled' } }),
          command({ command_id: 'cmd-5', attempts: attempted }, at(-1_000)),
        ],
      },
    },
    {
      connections: [desk, connection({ client_id: 'tab', connection_id: 'conn-2', instance_id: 'inst-2' })],
      delivery: {
        statuses: [
          // Its client is not connected.
          leftUnanswered('cmd-1', 40_000, gone),
          // Its client is connected with another instance, which was not asked.
          leftUnanswered('cmd-2', 30_000, { client_id: 'tab' }),
          // Its client has acknowledged a later one.
          leftUnanswered('cmd-3', 20_000),
          command(
            { command_id: 'cmd-4', attempts: confirmed, acknowledgement: { ...acknowledged, at: at(-1_000) } },
            at(-2_000),
          ),
        ],
      },
    },
    { user_id: 'alice', client_id: 'desk' },
  ],
  reservation_without_command: [
    {
      delivery: {
        statuses: [command()],
        summary: { tracked_commands: 1 },
        tenants: [{ scope_id: 'leaky', reserved_commands: 1, oldest_deadline_at: PAST }],
        nodes: [node({ updated_at: PAST })],
      },
    },
    {
      delivery: {
        statuses: [overdue],
        summary: { tracked_commands: 1 },
        tenants: [{ scope_id: 'alice', reserved_commands: 1, oldest_deadline_at: PAST }],
        nodes: [node({ updated_at: PAST })],
      },
    },
    { scope_id: 'leaky' },
  ],
  silent_node_holds: [
    { delivery: { nodes: [node({ stale: true, connection_waiters: 3, active_drainers: null })] } },
    { delivery: { nodes: [node({ stale: true, connection_waiters: null, active_drainers: null })] } },
    { node_id: 'node-1' },
  ],
  session_without_connector: [
    {
      sessions: [{ session_id: 's-1', site_id: 'notes', state: 'active', connector: gone, connector_connected: false }],
    },
    {
      sessions: [
        { session_id: 's-1', site_id: 'notes', state: 'active', connector: gone, connector_connected: null },
        { session_id: 's-2', site_id: 'notes', state: 'closed', connector: gone, connector_connected: false },
      ],
    },
    { session_id: 's-1', site_id: 'notes' },
  ],
  call_overdue: [
    { calls: [call({ deadline_at: PAST, overdue: true })] },
    { calls: [call({ deadline_at: null }), call({ correlation_id: 'call-2' })] },
    { correlation_id: 'call-1', user_id: 'alice', client_id: 'desk' },
  ],
  call_to_superseded_instance: [
    { connections: [desk], calls: [call({ instance_id: 'inst-0' })] },
    {
      connections: [desk],
      calls: [
        call(),
        call({ correlation_id: 'call-2', instance_id: null }),
        call({ correlation_id: 'call-3', client_id: 'never-recorded' }),
      ],
    },
    { correlation_id: 'call-1', user_id: 'alice', client_id: 'desk' },
  ],
  ...CALL_CASES,
  worker_of_disconnected_client: [
    { connections: [desk], contexts: [context({ ...gone, task_id: 'task-1' })] },
    { connections: [desk], contexts: [context({ task_id: 'task-1' }), context({ ...gone, context_id: 'ctx-2' })] },
    { ...gone, context_id: 'ctx-1' },
  ],
  worker_lost_with_task: [
    { contexts: [context({ status: 'closed', status_reason: 'crashed', task_id: 'task-1' })] },
    {
      contexts: [
        context({ status: 'closed', status_reason: 'closed', task_id: 'task-1' }),
        context({ context_id: 'ctx-2', status: 'closed', status_reason: 'crashed' }),
        context({ context_id: 'ctx-3', task_id: 'task-1' }),
      ],
    },
    { user_id: 'alice', client_id: 'desk', context_id: 'ctx-1' },
  ],
  context_of_disconnected_client: [
    { connections: [desk], contexts: [context({ ...gone, status: 'active' })] },
    { connections: [desk], contexts: [context({ status: 'active' }), context({ ...gone, status: 'closed' })] },
    { ...gone, context_id: 'ctx-1' },
  ],
  window_of_disconnected_client: [
    { connections: [desk], browserWindows: [browserWindow(gone)] },
    { connections: [desk], browserWindows: [browserWindow(), browserWindow({ ...gone, status: 'closed' })] },
    { ...gone, window_id: 'win-1' },
  ],
}

describe.each(Object.entries(CASES))('%s', (kind, [bad, good, subject]) => {
  it('is found, with its evidence and its words', async () => {
    const { items, has_more } = await findingsOf(bad)
    expect(items.map((one) => [one.kind, one.subject])).toEqual([[kind, subject]])
    const [found] = items as [Finding]
    expect(found.finding_id.startsWith(`${kind}:`)).toBe(true)
    for (const { route, observed_at } of found.evidence) {
      expect(observed_at).toBe(at(0))
      // The named route exists.
      const shown = await get(createSubject({ inspectors: createFakeInspectors(bad) }), route)
      expect([route, shown.status]).toEqual([route, 200])
    }
    expect(found.means).not.toBe(found.does_not_mean)
    expect(has_more).toBe(false)
    // The same finding has the same id.
    expect((await findingsOf(bad)).items[0]?.finding_id).toBe(found.finding_id)
  })
  it('is not found where nothing contradicts', async () => {
    expect((await findingsOf(good)).items.filter((one) => one.kind === kind)).toEqual([])
  })
})

describe('a deadline', () => {
  it.each([
    'call_overdue',
    'reservation_without_command',
  ] as const)('has passed by the clock of its source, however far the clock of the router is behind: %s', async (kind) => {
    const [bad] = CASES[kind]
    const { items } = await findingsOf(bad, '', { now: () => Date.parse(LONG_AGO) })
    expect(items.map((one) => one.kind)).toEqual([kind])
  })

  it('has not passed by the clock of its source, however far the clock of the router is ahead', async () => {
    const deadline_at = at(0)
    const delivery = {
      statuses: [command({}, PAST, deadline_at)],
      tenants: [{ scope_id: 'alice', reserved_commands: 1, oldest_deadline_at: deadline_at }],
      nodes: [node()],
    }
    const inspectors = createFakeInspectors({ delivery, calls: [call({ deadline_at, overdue: false })] })
    const rpc = inspectors.rpc as NonNullable<Inspectors['rpc']>
    // It does not know the filter.
    const listPending: typeof rpc.listPending = (_filter, ...asked) => rpc.listPending({}, ...asked)
    const router = createSubject({
      inspectors: { ...inspectors, rpc: { ...rpc, listPending } },
      now: () => Date.parse(at(3_600_000)),
    })
    for (const kind of ['call_overdue', 'reservation_without_command']) {
      const { items } = (await get(router, `/findings?kind=${kind}`)).body as { items: Finding[] }
      expect(items).toEqual([])
    }
  })
})

it('a waiting command is found, also after an attempted one, if its client has no attached connection', async () => {
  const [, world] = CASES.command_waiting_though_listened
  const inspectors = createFakeInspectors(world)
  const { delivery } = inspectors
  const found = async (waits_for: 'client_not_attached' | 'turn') => {
    const listCommands: NonNullable<typeof delivery>['listCommands'] = async (...query) => {
      const page = await delivery?.listCommands?.(...query)
      if (!page) throw new Error('the world has commands')
      return { ...page, items: page.items.map((row) => (row.state === 'waiting' ? { ...row, waits_for } : row)) }
    }
    const changed = { ...inspectors, delivery: { ...delivery, listCommands } } as Inspectors
    const { body } = await get(createSubject({ inspectors: changed }), '/findings')
    return body.items.map(({ kind, subject }: Finding) => [kind, subject.command_id])
  }
  expect(await found('client_not_attached')).toEqual([['command_waiting_though_listened', 'cmd-1']])
  expect(await found('turn')).toEqual([])
})

describe('counts that disagree', () => {
  const world = (tracked: number, reserved: number): FakeWorld => ({
    delivery: {
      summary: { tracked_commands: tracked },
      tenants: [
        { scope_id: 'a', reserved_commands: reserved, oldest_deadline_at: at(9_000) },
        { scope_id: 'b', reserved_commands: 2, oldest_deadline_at: at(9_000) },
      ],
    },
  })

  it('are found', async () => {
    const { items } = await findingsOf(world(7, 4), '?kind=counts_disagree')
    expect(items).toMatchObject([
      {
        kind: 'counts_disagree',
        subject: { what: 'tracked_commands' },
        evidence: [{ fields: { tracked_commands: 7 } }, { fields: { tracked_commands: 6 } }],
      },
    ])
    expect((await findingsOf(world(6, 4), '?kind=counts_disagree')).items).toEqual([])
  })

  it('are not found where a list repeats a record, and what it finds counts once', async () => {
    const inspectors = createFakeInspectors({ calls: [call({ deadline_at: PAST, overdue: true })] })
    const rpc = inspectors.rpc as NonNullable<Inspectors['rpc']>
    const listPending: typeof rpc.listPending = async (...asked) => {
      const page = await rpc.listPending(...asked)
      return { ...page, items: [...page.items, ...page.items] }
    }
    const summary = () => ({ pending: 1, counters: {}, counting_since: null }) as never
    const router = createSubject({ inspectors: { rpc: { ...rpc, listPending, summary } } as never })
    const { items } = (await get(router, '/findings')).body as { items: Finding[] }
    expect(items.map(({ kind }) => kind)).toEqual(['call_overdue'])
    const { kinds } = FindingSummary.parse((await get(router, '/findings/summary')).body)
    expect(kinds.find(({ kind }) => kind === 'call_overdue')).toMatchObject({ count: 1 })
  })

  it('are not found of a system that has no scopes to count by', async () => {
    const delivery = { summary: { tracked_commands: 2 }, tenants: [] }
    expect((await findingsOf({ delivery }, '?kind=counts_disagree')).items).toEqual([])
  })

  /** A correlator that keeps no call and lists one, by what each reading of it says. */
  const correlator = (idOf: (nth: number) => string, openedBy: (nth: number) => number) => {
    const counters = { succeeded: 0, failed: 0, timed_out: 0, cancelled: 0, late: 0, foreign: 0 }
    const oldest = { oldest_started_at: null, oldest_age_ms: null, overdue: 0, counting_since: at(0) }
    let [lists, sums] = [0, 0]
    const one = () => call({ correlation_id: idOf(++lists), started_at: at(0), deadline_at: at(9_000) })
    const rpc = {
      listPending: () => ({ items: [one()], next_cursor: null, has_more: false }),
      getPending: () => null,
      summary: () => ({
        pending: 0,
        ...oldest,
        counters: { ...counters, opened: openedBy(++sums) },
        observed_at: at(0),
      }),
    }
    return { rpc } as unknown as Inspectors
  }

  it.each([
    ['are found of one that stays', () => 'c', () => 1, ['pending_calls']],
    ['are not found where what is listed comes and goes between two readings', (nth: number) => `c${nth}`, () => 1, []],
    ['are not found where something came and went between two readings', () => 'c', (nth: number) => nth, []],
  ])('%s', async (_, idOf, openedBy, expected) => {
    const router = createSubject({ inspectors: correlator(idOf, openedBy) })
    const { body } = await get(router, '/findings?kind=counts_disagree')
    expect(body.items.map(({ subject }: Finding) => subject.what)).toEqual(expected)
  })

  it('are not found while the numbers move', async () => {
    let tracked = 100
    const { router } = createWatched({ inspectors: createFakeInspectors(world(7, 4)) }, async ({ name, proceed }) => {
      const answer = (await proceed()) as object
      return name === 'delivery.summary' ? { ...answer, tracked_commands: tracked++ } : answer
    })
    expect((await get(router, '/findings?kind=counts_disagree')).body.items).toEqual([])
  })
})

describe('a client that is recorded at a node which is silent', () => {
  const silent = [node(), node({ node_id: 'node-2', stale: true, connection_waiters: 1 })]
  const there = { ...desk, node_id: 'node-2' }
  const statuses = [
    command(),
    command({ command_id: 'cmd-2', client_id: 'tab', attempts: confirmed, recovery: timedOut }),
  ]

  it('is not said to be connected: only the node is named', async () => {
    const connections = [there, { ...there, client_id: 'tab', connection_id: 'conn-tab' }]
    const { items } = await findingsOf({ connections, delivery: { statuses, nodes: silent } })
    expect(items.map(({ kind }) => kind)).toEqual(['silent_node_holds'])
  })

  it('is connected if it is so at another node', async () => {
    const connections = [{ ...desk, client_id: 'tab', connection_id: 'conn-tab', node_id: 'node-1' }]
    const { items } = await findingsOf({ connections, delivery: { statuses, nodes: silent } })
    expect(items.map(({ kind }) => kind)).toContain('command_not_acknowledged')
  })
})

describe('since when a command is not acknowledged', () => {
  const failedAt = (number: number, reason: string | null) => ({
    number,
    at: at(-60_000 + number),
    node_id: 'node-1',
    instance_id: 'inst-1',
    outcome: 'timed_out' as const,
    ended_at: at(-55_000 + number),
    reason,
  })
  it.each([
    [0, at(-54_998)],
    [1, null],
  ])('is the first attempt that failed, unless older ones are not listed: %i', async (omitted, since) => {
    const items = [failedAt(1, 'lease_expired'), failedAt(2, 'ack_timeout'), failedAt(3, 'ack_timeout')]
    const attempts = { ...confirmed, count: 3 + omitted, items, omitted }
    const statuses = [command({ attempts, recovery: { ...timedOut, count: 3 } })]
    const page = await findingsOf({ connections: [desk], delivery: { statuses, nodes: [node()] } })
    expect(page.items.map((found) => found.since)).toEqual([since])
  })
})

describe('/findings/summary', () => {
  async function summaryOf(world: FakeWorld, options: RouterOptions = {}) {
    const router = createSubject({ inspectors: createFakeInspectors(world), ...options })
    const { status, body } = await get(router, '/findings/summary')
    expect(status).toBe(200)
    const summary = FindingSummary.parse(body)
    return { ...summary, of: (kind: FindingKind) => summary.kinds.find((group) => group.kind === kind) }
  }
  const past = (seconds: number) => new Date(Date.parse(PAST) + 1_000 * seconds).toISOString()
  const statuses = [1, 2, 3].map((n) =>
    command({ command_id: `cmd-${n}`, attempts: { ...attempted, last_node_id: `node-${4 - n}` } }, LONG_AGO, past(-n)),
  )
  const world: FakeWorld = { connections: [desk], delivery: { statuses, nodes: [node()] } }

  it('counts each kind, with the oldest, its nodes and where it is explained', async () => {
    const { of, kinds, not_looked_for } = await summaryOf(world)
    const found = await findingsOf(world, '?kind=command_overdue')
    const oldest = found.items.find(({ subject }) => subject.command_id === 'cmd-3')
    expect(of('command_overdue')).toEqual({
      kind: 'command_overdue',
      count: 3,
      exact: true,
      oldest_since: past(-3),
      nodes: ['node-1', 'node-2', 'node-3'],
      sample: { ...oldest, evidence: expect.any(Array) },
      help: 'docs/findings.md#command_overdue',
    })
    expect(of('silent_node_holds')).toMatchObject({
      count: 0,
      exact: true,
      oldest_since: null,
      nodes: [],
      sample: null,
    })
    const named = [...kinds.map(({ kind }) => kind), ...not_looked_for]
    expect(named.sort()).toEqual([...FindingKind.options].sort())
    expect(not_looked_for).toContain('call_overdue')
  })

  it('says at least where a bound ended the walk', async () => {
    const calls = Array.from({ length: 300 }, (_, i) =>
      call({ correlation_id: `late-${i}`, deadline_at: PAST, overdue: true }),
    )
    const { of, completeness } = await summaryOf({ calls }, { limits: { examined: 100 } })
    expect(of('call_overdue')).toMatchObject({ count: 50, exact: false })
    expect(completeness.truncated_sources).toEqual(['rpc'])
    expect((await summaryOf({ calls: calls.slice(0, 150) })).of('call_overdue')).toMatchObject({
      count: 150,
      exact: true,
    })
  })

  it('reads the first 200 records of each list, however long it is', async () => {
    const reads = async (size: number) => {
      const calls = Array.from({ length: size }, (_, i) =>
        call({ correlation_id: `call-${i}`, instance_id: 'inst-0', deadline_at: PAST, overdue: i < 20 }),
      )
      const all = createFakeInspectors({ connections: [desk], calls })
      const read: string[] = []
      const { router } = createWatched({ inspectors: all }, ({ name, proceed }) => {
        read.push(name)
        return proceed()
      })
      return { read, body: FindingSummary.parse((await get(router, '/findings/summary')).body) }
    }
    const [small, large] = [await reads(600), await reads(6_000)]
    expect(large.read).toEqual(small.read)
    for (const { body } of [small, large]) {
      const of = (kind: FindingKind) => body.kinds.find((group) => group.kind === kind)
      expect(of('call_to_superseded_instance')).toMatchObject({ count: 200, exact: false })
      // Its own list has one page.
      expect(of('call_overdue')).toMatchObject({ count: 20, exact: true })
      expect(body.completeness.truncated_sources).toEqual(['rpc'])
    }
  })

  it('counts the kinds of other sources where one source has more than a request may read', async () => {
    const calls = Array.from({ length: 300 }, (_, i) => call({ correlation_id: `call-${i}` }))
    const contexts = [context({ context_id: 'ctx-1', status: 'active', ...gone })]
    const { of, completeness } = await summaryOf(
      { connections: [desk], calls, contexts },
      { limits: { examined: 100 } },
    )
    expect(completeness.truncated_sources).toEqual(['rpc'])
    expect(of('context_of_disconnected_client')).toMatchObject({ count: 1, exact: true })
    expect(of('call_to_superseded_instance')).toMatchObject({ count: 0, exact: false })
  })

  it('has no count of a kind whose source failed', async () => {
    const inspectors = createFakeInspectors({ ...world, calls: [call({ deadline_at: PAST })] })
    const router = createSubject({
      inspectors: {
        ...inspectors,
        rpc: { ...inspectors.rpc, listPending: () => Promise.reject(new Error('lost')) } as never,
      },
    })
    const { kinds } = FindingSummary.parse((await get(router, '/findings/summary')).body)
    const of = (kind: FindingKind) => kinds.find((group) => group.kind === kind)
    expect(of('call_overdue')).toMatchObject({ count: null, exact: false, sample: null })
    expect(of('command_overdue')).toMatchObject({ count: 3, exact: true })
  })
})

describe('/findings', () => {
  /** Contexts of clients that are gone, each behind healthy ones. */
  const crowd = (count: number): FakeWorld => ({
    connections: [desk],
    contexts: Array.from({ length: count }, (_, i) =>
      context({ context_id: `ctx-${i}`, status: 'active', ...(i % 3 === 0 ? gone : {}) }),
    ),
  })

  it('tells what it sees twice, and not what has passed by the second look', async () => {
    let looks = 0
    const { router } = createWatched({ inspectors: createFakeInspectors(crowd(4)) }, async ({ name, proceed }) => {
      const answer = await proceed()
      if (name !== 'contextRegistry.listContexts') return answer
      const { items } = answer as { items: { context_id: string }[] }
      // By the second look one of the two has been closed.
      return { ...(answer as object), items: looks++ < 2 ? items : items.filter((one) => one.context_id !== 'ctx-0') }
    })
    const { body } = await get(router, '/findings')
    expect(body.items.map(({ subject }: Finding) => subject.context_id)).toEqual(['ctx-3'])
  })

  it('is walked page by page: each finding once, none left out', async () => {
    const found: string[] = []
    let cursor = ''
    do {
      const page = await findingsOf(crowd(300), `?limit=30${cursor}`)
      expect(page.items.length).toBeLessThanOrEqual(30)
      found.push(...page.items.map(({ subject }) => subject.context_id as string))
      cursor = page.has_more ? `&cursor=${page.next_cursor}` : ''
    } while (cursor !== '')
    expect(found).toEqual(Array.from({ length: 100 }, (_, i) => `ctx-${3 * i}`))
  })

  it('comes to its end within any bound on what it may examine', async () => {
    const world = crowd(60)
    for (const examined of [1, 2, 7, 50]) {
      let pages = 0
      let cursor = ''
      const seen = new Set<string>()
      do {
        const page = await findingsOf(world, `?limit=5${cursor}`, { limits: { examined } })
        for (const [source, count] of Object.entries(page.completeness.examined))
          expect([source, count <= examined + 1]).toEqual([source, true])
        for (const { finding_id } of page.items) seen.add(finding_id)
        cursor = page.has_more ? `&cursor=${page.next_cursor}` : ''
      } while (cursor !== '' && ++pages < 1_000)
      expect(pages).toBeLessThan(1_000)
      expect([examined, seen.size]).toEqual([examined, 20])
    }
  })

  it('reads the registry once per page of contexts, for any number of users, and since when for some', async () => {
    const contexts = Array.from({ length: 200 }, (_, i) =>
      context({ context_id: `ctx-${i}`, status: 'active', client_id: `c-${i}` }),
    )
    const { router, calls } = createWatched({ inspectors: createFakeInspectors({ connections: [desk], contexts }) })
    await get(router, '/findings?kind=context_of_disconnected_client&limit=500')
    const registry = calls.filter(({ name }) => name.startsWith('registry')).map(({ name }) => name)
    expect(registry.filter((name) => name === 'registry.currentInstances')).toHaveLength(2)
    expect(registry.filter((name) => name === 'registry.listConnections')).toHaveLength(20)
  })

  it('asks a registry that names no holders for each client, and finds the same', async () => {
    const inspectors = createFakeInspectors(crowd(6))
    const { listConnections, getConnection } = inspectors.registry as NonNullable<Inspectors['registry']>
    const registry = {
      listConnections: (filter: ConnectionFilter, page: PageQuery, ask: never) => listConnections(filter, page, ask),
      getConnection,
    }
    const router = createSubject({ inspectors: { ...inspectors, registry } })
    const { body } = await get(router, '/findings')
    expect(body.items).toHaveLength(2)
  })

  it('names the kinds that it cannot look for, and the source that failed', async () => {
    const absent = await findingsOf({ connections: [desk], contexts: [context()] })
    expect(absent.not_looked_for).toEqual(FindingKind.options.filter((kind) => !/^(context|worker|store)_/.test(kind)))
    const { router } = createWatched({}, ({ name, proceed }) => {
      if (name.startsWith('rpc')) throw new Refusal('unavailable')
      return proceed()
    })
    const { status, body } = await get(router, '/findings')
    expect(status).toBe(200)
    expect(body.completeness).toMatchObject({ complete: false, truncated_sources: ['rpc'] })
    expect(body.not_looked_for).toEqual([])
  })

  it('refuses an invalid cursor and an unknown kind', async () => {
    const router = createSubject({ inspectors: createFakeInspectors(crowd(60)) })
    const { body } = await get(router, '/findings?limit=5')
    expect(body.has_more).toBe(true)
    expectProblem(await get(router, `/findings?limit=5&cursor=${body.next_cursor}x`), 422, 'invalid_cursor')
    expectProblem(await get(router, '/findings?kind=nope'), 422, 'invalid_query')
  })

  it('names a source that hangs, and says what the others show', async () => {
    const { router } = createWatched(
      {
        inspectors: createFakeInspectors({
          connections: [],
          contexts: [context({ ...gone, status: 'active' })],
          calls: [],
        }),
      },
      ({ name, proceed }) => (name.startsWith('rpc') ? new Promise(() => {}) : proceed()),
    )
    const { status, body } = await get(router, '/findings')
    expect(status).toBe(200)
    expect(body.completeness).toMatchObject({ complete: false, truncated_sources: ['rpc'] })
    expect(body.items.map(({ kind }: Finding) => kind)).toContain('context_of_disconnected_client')
  })
})
