/** Rows that are read repeatedly: parsed when they are new or have changed. */
import { expect, it } from 'vitest'
import * as z from 'zod'
import type { Store } from '../../src/redis/store/store.js'
import { readRows, type TableReader } from '../../src/redis/table/rows.js'
import { ASK } from '../contract/clock.js'

interface Row {
  id: string
  of: { large: string }
}

/** Creates a table whose rows are in a map, and records what was parsed. */
function openTable() {
  const values = new Map<string, string>()
  const parsed: string[] = []
  const schema = z.object({ id: z.string(), of: z.object({ large: z.string() }) }).transform((row: Row) => {
    parsed.push(row.id)
    return row
  })
  const table = { name: 't', idOf: ({ id }: Row) => id, schema, indexes: [], read: (row: Row) => row }
  const told: unknown[] = []
  const store = {
    key: (_: number, ...parts: string[]) => parts.join(':'),
    command: async ([name, ...keys]: string[]) =>
      name === 'MGET' ? keys.map((key) => values.get(key.slice('t:row:'.length)) ?? null) : 'none',
    onError: (error: unknown) => void told.push(error),
  } as unknown as Store
  return {
    parsed,
    told,
    put: (id: string, large = '', own = id) => values.set(id, `${JSON.stringify({ id: own, of: { large } })}\n{}`),
    values,
    async read(...ids: string[]) {
      const found = await readRows(store, table as unknown as TableReader<Row, Row>, 0, ids, ASK)
      return found.map(({ row }) => row)
    },
  }
}

it('are parsed once while they do not change, and again when they do', async () => {
  const { put, read, parsed } = openTable()
  put('a', 'x')
  put('b', 'x')
  const first = await read('a', 'b')
  expect(await read('b', 'a')).toEqual([first[1], first[0]])
  expect(parsed).toEqual(['a', 'b'])
  put('a', 'y')
  expect((await read('a', 'b')).map((row) => row?.of.large)).toEqual(['y', 'x'])
  expect(parsed).toEqual(['a', 'b', 'a'])
})

it('are read however deep they nest', async () => {
  const values = new Map([['a', `${JSON.stringify({ id: 'a' })}\n{"of":${'['.repeat(50_000)}${']'.repeat(50_000)}}`]])
  const table = {
    name: 't',
    idOf: () => 'a',
    schema: z.looseObject({ id: z.string() }),
    indexes: [],
    read: (row: Row) => row,
  }
  const store = {
    key: (_: number, ...parts: string[]) => parts.join(':'),
    command: async ([name]: string[]) => (name === 'MGET' ? [values.get('a')] : 'none'),
    onError: () => {},
  } as unknown as Store
  const [found] = await readRows(store, table as unknown as TableReader<Row, Row>, 0, ['a'], ASK)
  expect(Object.isFrozen(found?.row?.of)).toBe(true)
})

it('are missing once they are deleted, and invalid once they are corrupted', async () => {
  const { put, read, values, told } = openTable()
  put('a')
  await read('a')
  put('a', '', 'another')
  expect(await read('a')).toEqual([undefined])
  expect(told).toHaveLength(1)
  values.delete('a')
  expect(await read('a')).toEqual([])
  put('a')
  expect((await read('a'))[0]?.id).toBe('a')
})

it('cannot be changed by a caller', async () => {
  const { put, read } = openTable()
  put('a', 'x')
  const [row] = await read('a')
  expect(() => Object.assign(row?.of ?? {}, { large: 'mine' })).toThrow(TypeError)
  expect((await read('a'))[0]?.of.large).toBe('x')
})

it('are kept in a bounded number and size', async () => {
  const { put, read, parsed } = openTable()
  const ids = Array.from({ length: 5_000 }, (_, i) => `r${i}`)
  for (const id of ids) put(id)
  await read(...ids)
  await read(...ids)
  // None of the first is there any more when its turn comes again.
  expect(parsed.length).toBeGreaterThan(2 * ids.length - 2_000)
  parsed.length = 0
  const large = ids.slice(0, 200)
  for (const id of large) put(id, 'x'.repeat(100_000))
  await read(...large)
  await read(...large)
  expect(parsed.length).toBeGreaterThan(2 * large.length - 50)
})
