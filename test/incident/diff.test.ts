import { describe, expect, it } from 'vitest'
import { linesOf } from '../../src/cli/incident/diff.js'
import { type CaptureOptions, captureIncident } from '../../src/incident/capture.js'
import { compareRows } from '../../src/incident/compare.js'
import { diffIncidents, type RouteDiff } from '../../src/incident/index.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/index.js'
import { createSubject } from '../diagnostics/subject.js'
import { connection, createWorld, NOW, node } from '../diagnostics/world.js'
import { HEADERS as headers } from './subject.js'

const capture = (world: FakeWorld, now = NOW, options: CaptureOptions = {}) =>
  captureIncident(createSubject({ inspectors: createFakeInspectors(world), now: () => now }), { headers, ...options })

/** The world before a node was killed, and a minute later. */
async function aroundDeath(options: CaptureOptions = {}) {
  const before = createWorld()
  before.connections = [
    connection({ connection_id: 'on-1', client_id: 'one', node_id: 'node-1' }),
    connection({ connection_id: 'on-2', client_id: 'two', node_id: 'node-2' }),
  ]
  const after = createWorld()
  const ended = { disconnected_at: new Date(NOW + 50_000).toISOString(), ended_reason: 'heartbeat_lost' }
  after.connections = [
    connection({ connection_id: 'on-1', client_id: 'one', node_id: 'node-1', status: 'disconnected', ...ended }),
    connection({
      connection_id: 'on-2',
      client_id: 'two',
      node_id: 'node-2',
      last_seen_at: new Date(NOW + 59_000).toISOString(),
    }),
    connection({ connection_id: 'on-3', client_id: 'one', node_id: 'node-2' }),
  ]
  after.contexts = before.contexts?.slice(1)
  after.delivery = {
    ...after.delivery,
    nodes: [node({ stale: true, staleness_ms: 60_000 }), node({ node_id: 'node-2' }), node({ node_id: 'node-3' })],
  }
  return diffIncidents(await capture(before), await capture(after, NOW + 60_000, options))
}

const routeIn = ({ routes }: { routes: readonly RouteDiff[] }, route: string) =>
  routes.find((one) => one.route === route)

