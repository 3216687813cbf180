/** How a recorder reads the inspectors of its own process: what has not changed is not read through its schema again. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { readerOf } from '../../src/incident/reader.js'
import { createFlightRecorder } from '../../src/incident/recorder.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { Page, PageQuery } from '../../src/internal/contract/page.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/kits.js'
import { createSubject } from '../diagnostics/subject.js'
import { connection, createWorld } from '../diagnostics/world.js'
import { askRouter, HEADERS } from './subject.js'

const NEVER = new AbortController().signal
const DEPLOYMENT = { id: null, mode: 'direct' } as const

const readerOver = (world: FakeWorld) =>
  readerOf({ inspectors: createFakeInspectors(world), deployment: DEPLOYMENT }, NEVER)

/** A registry of `count` connections that answers pages like one of the library. */
function manyConnections(count: number, onRow = () => {}): Inspectors {
  const listConnections = (_filter: unknown, { cursor, limit }: PageQuery): Page<ReturnType<typeof connection>> => {
    const from = Number(cursor ?? 0)
    const to = Math.min(count, from + limit)
    const items = Array.from({ length: to - from }, (_, i) => {
      onRow()
      return connection({ connection_id: `c-${count - from - i}`, client_id: `client-${from + i}` })
    })
    return { items, next_cursor: to < count ? String(to) : null, has_more: to < count }
  }
  const { registry } = createFakeInspectors(createWorld() as FakeWorld)
  return { registry: { ...registry, listConnections } as Inspectors['registry'] }
}

describe('readerOf', () => {
  it('answers as the router does, without fields that its schema does not know', async () => {
    const world = createWorld() as FakeWorld
    const read = readerOver(world)
    const router = createSubject({ inspectors: createFakeInspectors(world) })
    world.connections = [Object.assign(connection({ connection_id: 'c' }), { payload: 'secret' })]
    for (const path of ['/connections?limit=2', '/delivery/commands?order=newest', '/delivery/summary', '/rpc/ended']) {
      const { value } = await read(path)
      const { body } = await askRouter(router, path, HEADERS)
      const { next_cursor, observed_at, ...answer } = body as Record<string, unknown>
      expect(value, path).toMatchObject(answer)
      expect(JSON.stringify(value)).not.toContain('secret')
    }
  })

  it('returns the same object for a row that has not changed, and another one for a row that has', async () => {
    const world = createWorld() as FakeWorld
    const rowsOf = async () => (await read('/connections')).value?.items as object[]
    world.connections = [connection({ connection_id: 'a' }), connection({ connection_id: 'b', client_id: 'other' })]
    const read = readerOver(world)
    const before = await rowsOf()
    world.connections = [
      connection({ connection_id: 'a' }),
      connection({ connection_id: 'b', client_id: 'other', metadata: { step: 2 } }),
    ]
    const after = await rowsOf()
    const pairs = after.map((row) => before.some((one) => one === row))
    expect(pairs.filter(Boolean)).toHaveLength(1)
    expect(after).toContainEqual(expect.objectContaining({ connection_id: 'b', metadata: { step: 2 } }))
  })

  it('notices a change of an object that its inspector returned before', async () => {
    const world = createWorld() as FakeWorld
    const own = connection({ connection_id: 'a', metadata: { step: 1 } })
    world.connections = [own]
    const read = readerOver(world)
    await read('/connections')
    ;(own.metadata as Record<string, unknown>).step = 2
    expect((await read('/connections')).value).toMatchObject({ items: [{ metadata: { step: 2 } }] })
  })

  it('leaves out and counts a row that its schema refuses, and gives a failure its reason', async () => {
    const world = createWorld() as FakeWorld
    world.connections = [connection({ connection_id: 'a' }), { connection_id: 7 } as never]
    const read = readerOver(world)
    expect((await read('/connections')).value).toMatchObject({ items: [{ connection_id: 'a' }], omitted: 1 })
    const failing = readerOf(
      {
        inspectors: { registry: { ...manyConnections(1).registry, listConnections: () => Promise.reject() } as never },
        deployment: DEPLOYMENT,
      },
      NEVER,
    )
    expect((await failing('/connections')).refused).toMatchObject({ status: 500, reason: 'unreachable' })
    expect((await failing('/contexts')).refused).toMatchObject({ reason: expect.any(String) })
  })

  it('reads nothing while the version of the inspectors is the same', async () => {
    const facilities = createMemoryFacilities()
    onTestFinished(async () => void (await facilities.close()))
    await facilities.connections.connect({ user_id: 'u', client_id: 'c', instance_id: 'i', client_type: 'web' })
    const composition = memoryComposition(facilities)
    const read = readerOf(composition, NEVER)
    const { etag } = (await read('/connections')) as { etag?: string }
    expect(etag).toEqual(expect.any(String))
    expect((await read('/connections', etag)).refused).toMatchObject({ status: 304 })
  })
})

describe('createFlightRecorder', () => {
  it('reads, compares and writes at most 250 rows in one turn of the event loop', async () => {
    let turn = 0
    const work = new Map<string, number>()
    const add = (what: string, amount: number) => {
      const key = `${what} ${turn}`
      work.set(key, (work.get(key) ?? 0) + amount)
    }
    const stringify = JSON.stringify
    vi.spyOn(JSON, 'stringify').mockImplementation(((value: unknown, ...rest: []) => {
      const text = stringify(value, ...rest)
      add('characters', text?.length ?? 0)
      return text
    }) as typeof JSON.stringify)
    onTestFinished(() => void vi.restoreAllMocks())
    const recorder = createFlightRecorder({
      inspectors: manyConnections(100_000, () => add('rows', 1)),
      everyMs: 5,
      onError: null,
    })
    onTestFinished(() => recorder.close())
    let isStarted = false
    void recorder.started.then(() => {
      isStarted = true
    })
    while (!isStarted) {
      await setImmediate()
      turn++
    }
    const most = (what: string) =>
      Math.max(...[...work].flatMap(([key, amount]) => (key.startsWith(what) ? [amount] : [])))
    expect(most('rows')).toBeLessThanOrEqual(250)
    // Each row is written as itself, in its line and as an id.
    const row = stringify(connection({ connection_id: 'c-100000', client_id: 'client-2000' })).length
    expect(most('characters')).toBeLessThan(3 * 250 * row)
  })

  it('records the newest 2,000 of 100,000 connections, and its past answers say that they are a part', async () => {
    const inspectors = manyConnections(100_000)
    const recorder = createFlightRecorder({ inspectors, onError: null })
    onTestFinished(() => recorder.close())
    await recorder.started
    const router = createSubject({ inspectors, recorder })
    const at = recorder.span()?.to
    const rows = (await recorder.incidentAt(null)).parts.find(({ route }) => route === '/connections')?.rows
    expect(rows).toHaveLength(2_000)
    expect(rows?.at(-1)).toMatchObject({ connection_id: 'c-100000' })
    const count = await askRouter(router, `/at/${at}/connections/count`, HEADERS)
    expect(count).toMatchObject({ status: 200, body: { total: 2_000, completeness: { complete: false } } })
    const known = await askRouter(router, `/at/${at}/connections/c-100000`, HEADERS)
    const unknown = await askRouter(router, `/at/${at}/connections/c-1`, HEADERS)
    expect([known.status, unknown.status]).toEqual([200, 503])
    const { body } = await askRouter(router, `/at/${at}/capabilities`, HEADERS)
    expect(JSON.stringify(body)).toContain('only the newest rows were followed')
  })
})
