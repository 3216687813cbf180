/** Contract suites over inspectors that know only what is required of them. */
import { describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { createFakeInspectors, inspectorContract } from '../../src/testing/index.js'
import { createWorld } from '../diagnostics/world.js'
import { bare, leavingOut } from './unknown.js'

const known = { commands: [{ user_id: '-', client_id: '-', command_id: 'cmd-1' }], users: ['alice'] }

describe.each<[string, () => Inspectors]>([
  ['null', () => createFakeInspectors(bare(createWorld()))],
  ['absent', () => leavingOut(createFakeInspectors(bare(createWorld())))],
])('a suite over records whose optional fields are %s', (_what, make) => {
  it('passes, and names the fields that it could not check', async () => {
    const reasons: string[] = []
    for (const { name, run } of inspectorContract(make, known))
      await run({ skip: (reason) => reasons.push(`${name.split(' ', 1)} ${reason}`) })
    expect(reasons.filter((reason) => reason.endsWith('not known'))).toMatchInlineSnapshot(`
      [
        "registry: not tested: client_type, node_id, ended_reason, last_seen_at, from, to: not known",
        "registry: not tested: node_id, reason: not known",
        "registry: not tested: opened, ended: not known",
        "registry: not tested: actions: not known",
        "contextRegistry: not tested: client_id, client_type, status_reason, ownership, window_id, task_id, updated_at: not known",
        "browserWindowRegistry: not tested: client_id, ownership, type, state, focused, incognito, draining: not known",
        "rpc: not tested: action, overdue, direction, observed: not known",
        "rpc: not tested: started_at: not known",
        "rpc: not tested: action, outcome, trace_id, direction, observed, from, to: not known",
        "rpc: not tested: pending, overdue, counters, oldest_started_at, oldest_age_ms: not known",
        "history: not tested: message_count, sequence: not known",
        "deduplicator: not tested: entries: not known",
        "delivery: not tested: tracked_commands, due_commands, waiting_for_client, by_state, by_reason, waits_for, latency: not known",
        "delivery: not tested: user_id, client_id, action, trace_id, overdue, from, to: not known",
        "delivery: not tested: admission, attempts, acknowledgement, overdue: not known",
        "delivery: not tested: tracked_commands, by_state, by_reason, waits_for, reserved_commands, waiting_commands: not known",
        "delivery: not tested: node_id: not known",
        "delivery: not tested: admitted, ended, open: not known",
        "sites: not tested: mode: not known",
        "subscriptions: not tested: site_id, node_id: not known",
      ]
    `)
  })
})

it('a suite passes no filter without a value', async () => {
  const filters: unknown[] = []
  const watch = (inspector: object) =>
    new Proxy(inspector, {
      get: (target, name) => {
        const method = Reflect.get(target, name)
        if (
          !String(name).startsWith('list') ||
          ['listNodes', 'listTenants', 'listConnectionHistory', 'listUserIds'].includes(String(name))
        )
          return method
        return (filter: object, ...rest: unknown[]) => filters.push(filter) && method(filter, ...rest)
      },
    })
  const inspectors = leavingOut(createFakeInspectors(bare(createWorld())))
  const watched = Object.fromEntries(Object.entries(inspectors).map(([name, one]) => [name, watch(one)]))
  for (const { run } of inspectorContract(() => watched, known)) await run()
  const values = filters.flatMap((filter) => Object.values(filter as object))
  expect(values).toContain('alice')
  expect(values).not.toContain(undefined)
})
