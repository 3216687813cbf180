/** What every registry promises to each user, whatever the others do: a share of their own. */
import { describe, expect, it } from 'vitest'
import type { BrowserWindowRegistry } from '../../src/internal/contract/browser-windows.js'
import type { ContextRegistry } from '../../src/internal/contract/contexts.js'
import type { Awaitable } from '../../src/internal/contract/page.js'
import { ASK, type Clock, createClock, walk } from './clock.js'
import type { ConnectionFacility } from './connections.js'

const FULL = { code: 'capacity_exceeded' }
const BAD = [Number.NaN, 0, -1, 1.5, Number.POSITIVE_INFINITY]

interface ConnectionBounds {
  now: () => number
  maxConnections?: number
  maxConnectionsPerUser?: number
  maxDisconnected?: number
  heartbeatTimeoutMs?: number
  retentionMs?: number
}

export function connectionSharesBattery(
  name: string,
  make: (options: ConnectionBounds) => Awaitable<ConnectionFacility>,
): void {
  describe(`shares of connections in ${name}`, () => {
    const connect = (registry: ConnectionFacility, user_id: string, n: number, instance_id = 'i') =>
      registry.connect({ user_id, client_id: `c${n}`, instance_id, client_type: 'web' })

    it('refuses a user at its limit, and no other user, until one of its connections ends or expires', async () => {
      const clock = createClock()
      const registry = await make({ now: clock.now, maxConnections: 4, maxConnectionsPerUser: 2 })
      const first = await connect(registry, 'mallory', 1)
      await connect(registry, 'mallory', 2)
      await expect(connect(registry, 'mallory', 3)).rejects.toMatchObject(FULL)
      await connect(registry, 'alice', 1)
      await connect(registry, 'mallory', 2, 'again')
      await registry.disconnect(first.connection_id)
      await connect(registry, 'mallory', 3)
      await expect(connect(registry, 'mallory', 1)).rejects.toMatchObject(FULL)
      clock.advance(90_000)
      await connect(registry, 'mallory', 1)
    })

    it('limits one user to a tenth of the capacity by default', async () => {
      const registry = await make({ now: createClock().now, maxConnections: 30 })
      for (let n = 0; n < 3; n++) await connect(registry, 'mallory', n)
      await expect(connect(registry, 'mallory', 3)).rejects.toMatchObject(FULL)
      await connect(registry, 'alice', 0)
    })

    it('refuses all users when full, except for replacing their own connections', async () => {
      const registry = await make({ now: createClock().now, maxConnections: 3 })
      for (let n = 0; n < 3; n++) await connect(registry, `u${n}`, 0)
      await expect(connect(registry, 'alice', 0)).rejects.toMatchObject(FULL)
      await connect(registry, 'u1', 0, 'again')
    })

    it('evicts the oldest ended connections of the user with the most', async () => {
      const clock = createClock()
      const registry = await make({ now: clock.now, maxDisconnected: 4 })
      const end = async (user: string, n: number) => {
        await registry.disconnect((await connect(registry, user, n)).connection_id)
        clock.advance(1)
      }
      await end('alice', 0)
      for (let n = 0; n < 10; n++) await end('mallory', n)
      await end('bob', 0)
      const kept = await walk((page) => registry.inspector.listConnections({}, page, ASK))
      expect(kept.map(({ user_id, client_id }) => `${user_id} ${client_id}`).sort()).toEqual([
        'alice c0',
        'bob c0',
        'mallory c8',
        'mallory c9',
      ])
    })

    it.each(BAD)('is not made with a bound of %d', (value) => {
      const { now } = createClock()
      for (const option of [
        'maxConnections',
        'maxConnectionsPerUser',
        'maxDisconnected',
        'heartbeatTimeoutMs',
        'retentionMs',
      ])
        expect(() => make({ now, [option]: value })).toThrow(
          new RegExp(`^Invalid option "${option}": expected an integer from 1`),
        )
    })

    it('is not made to wait longer than a century', () => {
      expect(() => make({ now: Date.now, retentionMs: Number.MAX_SAFE_INTEGER })).toThrow(RangeError)
    })
  })
}

interface PresenceBounds {
  now: () => number
  ttlMs?: number
  maxEntries?: number
  maxEntriesPerUser?: number
}

type Reports = (user_id: string, id: string) => Awaitable<unknown>

/** `reports` reports an entry to the given facility. */
export function reportedSharesBattery<F extends Pick<ContextRegistry | BrowserWindowRegistry, 'close'>>(
  name: string,
  make: (options: PresenceBounds) => Awaitable<F>,
  reports: (facility: F) => Reports,
): void {
  describe(`shares of ${name}`, () => {
    async function start(bounds: Omit<PresenceBounds, 'now'>): Promise<{ clock: Clock; report: Reports }> {
      const clock = createClock()
      return { clock, report: reports(await make({ now: clock.now, ...bounds })) }
    }

    it('refuses a user at its limit, and no other user, until one of its entries leaves', async () => {
      const { clock, report } = await start({ ttlMs: 1_000, maxEntries: 4, maxEntriesPerUser: 2 })
      await report('mallory', 'm1')
      await report('mallory', 'm2')
      await expect((async () => report('mallory', 'm3'))()).rejects.toMatchObject(FULL)
      await report('mallory', 'm2')
      await report('alice', 'a1')
      clock.advance(2_000)
      await report('mallory', 'm3')
    })

    it('limits one user to a tenth of the capacity by default', async () => {
      const { report } = await start({ maxEntries: 30 })
      for (let n = 0; n < 3; n++) await report('mallory', `m${n}`)
      await expect((async () => report('mallory', 'm3'))()).rejects.toMatchObject(FULL)
      await report('alice', 'a1')
    })

    it('refuses new entries of all users when full', async () => {
      const { report } = await start({ maxEntries: 3 })
      for (let n = 0; n < 3; n++) await report(`u${n}`, `e${n}`)
      await expect((async () => report('alice', 'a1'))()).rejects.toMatchObject(FULL)
      await report('u1', 'e1')
    })

    it('lets another have the id of an entry that was refused', async () => {
      const { report } = await start({ maxEntries: 4, maxEntriesPerUser: 1 })
      await report('mallory', 'm1')
      await expect((async () => report('mallory', 'wanted'))()).rejects.toMatchObject(FULL)
      await report('alice', 'wanted')
    })

    it.each(BAD)('is not made with a bound of %d', (value) => {
      const { now } = createClock()
      for (const option of ['maxEntries', 'maxEntriesPerUser', 'ttlMs'])
        expect(() => make({ now, [option]: value })).toThrow(
          new RegExp(`^Invalid option "${option}": expected an integer from 1`),
        )
    })
  })
}
