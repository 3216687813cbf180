/** Live objects that hold more than a request may look at, what has died in front of what lives. */
import { describe, expect, it } from 'vitest'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createClock } from '../contract/clock.js'

// What one look sweeps of what has died: a world with more of it is still behind when it is asked.
const SWEPT = 10_000

async function createWorld(dead: number, examined = 10_000) {
  const clock = createClock()
  const facilities = createMemoryFacilities({ now: clock.now })
  const { connections, contexts, browserWindows } = facilities
  const client = (i: number) => ({ user_id: `a${i % 50}`, client_id: `c${i}`, client_type: 'browser' as const })
  for (let i = 0; i < dead; i++) {
    await connections.connect({ ...client(i), instance_id: 'i', actions: ['gone'] })
    await contexts.report({ ...client(i), context_id: `t${i}`, status: 'idle', window_id: 'w', ownership: 'worker' })
  }
  clock.advance(100_000)
  const mine = { user_id: 'zoe', client_id: 'desk' }
  await connections.connect({ ...mine, instance_id: 'i', client_type: 'web', actions: ['here'] })
  await contexts.report({
    ...mine,
    context_id: 'z',
    client_type: 'web',
    status: 'idle',
    window_id: 'w',
    ownership: 'worker',
  })
  await browserWindows.report({ ...mine, window_id: 'w' })
  clock.advance(85_000)
  // For a busy machine: how much is looked at is held here, not how long it takes.
  const options = { auth: noopAuth(), limits: { examined }, deadlineMs: 120_000 }
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), ...options })
  const get = async (path: string) => (await router(new Request(`http://localhost${path}`))).json()
  return { get, close: () => facilities.close() }
}

describe.each([
  ['more dead than one look sweeps', 1.5 * SWEPT, 10_000],
  ['a lowered bound', 1.5 * SWEPT, 100],
])('a world with %s', (_, dead, examined) => {
  it('counts no dead client as connected, or reports the count as unknown', async () => {
    const { get, close } = await createWorld(dead, examined)
    const actions = await get('/actions')
    const names = actions.items.map((action: { name: string }) => action.name)
    expect(names).not.toContain('gone')
    if (actions.completeness.complete) expect(names).toEqual(['here'])
    expect(actions.completeness.examined.registry).toBeLessThanOrEqual(examined)
    await close()
  })

  it('reaches the living one in the end, and examines no more than it may on any page', async () => {
    const { get, close } = await createWorld(dead, examined)
    const users: string[] = []
    let cursor: string | null = null
    for (let pages = 0; pages < 2_000; pages++) {
      const page: Awaited<ReturnType<typeof get>> = await get(`/users?limit=20${cursor ? `&cursor=${cursor}` : ''}`)
      for (const cost of Object.values(page.completeness.examined)) expect(cost).toBeLessThanOrEqual(examined)
      users.push(...page.items.map((user: { user_id: string }) => user.user_id))
      cursor = page.next_cursor
      if (cursor === null) break
    }
    expect(cursor).toBeNull()
    expect(users).toContain('zoe')
    await close()
  })

  it("counts in a window its own client's contexts alone, or says that it does not know", async () => {
    const { get, close } = await createWorld(dead, examined)
    const { items } = await get('/browser-windows')
    expect(items).toMatchObject([{ window_id: 'w', worker_count: 1, idle_count: 1, counts_source: 'contexts' }])
    await close()
  })

  it('says of a count of what it could not look at that it is a sample', async () => {
    const { get, close } = await createWorld(dead, examined)
    const { total, completeness } = await get('/contexts/count')
    expect(completeness.examined.context_registry).toBeLessThanOrEqual(examined)
    if (completeness.complete) expect(total).toBe(1)
    await close()
  })
})
