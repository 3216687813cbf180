import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTable, type Entry } from '../../src/memory/table/table.js'
import { walk } from '../contract/clock.js'

interface Row {
  user_id: string
  client_id: string
  window_id: string | null
  status: 'on' | 'off'
  kind: 'a' | 'b' | 'c'
  marked: boolean
}

const createRows = () =>
  createTable<Row>({
    fields: ['client_id', 'window_id'],
    dimensions: [
      { name: 'status', values: ['on', 'off'], counted: true },
      { name: 'kind', values: ['a', 'b', 'c'], counted: true },
      { name: 'marked', values: [false, true] },
    ],
  })

const BOUND = 10_000

const show = (entry: Entry<Row>) => entry.record

const someOf = <T>(...values: T[]) => fc.constantFrom(...values)
const filter = fc.record(
  {
    user_id: someOf('u1', 'u2', 'u3', '__proto__'),
    client_id: someOf('c1', 'c2'),
    window_id: someOf('w1', 'w2'),
    status: someOf('on', 'off'),
    kind: someOf('a', 'b', 'c'),
    marked: fc.boolean(),
  },
  { requiredKeys: [] },
)
const row = fc.record({
  user_id: someOf('u1', 'u2', 'u3', '__proto__'),
  client_id: someOf('c1', 'c2'),
  window_id: someOf('w1', 'w2', null),
  status: someOf('on' as const, 'off' as const),
  kind: someOf('a' as const, 'b' as const, 'c' as const),
  marked: fc.boolean(),
})

