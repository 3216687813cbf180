/** The routers of both compositions return the same after the same calls of the memory and the shared-store dispatcher. */
import { expect, it } from 'vitest'
import type { Command } from '../../src/internal/contract/delivery-dispatch.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createConnectionRegistry } from '../../src/memory/connections/facility.js'
import { createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { type Clock, createClock } from '../contract/clock.js'
import { command, connection, eventually, first, key, second } from '../contract/delivery-commands.js'
import type { TestedDispatcher } from '../contract/delivery-subject.js'
import { describeStores } from './matrix.js'
import { get, type Router } from './router.js'

const SETTINGS = { nodeId: 'node', capacity: 6, ackTimeoutMs: 5_000 }
const IDS = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'r1', 'r2', 'none']
/** Fields that may differ between the compositions, by the contract. */
const DECLARED = ['deployment_id', 'mode', 'node_id', 'last_node_id', 'mailbox_listener_alive']

/** Takes commands through every possible outcome. */
async function live(dispatcher: TestedDispatcher, clock: Clock): Promise<void> {
  const advance = async (ms: number) => {
    clock.advance(ms)
    await dispatcher.reconcile()
  }
  const attempted = async (id: string, outcome: string, count = 1) =>
    eventually(async () => {
      const status = await dispatcher.inspector.status(key(id), { signal: new AbortController().signal })
      expect(status?.attempts).toMatchObject({ count, last_outcome: outcome })
    })
  const tab = connection(({ command_id, attempt }: Command) => {
    if (command_id === 'c2' && attempt === 1) throw new Error('gone')
    return undefined
  })
  await dispatcher.dispatch(command('r1', { require_waiter: true }))
  await dispatcher.attach(first, tab.deliver)
  for (const id of ['c1', 'c2', 'c3', 'c4']) {
    await dispatcher.dispatch(command(id, { scope_id: id < 'c3' ? 'ada' : 'team', deadline_ms: 60_000 }))
    await attempted(id, id === 'c2' ? 'rejected' : 'handed_over')
  }
  await dispatcher.dispatch(command('c1', { scope_id: 'ada', deadline_ms: 60_000 }))
  await expect(dispatcher.dispatch(command('c1', { action: 'other' }))).rejects.toThrow()
  await dispatcher.acknowledge({ ...first, command_id: 'c1' })
  await dispatcher.acknowledge({ ...first, command_id: 'c1' })
  await dispatcher.acknowledge({ ...second, command_id: 'c3' })
  await dispatcher.acknowledge({ ...first, command_id: 'c3', state: 'refused', reason: 'busy' })
  await dispatcher.acknowledge({ ...first, command_id: 'c9' })
  await advance(1_000)
  await attempted('c2', 'handed_over', 2)
  await dispatcher.settle({ ...key('c1'), state: 'resulted' })
  await dispatcher.settle({ ...key('c2'), state: 'failed', reason: 'No disk!' })
  await advance(5_000)
  await advance(300)
  await attempted('c4', 'handed_over', 2)
  for (const id of ['c5', 'c6', 'c7', 'c8'])
    await dispatcher.dispatch(command(id, { client_id: 'phone', deadline_ms: 1_000 * Number(id[1]), scope_id: id }))
  await dispatcher.cancel({ ...key('c5'), client_id: 'phone', reason: 'by_user' })
  await advance(6_000)
  for (let n = 0; n < 7; n++) await dispatcher.dispatch(command(`full${n}`, { client_id: 'phone', scope_id: 'full' }))
  await dispatcher.dispatch(command('r2', { client_id: 'phone', scope_id: 'full' }))
  clock.advance(250)
}

/** Filters of the list of commands. All commands are of one user, so both lists have one order. */
const FILTERS = ['', '&state=failed', '&state=rejected&user_id=ada', '&client_id=phone&scope_id=full', '&overdue=true']

async function walkAll(router: Router, path: string, filter = ''): Promise<unknown[]> {
  const items: unknown[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { status, body } = await get(router, `${path}?limit=2${filter}${cursor && `&cursor=${cursor}`}`)
    expect(status).toBe(200)
    items.push(...body.items)
    cursor = body.next_cursor
  }
  return items.map(strip)
}

const sorted = (items: unknown[]) => items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))

/** Returns `value` without the fields that may differ, with sorted keys. */
function strip(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).filter(([name]) => !DECLARED.includes(name))
  return Object.fromEntries(
    entries.map(([name, inner]) => [name, strip(inner)] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}

/** Reads the status of each command, why it has not ended, and the filtered lists. */
async function readCommands(router: Router) {
  const statuses = []
  for (const id of IDS)
    for (const client_id of ['tab', 'phone'])
      for (const route of ['status', 'why']) {
        const asked = new URLSearchParams({ user_id: 'ada', client_id, command_id: id })
        const { status, body } = await get(router, `/delivery/${route}?${asked}`)
        // How much was examined is a matter of each source.
        if (body.completeness) body.completeness.examined = null
        statuses.push([route, id, client_id, status, status === 200 ? strip(body) : body.code])
      }
  const lists = []
  for (const filter of FILTERS) lists.push([filter, await walkAll(router, '/delivery/commands', filter)])
  return { statuses, lists }
}

async function readAll(router: Router) {
  const bad = await get(router, '/delivery/status?user_id=ada&client_id=a%2Fb&command_id=c1')
  return {
    ...(await readCommands(router)),
    bad: [bad.status, bad.body.code],
    summary: strip((await get(router, '/delivery/summary')).body),
    tenants: sorted(await walkAll(router, '/delivery/tenants')),
    tenant: await walkAll(router, '/delivery/tenants', '&scope_id=full'),
    nodes: sorted(await walkAll(router, '/delivery/nodes')),
  }
}

describeStores('the delivery routes', (_kind, place) => {
  it('return the same over memory and over the store, except for declared differences', async () => {
    const told = []
    for (const store of ['memory', 'redis'] as const) {
      const clock = createClock()
      const where = { ...place(), now: clock.now }
      const dispatcher =
        store === 'memory'
          ? createCommandDispatcher({ ...SETTINGS, now: clock.now })
          : createRedisCommandDispatcher({ ...SETTINGS, ...where })
      try {
        await live(dispatcher, clock)
        await dispatcher.reconcile()
        // A node writes its heartbeat a moment after a change. Listing the nodes waits for the first one.
        await dispatcher.inspector.listNodes({ limit: 1, cursor: null }, { signal: new AbortController().signal })
        const connections = createConnectionRegistry({ now: clock.now })
        const composition =
          store === 'memory' ? memoryComposition({ connections, dispatcher }) : redisComposition(where)
        const router = createDiagnosticsRouter({ ...composition, auth: noopAuth(), now: clock.now })
        const now = await readAll(router)
        await dispatcher.close()
        // Past every deadline, with no node left to record the ends.
        clock.advance(60_000)
        told.push({ now, later: await readCommands(router) })
      } finally {
        await dispatcher.close()
      }
    }
    expect(told[1]).toEqual(told[0])
    expect(JSON.stringify(told[0]?.later.lists)).toContain('"overdue":true')
  })
})
