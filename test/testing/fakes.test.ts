/** Defaults of fake records: every field has one, and given fields override them. */
import { describe, expect, it } from 'vitest'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createFakeInspectors, type FakeWorld, inspectorContract } from '../../src/testing/index.js'
import { createWorld } from '../diagnostics/world.js'

/** Returns `value` with each list replaced by one empty record. */
function bared(value: unknown): unknown {
  if (Array.isArray(value)) return [{}]
  if (value === null || typeof value !== 'object') return undefined
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, bared(part)]))
}

const bare = () => bared(createWorld()) as Required<FakeWorld>

const ask = async (world: FakeWorld, path: string) => {
  const router = createDiagnosticsRouter({ inspectors: createFakeInspectors(world), auth: noopAuth() })
  const answer = await router(new Request(`http://relay${path}`))
  return { status: answer.status, body: await answer.json() }
}

describe('empty records', () => {
  // A direct loop: cases that this small world cannot show are not skipped tests.
  for (const { name, run } of inspectorContract(() => createFakeInspectors(bare()), {
    commands: [{ user_id: 'user-1', client_id: 'client-1', command_id: 'command-1' }],
    users: ['user-1'],
  }))
    it(name, async () => void (await run()))

  it.each([
    ['/connections/connection-1', { user_id: 'user-1', status: 'connected', metadata: {} }],
    ['/actions?limit=1', { items: [{ name: 'action-1', observed_connections: 0 }] }],
    ['/connections/connection-1/history', { items: [{ event: 'connected', reason: null }] }],
    ['/history/messages?stream=users/user-1/stream-1', { items: [{ message_id: 'message-1', sequence: 1 }] }],
    ['/history/streams', { items: [{ stream: 'users/user-1/stream-1', message_count: 1 }] }],
    ['/rpc/pending/call-1', { action: 'action-1', age_ms: 0 }],
    ['/connections/churn', { items: [{ minute: '2026-01-01T00:00:00.000Z', opened: 0, ended: {} }] }],
    ['/rpc/summary', { pending: 1, overdue: 0, counters: { opened: 1, succeeded: 0 } }],
    ['/rpc/instances/instance-1?user_id=user-1&client_id=client-1', { current: true }],
    ['/deduplicator/summary', { entries: 0, capacity: null }],
    ['/deduplicator/users/user-1', { duplicates: 0, oldest_at: null }],
    ['/contexts/context-1', { ownership: 'user-owned', task_id: null }],
    ['/browser-windows/window-1', { status: 'open', type: null }],
    ['/delivery/summary', { tracked_commands: 1, mode: 'direct', waits_for: { turn: 1 } }],
    ['/delivery/nodes', { items: [{ node_id: 'node-1', reconciliation_loop_alive: true, stale: false }] }],
    ['/delivery/commands?state=waiting', { items: [{ command_id: 'command-1', state: 'waiting', overdue: false }] }],
    ['/delivery/churn', { items: [{ minute: '2026-01-01T00:00:00.000Z', admitted: 0, open: null }] }],
    ['/delivery/mailboxes', { items: [{ instance_id: 'instance-1', node_id: null, waiting_commands: 1 }] }],
    ['/delivery/tenants', { items: [{ scope_id: 'scope-1', reserved_commands: 0 }] }],
    [
      '/delivery/status?user_id=user-1&client_id=client-1&command_id=command-1',
      { admission: { state: 'admitted', scope_id: 'user-1' }, terminal: null },
    ],
  ])('are whole at %s', async (path, expected) => {
    const { status, body } = await ask(bare(), path)
    expect([status, body]).toMatchObject([200, expected])
  })
})

