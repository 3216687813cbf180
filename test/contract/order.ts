/** What `order` promises of every list, whatever keeps its entries, and a walk while these come, change and go. */
import { describe, expect, it } from 'vitest'
import { type Awaitable, Order, type Page, type PageQuery } from '../../src/internal/contract/page.js'
import type { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import type { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { ASK, type Clock, createClock, walk } from './clock.js'

type Facilities = Pick<
  ReturnType<typeof createMemoryFacilities> | ReturnType<typeof createRedisFacilities>,
  'connections' | 'contexts' | 'browserWindows' | 'rpc' | 'history' | 'sites' | 'sessions' | 'close'
>

/** One list: how an entry comes into it, changes and goes, and what it shows. */
interface Listed {
  /** @returns the id of the entry. */
  add(i: number): Promise<string>
  change(id: string, i: number): Awaitable<unknown>
  remove?(id: string): Awaitable<unknown>
  ids(page: PageQuery): Promise<Page<string>>
}

const toIds = async <T>(page: Awaitable<Page<T>> | undefined, idOf: (item: T) => string): Promise<Page<string>> => {
  const { items, ...rest } = (await page) as Page<T>
  return { ...rest, items: items.map(idOf) }
}

/** Each entry is another user's: over a shared store they are in all shards. */
const instanceOf = (i: number) => ({ user_id: `user-${i}`, client_id: 'desk', instance_id: 'i' })
const clientOf = (i: number) => ({ ...instanceOf(i), client_type: 'web' as const })

const LISTS: Record<string, (facilities: Facilities) => Listed> = {
  '/connections': ({ connections }) => ({
    add: async (i) => (await connections.connect(clientOf(i))).connection_id,
    change: (id) => connections.heartbeat(id),
    ids: (page) => toIds(connections.inspector.listConnections({}, page, ASK), (one) => one.connection_id),
  }),
  '/contexts': ({ contexts }) => ({
    add: async (i) => (await contexts.report({ ...clientOf(i), context_id: `c-${i}`, status: 'active' })).context_id,
    change: (id, i) => contexts.report({ ...clientOf(i), context_id: id, status: 'idle' }),
    ids: (page) => toIds(contexts.inspector.listContexts({}, page, ASK), (one) => one.context_id),
  }),
  '/browser-windows': ({ browserWindows }) => ({
    add: async (i) =>
      (await browserWindows.report({ user_id: `user-${i}`, client_id: 'desk', window_id: `w-${i}` })).window_id,
    change: (id, i) => browserWindows.report({ user_id: `user-${i}`, client_id: 'desk', window_id: id, focused: true }),
    ids: (page) => toIds(browserWindows.inspector.listBrowserWindows({}, page, ASK), (one) => one.window_id),
  }),
  '/rpc/pending': ({ rpc }) => ({
    async add(i) {
      const { correlation_id, result } = await rpc.open({ ...instanceOf(i), action: 'open' })
      result.catch(() => {})
      return correlation_id
    },
    change: () => {},
    remove: (id) => rpc.settle(id, { ok: true, result: null }),
    ids: (page) => toIds(rpc.inspector.listPending({}, page, ASK), (one) => one.correlation_id),
  }),
  '/history/streams': ({ history }) => {
    const append = (i: number, message_id: string) =>
      history.append({ ...instanceOf(i), message_id, stream: `users/user-${i}/log`, kind: 'event' })
    return {
      add: async (i) => (await append(i, 'first')).stream,
      change: (_id, i) => append(i, 'second'),
      ids: (page) => toIds(history.inspector.listStreams?.({}, page, ASK), (one) => one.stream),
    }
  },
  '/sessions': ({ sites, sessions }) => ({
    async add(i) {
      const site = { site_id: `site-${i}`, owner: `user-${i}` }
      await sites.put({ ...site, mode: 'observe' })
      return (await sessions.open(site)).session_id
    },
    change: (id, i) => sessions.share(id, { user_id: `guest-${i}`, rights: ['view'] }),
    ids: (page) => toIds(sessions.inspector.listSessions({}, page, ASK), (one) => one.session_id),
  }),
}

const ENTRIES = 14

/** @param make Facilities over an empty store. */
export function orderBattery(name: string, make: (clock: Clock) => Facilities): void {
  describe.each(Object.entries(LISTS))(`the order of %s in ${name}`, (_path, listOf) => {
    async function filled() {
      const clock = createClock()
      const facilities = make(clock)
      const list = listOf(facilities)
      const ids: string[] = []
      const add = async () => {
        clock.advance(10)
        ids.push(await list.add(ids.length))
      }
      for (let i = 0; i < ENTRIES; i++) await add()
      return { facilities, list, ids, add }
    }

    it('is by when the entries came in, whatever the size of a page', async () => {
      const { facilities, list, ids } = await filled()
      for (const [i, id] of ids.entries()) if (i % 3 === 0) await list.change(id, i)
      for (const limit of [1, 4, 100]) {
        expect(await walk((page) => list.ids({ ...page, order: 'oldest' }), limit)).toEqual(ids)
        expect(await walk((page) => list.ids({ ...page, order: 'newest' }), limit)).toEqual(ids.toReversed())
      }
      await facilities.close()
    })

    it.each(Order.options)('misses nothing that was there throughout a walk, the %s first', async (order) => {
      const { facilities, list, ids, add } = await filled()
      const there = [...ids]
      const removed = new Set<string>()
      let turn = 0
      const seen = await walk(async (page) => {
        const answer = await list.ids({ ...page, order })
        const i = turn++
        await add()
        await list.change(there[(5 * i) % ENTRIES] as string, (5 * i) % ENTRIES)
        const going = there[(3 * i) % ENTRIES] as string
        if (list.remove && !removed.has(going) && i < 4) {
          await list.remove(going)
          removed.add(going)
        }
        // A walk that meets each new entry would not end.
        return turn > ENTRIES ? { ...answer, has_more: false } : answer
      }, 2)
      expect(new Set(seen).size).toBe(seen.length)
      expect(there.filter((id) => !removed.has(id) && !seen.includes(id))).toEqual([])
      expect(seen.toSorted(byPlace)).toEqual(seen)
      await facilities.close()

      function byPlace(a: string, b: string): number {
        return (ids.indexOf(a) - ids.indexOf(b)) * (order === 'newest' ? -1 : 1)
      }
    })
  })
}
