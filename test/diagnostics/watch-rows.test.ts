/** The rows of a watched list, as the client that watches keeps them by the fields that the snapshot names. */
import { expect, it, vi } from 'vitest'
import { type WatchedRow, watch } from '../../src/browser/watch.js'
import type { Inspectors } from '../../src/contract/families.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { command } from './finding-worlds.js'
import { createSubject, get, KEY, ORIGIN, PREFIX } from './subject.js'
import { connection, NOW } from './world.js'

const TIMEOUT = { timeout: 60_000 }

const at = new Date(NOW).toISOString()
/** A command without a user, which differs from another with the same id only in its scope. */
const ofNobody = (scope_id: string) => ({
  ...command(),
  user_id: null,
  client_id: null,
  command_id: '1',
  state: 'waiting',
  overdue: false,
  waits_for: 'unknown',
  admission: { state: 'admitted', at, scope_id, deadline_at: null },
})

it('match a GET, including two commands without a user and with the same id, and are removed one by one', async () => {
  const items = [ofNobody('mail'), ofNobody('push')]
  const nothing = () => ({ items: [], next_cursor: null, has_more: false })
  const delivery = {
    summary: () => null,
    status: () => null,
    listTenants: nothing,
    listNodes: nothing,
    listCommands: () => ({ ...nothing(), items: [...items] }),
  }
  const router = createSubject({ inspectors: { delivery } as unknown as Inspectors })
  const left = new AbortController()
  let shown: readonly WatchedRow[] = []
  const watching = watch(`${ORIGIN}${PREFIX}/watch`, {
    views: ['/delivery/commands'],
    headers: { 'x-admin-key': KEY },
    signal: left.signal,
    fetch: async (input, init) => router(new Request(input as string, init)),
    onChange: (lists) => {
      shown = lists['/delivery/commands']?.items ?? []
    },
  })
  const isAsListed = async () => expect(shown).toEqual((await get(router, '/delivery/commands')).body.items)
  await vi.waitFor(async () => {
    expect(shown).toHaveLength(2)
    await isAsListed()
  }, TIMEOUT)
  items.reverse()
  await vi.waitFor(isAsListed, TIMEOUT)
  items.shift()
  await vi.waitFor(isAsListed, TIMEOUT)
  left.abort()
  await watching
})

it('stand where a GET shows them, new ones in front or at the end', async () => {
  const connections = [connection({ connection_id: 'c-0' }), connection({ connection_id: 'c-1' })]
  const router = createSubject({ inspectors: createFakeInspectors({ connections }) })
  const views = ['/connections?limit=5', '/connections?limit=5&order=oldest']
  const left = new AbortController()
  let shown: Readonly<Record<string, { items: readonly WatchedRow[] }>> = {}
  const watching = watch(`${ORIGIN}${PREFIX}/watch`, {
    views,
    headers: { 'x-admin-key': KEY },
    signal: left.signal,
    fetch: async (input, init) => router(new Request(input as string, init)),
    onChange: (lists) => {
      shown = lists as never
    },
  })
  const areAsListed = async () => {
    for (const view of views) expect(shown[view]?.items).toEqual((await get(router, view)).body.items)
  }
  await vi.waitFor(areAsListed)
  for (let i = 2; i < 9; i += 2) {
    connections.push(connection({ connection_id: `c-${i}` }), connection({ connection_id: `c-${i + 1}` }))
    connections.splice(1, 1, connection({ connection_id: 'c-1', client_id: `client-${i}` }))
    await vi.waitFor(areAsListed, { timeout: 10_000 })
  }
  left.abort()
  await watching
})
