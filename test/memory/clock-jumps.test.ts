/**
 * The facilities of one process when the wall clock jumps: all results are consistent, and silence counts as real time.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createMemoryFacilities, type MemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { at, type Clock, createClock } from '../contract/clock.js'

const TEN_MINUTES = 600_000
const DAYS = 86_400_000

let clock: Clock
let facilities: MemoryFacilities
let router: ReturnType<typeof createDiagnosticsRouter>

beforeEach(() => {
  clock = createClock()
  facilities = createMemoryFacilities({ now: clock.now, dispatcher: { retentionMs: 90_000 } })
  router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth(), now: clock.now })
  return () => facilities.close()
})

async function get(path: string) {
  const response = await router(new Request(`http://localhost${path}`))
  return response.json()
}

/** A client that connects, shows a tab in a window, and sends a message. */
async function arrive(user_id: string) {
  const client = { user_id, client_id: 'c' }
  const instance = { ...client, instance_id: 'i', client_type: 'browser' } as const
  const { connection_id } = await facilities.connections.connect({ ...instance, actions: ['look'] })
  await facilities.contexts.report({ ...client, context_id: user_id, client_type: 'browser', status: 'idle' })
  await facilities.browserWindows.report({ ...client, window_id: user_id })
  await facilities.deduplicator.claim({ user_id, message_id: 'm' })
  return connection_id
}

type Listed = { user_id: string; status: string }