describe('given fields', () => {
  it('override the defaults, which continue after them', async () => {
    const contexts = [{ user_id: 'ada' }, { task_id: 'task-7', instance_id: undefined }]
    expect((await ask({ contexts }, '/contexts?order=oldest')).body.items).toMatchObject([
      { context_id: 'context-1', user_id: 'ada', ownership: 'user-owned', task_assigned_at: null },
      { context_id: 'context-2', user_id: 'user-1', ownership: 'worker', task_assigned_at: expect.any(String) },
    ])
  })

  it('override fields of nested records, whose other fields keep their defaults', async () => {
    const statuses = [{ user_id: 'ada', attempts: { count: 2 }, terminal: { state: 'failed' as const } }]
    const { body } = await ask(
      { delivery: { statuses } },
      '/delivery/status?user_id=ada&client_id=client-1&command_id=command-1',
    )
    expect(body).toMatchObject({
      admission: { scope_id: 'ada' },
      attempts: { count: 2, confirmed: 0 },
      terminal: { state: 'failed', reason: null },
    })
  })

  it('returns a command without a user by its scope', async () => {
    const statuses = [{ user_id: null, client_id: null, admission: { scope_id: 'emails' } }]
    const path = (user: string) => `/delivery/status?user_id=${user}&client_id=emails&command_id=command-1`
    const { status, body } = await ask({ delivery: { statuses } }, path('emails'))
    expect([status, body]).toMatchObject([200, { user_id: null, client_id: null, command_id: 'command-1' }])
    expect((await ask({ delivery: { statuses } }, path('user-1'))).status).toBe(404)
  })

  it('returns the state of a command, and marks it overdue by a deadline before the default time', async () => {
    const statuses = [
      { attempts: { count: 1 }, admission: { deadline_at: '2025-12-31T23:59:59.000Z' } },
      { acknowledgement: { state: 'acknowledged' as const }, admission: { deadline_at: '2026-01-01T00:00:01.000Z' } },
    ]
    const world = { delivery: { statuses } }
    expect((await ask(world, '/delivery/commands?overdue=true')).body.items).toMatchObject([
      { command_id: 'command-1', state: 'attempted', overdue: true, terminal: null },
    ])
    expect((await ask(world, '/delivery/commands?overdue=false&scope_id=user-1')).body.items).toMatchObject([
      { command_id: 'command-2', state: 'acknowledged', overdue: false },
    ])
  })

  it('may be changed between two requests', async () => {
    const world: FakeWorld = { connections: [] }
    const inspectors = createFakeInspectors(world)
    const router = createDiagnosticsRouter({ inspectors, auth: noopAuth() })
    const statusOf = async () => (await router(new Request('http://relay/connections/connection-1'))).status
    expect(await statusOf()).toBe(404)
    world.connections?.push({ status: 'disconnected' })
    expect(await statusOf()).toBe(200)
  })

  it('reports unknown values for a silent node', async () => {
    const { body } = await ask({ delivery: { nodes: [{ stale: true }] } }, '/delivery/nodes')
    expect(body.items).toMatchObject([
      { reconciliation_loop_alive: null, active_drainers: null, connection_waiters: null },
    ])
  })

  it.each(['.', '..', 'a/b'])('has no command with the id %s, like a dispatcher', (command_id) => {
    const { delivery } = createFakeInspectors({ delivery: {} })
    const key = { user_id: 'user-1', client_id: 'client-1', command_id }
    const status = () => delivery?.status(key, { signal: new AbortController().signal })
    expect(status).toThrow(expect.objectContaining({ code: 'invalid_identity' }))
  })

  it('numbers the messages of each stream separately', async () => {
    const messages = [{}, { stream: 'users/ada/log', externalized: { bytes: 9 } }, {}]
    const of = async (stream: string) => (await ask({ messages }, `/history/messages?stream=${stream}`)).body.items
    expect(await of('users/user-1/stream-1')).toMatchObject([{ sequence: 1 }, { sequence: 2 }])
    expect(await of('users/ada/log')).toMatchObject([
      { sequence: 1, externalized: { ref: 'payload-1', bytes: 9, hydration: 'not_configured' } },
    ])
  })
})
