/** What `from` and `to` promise of connections, commands and ended calls, whatever keeps them. */
import { describe, expect, it } from 'vitest'
import { type Awaitable, Order, type Page, type PageQuery } from '../../src/internal/contract/page.js'
import type { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import type { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { ASK, type Clock, createClock, walk } from './clock.js'
import { eventually } from './delivery-commands.js'

type Facilities = Pick<
  ReturnType<typeof createMemoryFacilities> | ReturnType<typeof createRedisFacilities>,
  'connections' | 'dispatcher' | 'rpc' | 'close'
>

interface Span {
  from?: string | undefined
  to?: string | undefined
}

/** A record: when it began, and when it ended, if it has. */
interface Life {
  id: string
  began: string
  ended: string | null
}

/** One list: how an entry begins and ends, and what it shows. */
interface Listed {
  /** Over 60 s an entry that `isShort` ends by itself. */
  begin(i: number, isShort: boolean): Promise<string>
  end(id: string, i: number): Awaitable<unknown>
  /** Keeps an open entry from ending, if it ends by silence. */
  keep?(id: string): Awaitable<unknown>
  /** Makes the store notice what is past its time. */
  pass?(i: number): Awaitable<unknown>
  lives(span: Span, page: PageQuery, ask?: typeof ASK): Promise<Page<Life>>
}

async function toLives<T>(page: Awaitable<Page<T>> | undefined, toLife: (item: T) => Life): Promise<Page<Life>> {
  const { items, ...rest } = (await page) as Page<T>
  return { ...rest, items: items.map(toLife) }
}

/** Each entry is another user's: over a shared store they are in all shards. */
const clientOf = (i: number) => ({ user_id: `user-${i}`, client_id: 'desk' })

const LISTS: Record<string, (facilities: Facilities) => Listed> = {
  '/connections': ({ connections }) => ({
    async begin(i) {
      const connected = await connections.connect({ ...clientOf(i), instance_id: 'i', client_type: 'web' })
      return connected.connection_id
    },
    end: (id) => connections.disconnect(id),
    keep: (id) => connections.heartbeat(id),
    lives: (span, page, ask = ASK) =>
      toLives(connections.inspector.listConnections(span, page, ask), (one) => ({
        id: one.connection_id,
        began: one.connected_at as string,
        ended: one.disconnected_at as string | null,
      })),
  }),
  '/delivery/commands': ({ dispatcher }) => ({
    async begin(i, isShort) {
      const command = { ...clientOf(i), command_id: `c-${i}`, action: 'open', payload: {} }
      await dispatcher.dispatch({ ...command, deadline_ms: isShort ? 60_000 : 600_000 })
      return `c-${i}`
    },
    end: (command_id, i) => dispatcher.cancel({ ...clientOf(i), command_id }),
    pass: () => dispatcher.reconcile(),
    lives: (span, page, ask = ASK) =>
      toLives(dispatcher.inspector.listCommands?.(span, page, ask), ({ command_id, admission, terminal }) => ({
        id: command_id,
        began: admission?.at as string,
        ended: terminal?.at ?? null,
      })),
  }),
  '/rpc/ended': ({ rpc }) => {
    async function begin(i: number, isShort: boolean) {
      const { correlation_id, result } = await rpc.open({
        ...clientOf(i),
        action: 'open',
        timeout_ms: isShort ? 60_000 : 600_000,
      })
      result.catch(() => {})
      return correlation_id
    }
    return {
      begin,
      end: (id) => rpc.settle(id, { ok: true, result: null }),
      pass: (i) => begin(i, false),
      lives: (span, page, ask = ASK) =>
        toLives(rpc.inspector.listEnded?.(span, page, ask), (one) => ({
          id: one.correlation_id,
          began: one.started_at as string,
          ended: one.ended_at as string,
        })),
    }
  },
}

const WAYS = ['ended', 'expired', 'open'] as const

/** @param make Facilities over an empty store. */
export function spanBattery(name: string, make: (clock: Clock) => Facilities): void {
  describe.each(Object.entries(LISTS))(`a span of %s in ${name}`, (path, listOf) => {
    /** Entries that began 10 ms apart. Every third was ended, one expired and one is open. */
    async function lived(entries: number) {
      const clock = createClock()
      const facilities = make(clock)
      const list = listOf(facilities)
      const ids: string[] = []
      const each = async (way: (typeof WAYS)[number], act: (id: string, i: number) => unknown) => {
        for (const [i, id] of ids.entries()) if (WAYS[i % 3] === way) await act(id, i)
      }
      for (let i = 0; i < entries; i++) {
        clock.advance(10)
        ids.push(await list.begin(i, WAYS[i % 3] === 'expired'))
      }
      await each('ended', (id, i) => {
        clock.advance(10)
        return list.end(id, i)
      })
      for (let i = 0; i < 2; i++) {
        clock.advance(60_000)
        await each('open', (id) => list.keep?.(id))
      }
      await each('expired', (_id, i) => list.pass?.(i))
      const listed = (span: Span, limit: number, order: Order, ask = ASK) =>
        walk((page) => list.lives(span, { ...page, order }, ask), limit)
      const all = await eventuallyAll()
      return { facilities, list, ids, listed, all, close: () => facilities.close() }

      async function eventuallyAll(): Promise<Life[]> {
        let found: Life[] = []
        const count = (way: (typeof WAYS)[number]) => ids.filter((_, i) => WAYS[i % 3] === way).length
        await eventually(async () => {
          found = await listed({}, 100, 'oldest')
          expect(found.filter(({ ended }) => ended !== null)).toHaveLength(count('ended') + count('expired'))
        })
        expect(found.filter(({ ended }) => ended === null)).toHaveLength(path === '/rpc/ended' ? 0 : count('open'))
        return found
      }
    }

    const shift = (at: string, ms: number) => new Date(Date.parse(at) + ms).toISOString()

    it('has what existed in it, both instants included, in either order and page by page', async () => {
      const { ids, all, listed, close } = await lived(14)
      const life = (i: number) => all.find(({ id }) => id === ids[i]) as Life
      const [cancelled, expired] = [life(6), life(4)] as const
      const instants = [life(0).began, life(7).began, cancelled.began, cancelled.ended, expired.ended] as string[]
      const inOrder = { oldest: all.map(({ id }) => id), newest: all.map(({ id }) => id).reverse() }
      const bounds = [undefined, ...instants.flatMap((at) => [shift(at, -1), at, shift(at, 1)])]
      for (const from of bounds)
        for (const to of bounds) {
          if (from !== undefined && to !== undefined && from > to) continue
          const expected = all
            .filter(({ began }) => to === undefined || began <= to)
            .filter(({ ended }) => from === undefined || ended === null || ended >= from)
          const wanted = new Set(expected.map(({ id }) => id))
          for (const order of Order.options) {
            const found = (await listed({ from, to }, 3, order)).map(({ id }) => id)
            expect(found, `${from} to ${to}`).toEqual(inOrder[order].filter((id) => wanted.has(id)))
          }
        }
      const has = async (span: Span) => (await listed(span, 3, 'newest')).some(({ id }) => id === cancelled.id)
      expect(await has({ from: cancelled.ended as string })).toBe(true)
      expect(await has({ from: shift(cancelled.ended as string, 1) })).toBe(false)
      expect(await has({ to: cancelled.began })).toBe(true)
      expect(await has({ to: shift(cancelled.began, -1) })).toBe(false)
      await close()
    })

    it.each(Order.options)('is found beyond a page and beyond the scan limit, the %s first', async (order) => {
      const { all, listed, close } = await lived(150)
      const ends = all.flatMap(({ ended }) => ended ?? []).sort()
      const [to, from] = [(all[2] as Life).began, ends[ends.length >> 1] as string]
      const early = all.filter(({ began }) => began <= to)
      const late = all.filter(({ ended }) => ended === null || ended >= from)
      const under = (span: Span) => listed(span, 40, order, { ...ASK, limits: { examined: 30 } })
      const ordered = (lives: Life[]) => (order === 'newest' ? lives.toReversed() : lives)
      expect(await under({ to })).toEqual(ordered(early))
      expect(await under({ from })).toEqual(ordered(late))
      expect(late.length).toBeGreaterThan(40)
      await close()
    })

    it('applies to a filter by user, and to counts', async () => {
      const { facilities, all, ids, close } = await lived(14)
      const { began, ended } = all.find(({ id }) => id === ids[6]) as Life
      const user_id = clientOf(6).user_id
      const { connections, dispatcher, rpc } = facilities
      const page = { limit: 5, cursor: null }
      const sizeUnder = async (span: Span) => {
        const filter = { ...span, user_id }
        if (path === '/connections') {
          const counted = await connections.inspector.countConnections?.(filter, ASK)
          const { items } = await connections.inspector.listConnections(filter, page, ASK)
          expect(counted?.total ?? items.length).toBe(items.length)
          return items.length
        }
        if (path === '/rpc/ended') return (await rpc.inspector.listEnded?.(filter, page, ASK))?.items.length
        return (await dispatcher.inspector.listCommands?.(filter, page, ASK))?.items.length
      }
      expect(await sizeUnder({ from: began, to: began })).toBe(1)
      expect(await sizeUnder({ from: ended as string, to: ended as string })).toBe(1)
      expect(await sizeUnder({ from: shift(ended as string, 1) })).toBe(0)
      expect(await sizeUnder({ to: shift(began, -1) })).toBe(0)
      await close()
    })
  })
}
