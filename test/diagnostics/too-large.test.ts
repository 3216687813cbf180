/** Answers that are legal and longer than any may be: a shorter page, and a cursor for the rest. */
import { describe, expect, it } from 'vitest'
import type { Connection } from '../../src/internal/contract/connections.js'
import type { InspectionContext, PageQuery } from '../../src/internal/contract/page.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject, get } from './subject.js'
import { connection } from './world.js'

const MIB = 1_048_576
const bulky = (i: number, mib: number): Connection =>
  connection({
    connection_id: `c${i}`,
    user_id: `u${i}`,
    actions: [`a${i}${'x'.repeat(mib * MIB)}`],
    metadata: {},
  })

/** A router over these connections, and the limits that its registry was asked with. */
function subjectOf(connections: Connection[]) {
  const fakes = createFakeInspectors({ connections })
  const limits: number[] = []
  const listConnections = (filter: object, page: PageQuery, ask: InspectionContext) => {
    limits.push(page.limit)
    return fakes.registry?.listConnections(filter, page, ask)
  }
  const errors: unknown[] = []
  const registry = { ...fakes.registry, listConnections } as typeof fakes.registry
  const router = createSubject({ inspectors: { registry }, onError: (error) => errors.push(error) })
  return { router, limits, errors }
}

interface Shown {
  items: Record<string, unknown>[]
  omitted?: number
  next_cursor: string | null
}

async function walk(router: ReturnType<typeof createSubject>, path: string) {
  const items: Record<string, unknown>[] = []
  let omitted = 0
  let cursor: string | null = null
  do {
    const { status, body }: { status: number; body: Shown } = await get(
      router,
      `${path}?limit=8${cursor ? `&cursor=${cursor}` : ''}`,
    )
    expect(status).toBe(200)
    items.push(...body.items)
    omitted += body.omitted ?? 0
    cursor = body.next_cursor
  } while (cursor !== null)
  return { items, omitted }
}

describe('a page over 16 MiB', () => {
  it('is requested again with half the limit, and continues with its cursor', async () => {
    const { router, limits } = subjectOf(Array.from({ length: 4 }, (_, i) => bulky(i, 5)))
    const { body } = await get(router, '/connections?limit=4')
    expect([body.items.length, body.has_more, limits]).toEqual([2, true, [4, 2]])
    expect((await walk(router, '/connections')).items.map((item) => item.connection_id)).toEqual(
      Array.from({ length: 4 }, (_, i) => `c${3 - i}`),
    )
  })

  it('omits a record that is too large for any response, continues after it, and reports it to the host', async () => {
    const { router, errors } = subjectOf([bulky(0, 0), bulky(1, 17), bulky(2, 0)])
    const { items, omitted } = await walk(router, '/connections')
    expect([items.map((item) => item.connection_id), omitted]).toEqual([['c2', 'c0'], 1])
    expect(errors.length).toBeGreaterThan(0)
    expect((await get(router, '/connections/c1')).status).toBe(500)
  })

  it('of users is cut without another request, and the following pages show all users', async () => {
    const { router, limits } = subjectOf(Array.from({ length: 4 }, (_, i) => bulky(i, 5)))
    const { body } = await get(router, '/users?limit=4')
    expect([body.items.length, body.has_more, body.completeness.complete, limits.length]).toEqual([2, true, true, 1])
    expect((await walk(router, '/users')).items).toHaveLength(4)
  })

  it('of actions ends sooner without asking again, and shows all of them in the end', async () => {
    const actions = Array.from({ length: 4 }, (_, i) => ({
      name: `a${i}`,
      description: 'x'.repeat(5 * MIB),
      parameters_schema: null,
    }))
    const router = createSubject({ inspectors: createFakeInspectors({ actions }) })
    const { body } = await get(router, '/actions?limit=4')
    expect([body.items.length, body.has_more, body.completeness.complete]).toEqual([2, true, true])
    expect((await walk(router, '/actions')).items).toHaveLength(4)
  })

  it('of users leaves out one who is too large, and is not complete', async () => {
    const { router } = subjectOf([bulky(0, 17)])
    const { status, body } = await get(router, '/users')
    expect([status, body.items, body.omitted, body.completeness.complete]).toEqual([200, [], 1, false])
  })

  it('of raw history is a shorter sample of the newest messages, and its count says how short', async () => {
    const message = (i: number) => ({
      message_id: `m${i}`,
      stream: 's',
      sequence: i + 1,
      kind: 'event' as const,
      user_id: 'u',
      client_id: 'c',
      instance_id: 'i',
      recorded_at: '2026-01-02T03:04:05.678Z',
      payload: 'x'.repeat(5 * MIB),
      externalized: null,
    })
    const inspectors = createFakeInspectors({ messages: [0, 1, 2, 3].map(message) })
    const { status, body } = await get(createSubject({ inspectors }), '/history/messages?stream=s&limit=4')
    expect([status, body.count, body.items.map((item: { sequence: number }) => item.sequence)]).toEqual([
      200,
      2,
      [3, 4],
    ])
  })
})
