import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { deepFreeze } from '../../src/internal/contract/json.js'
import { pageSchema } from '../../src/internal/contract/page.js'
import { encode, UnacceptableAnswer } from '../../src/internal/http/encode.js'

/** A record schema that counts how often it reads. */
function counted() {
  const reads = { count: 0 }
  const schema = z.object({ id: z.string(), nested: z.unknown().optional() }).superRefine(() => {
    reads.count += 1
  })
  return { schema, reads, page: pageSchema(schema) }
}

const pageWith = (...items: unknown[]) => ({ items, next_cursor: null, has_more: false })

describe('encode', () => {
  it('reads and encodes a frozen record once, however often it is listed', () => {
    const { page, reads } = counted()
    const record = deepFreeze({ id: 'a', nested: { list: [1, { two: 2 }] }, extra: 'dropped' })
    const texts = new Set(Array.from({ length: 5 }, () => encode(page, pageWith(record))))
    expect([...texts]).toEqual([
      '{"items":[{"id":"a","nested":{"list":[1,{"two":2}]}}],"next_cursor":null,"has_more":false}',
    ])
    expect(reads.count).toBe(1)
  })

  const counter = { value: 0 }
  it.each<[what: string, make: () => unknown, change: (record: never) => void]>([
    [
      'mutable',
      () => ({ id: 'a' }),
      (record: { id: string }) => {
        record.id = 'b'
      },
    ],
    [
      'frozen at the top alone',
      () => Object.freeze({ id: 'a', nested: { n: 1 } }),
      (record: { nested: { n: number } }) => {
        record.nested.n = 2
      },
    ],
    [
      'frozen with an accessor',
      () =>
        Object.freeze(Object.defineProperty({ id: 'a' }, 'nested', { enumerable: true, get: () => ++counter.value })),
      () => {},
    ],
    [
      'frozen with an accessor deep inside',
      () =>
        deepFreeze({
          id: 'a',
          nested: Object.defineProperty({}, 'n', { enumerable: true, get: () => ++counter.value }),
        }),
      () => {},
    ],
    [
      'frozen with a toJSON of its own',
      () => deepFreeze({ id: 'a', nested: { toJSON: () => ++counter.value } }),
      () => {},
    ],
    [
      'frozen with a Map',
      () =>
        deepFreeze({
          id: 'a',
          nested: new (class {
            toJSON() {
              return ++counter.value
            }
          })(),
        }),
      () => {},
    ],
    [
      'a proxy',
      () => {
        let n = 0
        return new Proxy({ id: 'a' }, { get: (_, key) => (key === 'id' ? `id-${++n}` : undefined) })
      },
      () => {},
    ],
  ])('never keeps the text of a record that is %s', (_what, make, change) => {
    const { page } = counted()
    const record = make()
    const before = encode(page, pageWith(record))
    change(record as never)
    expect(encode(page, pageWith(record))).not.toBe(before)
  })

  it('keeps texts by schema: what one drops, another may keep', () => {
    const record = deepFreeze({ id: 'a', secret: 's' })
    const wide = pageSchema(z.object({ id: z.string(), secret: z.string() }))
    expect(encode(wide, pageWith(record))).toContain('secret')
    expect(encode(counted().page, pageWith(record))).not.toContain('secret')
  })

  it('refuses the same record again, and names its place but no value', () => {
    const { page } = counted()
    const record = deepFreeze({ id: 7, secret: 'planted' })
    for (let i = 0; i < 2; i++)
      try {
        encode(page, pageWith(record))
        expect.unreachable()
      } catch (error) {
        expect(error).toBeInstanceOf(UnacceptableAnswer)
        expect(String(error)).not.toContain('planted')
      }
  })

  it.each([
    undefined,
    null,
    7,
    'x',
    [],
    { items: 'x' },
    { items: [null], next_cursor: null, has_more: false },
    { items: [], has_more: false },
  ])('refuses %j instead of a page', (value) => {
    expect(() => encode(counted().page, value)).toThrow(UnacceptableAnswer)
  })

  it('refuses a body over 16 MiB', () => {
    const { page } = counted()
    expect(() => encode(page, pageWith({ id: 'x'.repeat(16_777_216) }))).toThrow(UnacceptableAnswer)
  })

  it('is what JSON.stringify makes of what the schema read', () => {
    const schema = z.object({
      items: z.array(z.object({ a: z.number().nullable() })),
      list: z.array(z.string()),
      map: z.record(z.string(), z.number()),
      gone: z.string().optional(),
    })
    const value = { items: [{ a: null }, { a: 1.5 }], list: ['"', '\u2028', '\ud800'], map: { __x: 1, y: 2 }, extra: 1 }
    expect(encode(schema, value)).toBe(JSON.stringify(schema.parse(value)))
  })
})