describe('a table', () => {
  it('returns the lists, counts and users of a full scan after any changes', () => {
    const step = fc.record({ id: fc.integer({ min: 0, max: 25 }), row, remove: fc.boolean() })
    fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 80 }),
        fc.array(filter, { maxLength: 6 }),
        async (steps, filters) => {
          const table = createRows()
          const model = new Map<string, Row>()
          for (const { id, row: given, remove } of steps) {
            const key = String(id)
            const entry = table.get(key)
            const before = model.get(key)
            if (!entry || !before) {
              table.add(key, given, undefined)
              model.set(key, given)
            } else if (remove) {
              table.remove(entry)
              model.delete(key)
            } else {
              const { user_id, client_id } = before
              table.replace(entry, { ...given, user_id, client_id })
              model.set(key, { ...given, user_id, client_id })
            }
          }
          for (const wanted of [{}, ...filters]) {
            const expected = [...model.values()].filter((record) =>
              Object.entries(wanted).every(([name, value]) => record[name as keyof Row] === value),
            )
            const found = await walk((page) => table.list(wanted, page, show, BOUND), 3)
            expect(found).toEqual(expected)
            const of = (name: keyof Row, value: string) => expected.filter((record) => record[name] === value).length
            const counts = {
              total: expected.length,
              by_status: { on: of('status', 'on'), off: of('status', 'off') },
              by_kind: { a: of('kind', 'a'), b: of('kind', 'b'), c: of('kind', 'c') },
            }
            expect(table.count(wanted, show, true, BOUND)).toMatchObject(counts)
            expect(table.count(wanted, show, false, BOUND)).toMatchObject(counts)
          }
          const users = [...new Set([...model.values()].map((record) => record.user_id))].sort()
          expect(table.users.userIds({ after: null, limit: 9 }, show, true, BOUND)).toEqual(users)
          for (const user of users) {
            const clients = [...model.values()].filter((record) => record.user_id === user).map((r) => r.client_id)
            expect(table.users.clientIds(user)).toEqual([...new Set(clients)].sort())
          }
        },
      ),
      { numRuns: 150 },
    )
  })

  it('keeps order and counts of a value while it has few records, many, and few again', async () => {
    const table = createRows()
    const base = { user_id: 'u', status: 'on', marked: false } as const
    const kinds = ['a', 'b', 'c'] as const
    const entries = Array.from({ length: 40 }, (_, i) => {
      const kind = kinds[i % 3] ?? 'a'
      return table.add(`${i}`, { ...base, client_id: `c${i}`, kind, window_id: i % 8 === 1 ? 'w' : null }, undefined)
    })
    const check = async () => {
      const expected = entries.filter(({ record }) => record.window_id === 'w').map(({ record }) => record)
      expect(await walk((page) => table.list({ window_id: 'w' }, page, show, BOUND), 7)).toEqual(expected)
      const by_kind = Object.fromEntries(kinds.map((of) => [of, expected.filter(({ kind }) => kind === of).length]))
      expect(table.count({ window_id: 'w' }, show, true, BOUND)).toMatchObject({ total: expected.length, by_kind })
    }
    const change = async (entry: Entry<Row> | undefined, record: Partial<Row>) => {
      if (entry) table.replace(entry, { ...entry.record, ...record })
      await check()
    }
    await check()
    // They come after those that arrived later.
    for (const entry of entries.toReversed()) await change(entry, { window_id: 'w', kind: 'c' })
    for (const entry of entries) await change(entry, { kind: 'b' })
    for (const entry of entries) await change(entry, { window_id: null })
    expect(await walk((page) => table.list({ window_id: 'w' }, page, show, BOUND), 7)).toEqual([])
  })

  it('examines no more entries for the last page of a hundred thousand than for the first', () => {
    const table = createRows()
    const base = { window_id: null, status: 'on', kind: 'a', marked: false } as const
    for (let i = 0; i < 100_000; i++)
      table.add(`${i}`, { ...base, user_id: `u${i % 1_000}`, client_id: 'c' }, undefined)
    const examinedBy = (wanted: { user_id?: string; client_id?: string }, cursor: string | null) => {
      let examined = 0
      const page = table.list(
        wanted,
        { limit: 50, cursor },
        (entry) => {
          examined++
          return entry.record
        },
        BOUND,
      )
      expect([page.items.length, page.examined]).toEqual([50, examined])
      return examined
    }
    for (const cursor of [null, '50000', '99950']) expect(examinedBy({}, cursor)).toBe(50)
    expect(examinedBy({ user_id: 'u7' }, null)).toBe(50)
    expect(examinedBy({ user_id: 'u7', client_id: 'c' }, '50000')).toBe(50)
  })

  it('counts from its tallies without examining an entry', () => {
    const table = createRows()
    const base = { window_id: 'w', status: 'on', kind: 'a', marked: true, client_id: 'c' } as const
    for (let i = 0; i < 20_000; i++) table.add(`${i}`, { ...base, user_id: `u${i % 2}` }, undefined)
    const never = () => {
      throw new Error('looked at an entry')
    }
    expect(table.count({ marked: true, kind: 'a' }, never, true, BOUND)).toMatchObject({ total: 20_000, examined: 0 })
    expect(table.count({ user_id: 'u1', status: 'on' }, never, true, BOUND)).toMatchObject({
      total: 10_000,
      examined: 0,
    })
    expect(table.count({ window_id: 'w' }, never, true, BOUND)).toMatchObject({ total: 20_000, examined: 0 })
    // Two indexed fields together have no tally, and the smaller index has just few enough entries to look at.
    expect(table.count({ user_id: 'u1', client_id: 'c' }, show, true, BOUND)).toMatchObject({
      total: 10_000,
      examined: 10_000,
    })
    expect(table.count({ window_id: 'w', client_id: 'c' }, show, true, BOUND)).toBeNull()
  })

  it('keeps the position of a record that changes', async () => {
    const table = createRows()
    const base = { user_id: 'u', client_id: 'c', window_id: null, status: 'on', kind: 'a', marked: false } as const
    for (const id of ['1', '2', '3']) table.add(id, { ...base, window_id: id }, undefined)
    const entry = table.get('1')
    if (entry) table.replace(entry, { ...entry.record, status: 'off', window_id: '9' })
    expect((await walk((page) => table.list({}, page, show, BOUND), 1)).map((r) => r.window_id)).toEqual([
      '9',
      '2',
      '3',
    ])
  })
})