const tally = (items: Listed[]) => {
  const counts: Record<string, number> = {}
  for (const { status } of items) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/**
 * Returns the statuses of all connections, contexts and windows as listed, after checking that all other results agree.
 */
async function statuses() {
  const seen: Record<string, string[]> = {}
  const observed: Record<string, Record<string, Record<string, number>>> = {}
  for (const [path, id] of [
    ['connections', 'connection_id'],
    ['contexts', 'context_id'],
    ['browser-windows', 'window_id'],
  ] as const) {
    const { items } = await get(`/${path}`)
    const { total, by_status } = await get(`/${path}/count`)
    const counted = Object.entries(by_status).filter(([, count]) => count !== 0)
    expect({ total, ...Object.fromEntries(counted) }).toEqual({ total: items.length, ...tally(items) })
    for (const item of items) {
      expect(await get(`/${path}/${item[id]}`)).toEqual(item)
      seen[item.user_id] = [...(seen[item.user_id] ?? []), item.status]
      observed[item.user_id] = { ...observed[item.user_id], [path]: tally([item]) }
    }
  }
  const connected = Object.values(observed).filter(({ connections }) => connections?.connected).length
  const { items: actions } = await get('/actions')
  expect(actions.map((action: { observed_connections: number }) => action.observed_connections)).toEqual(
    connected ? [connected] : [],
  )
  const { items: users } = await get('/users')
  expect(users.map((user: { user_id: string }) => user.user_id)).toEqual(Object.keys(seen).sort())
  for (const { user_id, sources: _, ...user } of users) {
    const { connections, contexts, 'browser-windows': windows } = observed[user_id] ?? {}
    expect(user).toMatchObject({
      observed_connections: connections?.connected ?? 0,
      observed_contexts: contexts?.idle ?? 0,
      observed_browser_windows: windows?.open ?? 0,
    })
    const summary = await get(`/users/${user_id}/summary`)
    expect(summary).toMatchObject({ ...user, contexts_by_status: contexts ?? {} })
  }
  return seen
}

const ALIVE = ['connected', 'idle', 'open']
const SILENT = ['disconnected', 'stale', 'stale']

describe('after a jump back of ten minutes', () => {
  it('counts silence as elapsed time, for entries from before and after the jump', async () => {
    await arrive('early')
    clock.advance(30_000)
    expect(await statuses()).toEqual({ early: ALIVE })
    clock.advance(-TEN_MINUTES)
    await arrive('late')
    clock.advance(59_999)
    expect(await statuses()).toEqual({ early: ALIVE, late: ALIVE })
    clock.advance(1)
    expect(await statuses()).toEqual({ early: SILENT, late: ALIVE })
    clock.advance(30_000)
    expect(await statuses()).toEqual({ early: SILENT, late: SILENT })
    clock.advance(90_000)
    expect(await statuses()).toEqual({ early: ['disconnected'], late: ['disconnected'] })
    clock.advance(3_600_000)
    expect(await statuses()).toEqual({})
  })

  it('shows times of the wall clock', async () => {
    const early = await arrive('early')
    clock.advance(-TEN_MINUTES)
    const late = await arrive('late')
    clock.advance(60_000)
    await facilities.connections.heartbeat(late)
    expect((await get('/deduplicator/users/early')).oldest_at).toBe(at())
    expect((await get('/deduplicator/users/late')).oldest_at).toBe(at(-TEN_MINUTES))
    clock.advance(90_000)
    expect(await get(`/connections/${early}`)).toMatchObject({ connected_at: at(), disconnected_at: at(90_000) })
    expect(await get(`/connections/${late}`)).toMatchObject({
      connected_at: at(-TEN_MINUTES),
      last_seen_at: at(60_000 - TEN_MINUTES),
      disconnected_at: at(150_000 - TEN_MINUTES),
    })
  })

  it('forgets a message claimed before the jump when its time has passed', async () => {
    await arrive('early')
    clock.advance(-TEN_MINUTES)
    await arrive('late')
    clock.advance(TEN_MINUTES - 1)
    expect(await facilities.deduplicator.claim({ user_id: 'early', message_id: 'm' })).toBe(false)
    clock.advance(1)
    expect(await get('/deduplicator/summary')).toMatchObject({ entries: 0 })
    expect(await facilities.deduplicator.claim({ user_id: 'early', message_id: 'm' })).toBe(true)
  })

  it('continues the age of a pending call', async () => {
    const { correlation_id } = await facilities.rpc.open({ action: 'a', user_id: 'u', client_id: 'c' })
    clock.advance(1_000)
    expect(await get(`/rpc/pending/${correlation_id}`)).toMatchObject({ age_ms: 1_000 })
    clock.advance(-TEN_MINUTES)
    expect(await get(`/rpc/pending/${correlation_id}`)).toMatchObject({ age_ms: 1_000 })
    clock.advance(5_000)
    expect(await get(`/rpc/pending/${correlation_id}`)).toMatchObject({ age_ms: 6_000, started_at: at() })
  })

  it('continues the age of a waiting command and of a loop that does not run', async () => {
    await facilities.dispatcher.dispatch({ user_id: 'u', client_id: 'c', command_id: '1', action: 'a' })
    clock.advance(1_000)
    expect(await get('/delivery/summary')).toMatchObject({ oldest_queued_age_ms: 1_000 })
    clock.advance(-TEN_MINUTES)
    expect(await get('/delivery/summary')).toMatchObject({ oldest_queued_age_ms: 1_000 })
    clock.advance(4_001)
    expect(await get('/delivery/summary')).toMatchObject({ oldest_queued_age_ms: 5_001 })
    expect((await get('/delivery/nodes')).items).toMatchObject([
      { stale: true, reconciliation_loop_alive: null, staleness_ms: 5_001, updated_at: at() },
    ])
  })

  it('retains a record of a command for its retention only', async () => {
    const key = { user_id: 'u', client_id: 'c', command_id: '1' }
    const path = '/delivery/status?user_id=u&client_id=c&command_id=1'
    await facilities.dispatcher.dispatch({ ...key, action: 'a' })
    await facilities.dispatcher.cancel(key)
    clock.advance(-TEN_MINUTES)
    await facilities.dispatcher.reconcile()
    clock.advance(89_999)
    expect(await get(path)).toMatchObject({ terminal: { state: 'cancelled', at: at() } })
    clock.advance(1)
    expect(await get(path)).toMatchObject({ status: 404 })
  })
})

describe('after a jump forward', () => {
  it('counts as silence of entries from before it, and of no others', async () => {
    await arrive('early')
    clock.advance(100_000)
    await arrive('late')
    expect(await statuses()).toEqual({ early: SILENT, late: ALIVE })
    clock.advance(89_999)
    expect(await statuses()).toEqual({ early: ['disconnected'], late: ALIVE })
    clock.advance(1)
    expect(await statuses()).toEqual({ early: ['disconnected'], late: SILENT })
    clock.advance(3_600_000)
    expect(await statuses()).toEqual({})
  })

  it('keeps nothing from a wrong future longer than its time after the clock is corrected', async () => {
    clock.advance(1_000 * DAYS)
    await arrive('early')
    clock.advance(-1_000 * DAYS)
    await arrive('late')
    expect(await statuses()).toEqual({ early: ALIVE, late: ALIVE })
    clock.advance(90_000)
    expect(await statuses()).toEqual({ early: SILENT, late: SILENT })
    clock.advance(3_600_000)
    expect(await statuses()).toEqual({})
    expect(await get('/deduplicator/summary')).toMatchObject({ entries: 0 })
  })
})
