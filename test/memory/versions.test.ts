/** The versions of live objects: another after every write and after all that passes by silence, the same after nothing. */
import { describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { Versioned } from '../../src/internal/contract/page.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { ASK, createClock } from '../contract/clock.js'
import { writesOf } from '../contract/versions.js'
import { createSubject, get } from '../diagnostics/subject.js'

const LISTS = [
  '/connections',
  '/contexts',
  '/contexts/count',
  '/browser-windows',
  '/rpc/pending',
  '/rpc/pending?overdue=true',
  '/users',
  '/actions',
  '/workers?user_id=ann',
  '/history/streams',
  '/delivery/commands',
  '/delivery/commands?overdue=true',
  '/delivery/tenants',
  '/sites',
  '/sessions',
  '/subscriptions',
]

const bare = (inspectors: Inspectors): Inspectors =>
  Object.fromEntries(Object.entries(inspectors).map(([name, one]) => [name, { ...one, version: undefined }]))

/** Facilities, and whatever ETags depend on: their versions and results. */
function createTagged() {
  const clock = createClock()
  const facilities = createMemoryFacilities({ now: clock.now })
  const { inspectors, deployment } = memoryComposition(facilities)
  const routers = [inspectors, bare(inspectors)].map((some) =>
    createSubject({ inspectors: some, deployment, now: clock.now, onError: null } as never),
  )
  const read = () =>
    Promise.all(
      LISTS.map(async (path) => {
        const [said, answered] = await Promise.all(
          routers.map(async (router) => (await get(router, path)).headers.get('etag')),
        )
        return { path, said, answered }
      }),
    )
  let before: Awaited<ReturnType<typeof read>> | undefined
  return {
    clock,
    facilities,
    inspectors,
    /** Compares versions with results, and returns how many lists have changed. */
    async hold(what: string): Promise<number> {
      const now = await read()
      const changed = now.filter(({ answered }, i) => answered !== before?.[i]?.answered)
      const unsaid = now.filter(
        ({ said, answered }, i) => answered !== before?.[i]?.answered && said === before?.[i]?.said,
      )
      expect([what, unsaid.map(({ path }) => path)]).toEqual([what, []])
      before = now
      return changed.length
    },
    async isQuiet(what: string): Promise<void> {
      const now = await read()
      expect([what, now]).toEqual([what, before])
    },
  }
}

describe('the versions of live objects', () => {
  it('change after every write, and not without one', async () => {
    const { facilities, inspectors, hold, isQuiet, clock } = createTagged()
    await hold('the beginning')
    for (const { what, family, act } of writesOf(facilities)) {
      const { version } = inspectors[family] as Required<Versioned>
      const was = await version(ASK)
      clock.advance(7)
      await act()
      expect([what, (await version(ASK)) === was]).toEqual([what, false])
      expect([what, (await hold(what)) > 0]).toEqual([what, true])
      await isQuiet(what)
    }
    await facilities.close()
  })

  it('change after every expiry, and after the clock is set back', async () => {
    const { facilities, hold, isQuiet, clock } = createTagged()
    const { connections, contexts, browserWindows, dispatcher, rpc, sessions, sites } = facilities
    for (const i of [1, 2, 3]) {
      const client = { user_id: 'ann', client_id: `c-${i}` }
      const instance = { ...client, instance_id: 'i', client_type: 'web' } as const
      await connections.connect(instance)
      await contexts.report({ ...instance, context_id: `x-${i}`, status: 'active' })
      await browserWindows.report({ ...client, window_id: `w-${i}`, focused: true, state: 'normal' })
      await dispatcher.dispatch({ ...client, command_id: 'k', action: 'a', deadline_ms: i * 40_000 })
      ;(await rpc.open({ ...client, action: 'a', timeout_ms: i * 50_000 })).result.catch(() => {})
      await sites.put({ site_id: `s-${i}`, owner: 'ann', mode: 'observe' })
      const { session_id } = await sessions.open({ site_id: `s-${i}`, owner: 'ann', ttl_ms: i * 60_000 })
      const expires_at = new Date(clock.now() + i * 20_000).toISOString()
      await sessions.share(session_id, { user_id: 'bob', rights: ['view'], expires_at })
      clock.advance(1_500)
    }
    await hold('the beginning')
    let changes = 0
    const steps = [...Array.from({ length: 40 }, () => 9_998), -330_000, ...Array.from({ length: 30 }, () => 10_006)]
    for (const step of [...steps, ...Array.from({ length: 12 }, () => 600_000), -3_600_000, 1, 3_600_000]) {
      clock.advance(step)
      // Its loop would do this in real time; here it has nothing left to do.
      await dispatcher.reconcile()
      const changed = await hold(`${step} ms`)
      if (changed > 0) await isQuiet(`${step} ms`)
      changes += changed
    }
    expect(changes).toBeGreaterThan(30)
    await facilities.close()
  })

  it('change when a viewer stream falls behind', async () => {
    const { facilities, hold, isQuiet } = createTagged()
    const state = { pending: 0, dropped: 0, last_position: 'e:1', last_taken_at: null }
    const opened_at = '2026-01-01T00:00:00.000Z'
    const ids = { subscription_id: 's', session_id: 'x', site_id: 'notes', user_id: 'ann' }
    facilities.subscriptions.add({ ...ids, opened_at, state: () => state })
    await hold('the beginning')
    await isQuiet('nothing')
    state.pending = 3
    expect(await hold('an event that waits')).toBeGreaterThan(0)
    for (let i = 0; i < 101; i++)
      facilities.subscriptions.add({ ...ids, subscription_id: `s-${i}`, opened_at, state: () => state })
    await hold('many')
    state.pending = 4
    expect(await hold('an event that waits for one of many')).toBeGreaterThan(0)
    await facilities.close()
  })
})