describe('diffIncidents', () => {
  it('tells what is new, gone and changed after a node was killed', async () => {
    const diff = await aroundDeath()
    expect(routeIn(diff, '/connections')).toEqual({
      route: '/connections',
      about: { 'on-1': 'alice/one', 'on-3': 'alice/one' },
      added: ['on-3'],
      gone: [],
      changed: [
        {
          id: 'on-1',
          fields: [
            { field: 'status', before: 'connected', after: 'disconnected' },
            { field: 'disconnected_at', before: null, after: expect.any(String) },
            { field: 'ended_reason', before: null, after: 'heartbeat_lost' },
          ],
        },
      ],
      unchanged: 1,
      unknown: [],
    })
    expect(routeIn(diff, '/contexts')).toMatchObject({ added: [], gone: ['ctx-1'] })
    expect(routeIn(diff, '/delivery/nodes')).toMatchObject({
      changed: [{ id: 'node-1', fields: expect.arrayContaining([{ field: 'stale', before: false, after: true }]) }],
    })
    expect(routeIn(diff, '/findings')?.added).toEqual(expect.arrayContaining([expect.stringContaining('node')]))
    expect(routeIn(diff, '/sites')).toBeUndefined()
  })

  it('reports rows as unknown if one of the two is incomplete', async () => {
    const diff = await aroundDeath({ user: 'bob' })
    expect(routeIn(diff, '/connections')).toMatchObject({
      added: [],
      gone: [],
      unknown: [{ in: 'b', ids: ['on-1', 'on-2'], why: 'other_users: only the rows of one user were captured' }],
    })
    expect([...linesOf(diff, 80)].join('\n')).toContain('? unknown for 2 rows: incomplete in b (other_users')
  })

  it('finds no difference between two captures of the same state', async () => {
    const diff = await diffIncidents(await capture(createWorld()), await capture(createWorld()))
    expect(diff.routes).toEqual([])
    expect([...linesOf(diff, 80)].at(-1)).toBe('no difference')
  })

  it('calls two deployments different only if both have an id', async () => {
    const diff = await diffIncidents(await capture(createWorld()), await capture(createWorld()))
    const at = new Date(NOW).toISOString()
    const linesFor = (a: string | null, b: string | null) => [
      ...linesOf({ ...diff, a: { deployment: a, at }, b: { deployment: b, at } }, 80),
    ]
    const missing = 'an id is missing: these may be different deployments'
    expect(linesFor(null, 'eu')).toEqual([
      `a: deployment without an id at ${at}`,
      `b: deployment "eu" at ${at}`,
      missing,
      'no difference',
    ])
    expect(linesFor(null, null)[2]).toBe(missing)
    expect(linesFor('us', 'eu')[2]).toBe('these are different deployments')
    expect(linesFor('eu', 'eu')[2]).toBe('no difference')
  })

  it('refuses files with different pseudonyms', async () => {
    const [one, other] = [await capture(createWorld(), NOW, { redact: true }), await capture(createWorld())]
    await expect(diffIncidents(one, other)).rejects.toThrow('different pseudonyms')
    expect((await diffIncidents(one, one)).routes).toEqual([])
  })

  it('prints ids with their user and client, fields and values', async () => {
    const lines = [...linesOf(await aroundDeath(), 80)]
    expect(lines).toEqual(
      expect.arrayContaining([
        '/connections: 1 new, 0 gone, 1 changed, 1 unchanged',
        '  + on-3 (alice/one)',
        '  - ctx-1 (alice/desk)',
      ]),
    )
    const row = lines.findIndex((line) => line.startsWith('  ~ on-1'))
    expect(lines.slice(row + 1)).toContain('      status "connected" → "disconnected"')
  })

  it('prints the entries that differ of two lists that are too wide for the terminal', async () => {
    const minute = (at: number, opened: number) => ({
      minute: `2026-01-02T03:0${at}:00.000Z`,
      opened,
      by: 'x'.repeat(50),
    })
    const [before, after] = [
      [minute(1, 1), minute(2, 2), minute(3, 3)],
      [minute(2, 2), minute(3, 4), minute(4, 0), minute(5, 0)],
    ]
    const { added, gone, changed, unchanged } = compareRows(
      new Map([['', { items: before }]]),
      new Map([['', { items: after }]]),
    )
    const route = { route: '/connections/churn', about: {}, added, gone, changed, unchanged, unknown: [] }
    const of = { deployment: 'eu', at: new Date(NOW).toISOString() }
    expect([...linesOf({ a: of, b: of, routes: [route] }, 80)].slice(2)).toEqual([
      '/connections/churn: 0 new, 0 gone, 1 changed, 0 unchanged',
      '      + items[2026-01-02T03:04:00.000Z]',
      '      + items[2026-01-02T03:05:00.000Z]',
      '      - items[2026-01-02T03:01:00.000Z]',
      '      items[2026-01-02T03:03:00.000Z].opened 3 → 4',
    ])
  })

  it('ignores what changes by the clock alone, also within a list', () => {
    const of = (age_ms: number) => new Map([['', { items: [{ minute: '1', age_ms }] }]])
    expect(compareRows(of(1), of(2))).toMatchObject({ changed: [], unchanged: 1 })
  })

  it('prints no whole record and no line that is wider than the terminal', async () => {
    const facilities = createMemoryFacilities()
    const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth() })
    const me = { user_id: 'bob', client_id: 'tv', instance_id: 'i' }
    const metadata = { note: 'x'.repeat(300), list: [1, 2] }
    await facilities.connections.connect({ ...me, client_type: 'web' })
    const delivered = new Promise<void>((resolve) => {
      void facilities.dispatcher.attach(me, async () => resolve())
    })
    await facilities.dispatcher.dispatch({ user_id: 'bob', client_id: 'tv', command_id: 'sync-1', action: 'sync' })
    await delivered
    const before = await captureIncident(router)
    await facilities.dispatcher.acknowledge({ ...me, command_id: 'sync-1' })
    await facilities.connections.connect({ ...me, client_type: 'web', metadata })
    const diff = await diffIncidents(before, await captureIncident(router))
    for (const width of [40, 80, 120]) {
      const lines = [...linesOf(diff, width)]
      expect(lines.filter((line) => [...line].length > width)).toEqual([])
      expect(lines).toContain('  ~ bob/tv/sync-1')
      expect(lines.join('\n')).not.toMatch(/deadline_at":/)
    }
    expect([...linesOf(diff, 80)]).toContain('      acknowledgement.state "none" → "acknowledged"')
    await facilities.close()
  })
})
