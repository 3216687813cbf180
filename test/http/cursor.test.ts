import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { utf8Length } from '../../src/internal/contract/ids.js'
import { CURSOR_BYTES, TOKEN_BYTES } from '../../src/internal/contract/limits.js'
import { fromCursor, listIdentity, toCursor } from '../../src/internal/http/cursor.js'
import { ProblemError } from '../../src/internal/http/problem.js'
import { codePoint } from '../code-point.js'

const token = fc
  .string({ unit: codePoint, maxLength: TOKEN_BYTES })
  .filter((text) => text.isWellFormed() && utf8Length(text) <= TOKEN_BYTES)
const list = fc.record({
  route: fc.constantFrom('/connections', '/contexts', '/connections/{connection_id}/history'),
  params: fc.dictionary(fc.constantFrom('connection_id', 'task_id'), fc.string()),
  filters: fc.dictionary(fc.constantFrom('user_id', 'status', 'focused'), fc.oneof(fc.string(), fc.boolean())),
  deployment: fc.record({ id: fc.option(fc.string()), mode: fc.constantFrom('direct', 'shared_store') }),
})

const refused = (identity: string, cursor: string) => {
  try {
    fromCursor(identity, cursor)
    return undefined
  } catch (error) {
    return error instanceof ProblemError ? error.code : error
  }
}

describe('a cursor', () => {
  it('gives back its token to its own list, in at most 512 URL-safe characters', () => {
    fc.assert(
      fc.property(list, token, (of, text) => {
        const cursor = toCursor(listIdentity(of), text)
        expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/)
        expect(cursor.length).toBeLessThanOrEqual(CURSOR_BYTES)
        expect(fromCursor(listIdentity(of), cursor)).toBe(text)
      }),
    )
  })

  it('is refused by every other list', () => {
    fc.assert(
      fc.property(list, list, token, (of, other, text) => {
        fc.pre(listIdentity(of) !== listIdentity(other))
        expect(refused(listIdentity(other), toCursor(listIdentity(of), text))).toBe('invalid_cursor')
      }),
    )
  })

  it('is refused when any of its bits is another', () => {
    fc.assert(
      fc.property(list, token, fc.nat(), fc.integer({ min: 0, max: 6 }), (of, text, at, bit) => {
        const identity = listIdentity(of)
        const cursor = toCursor(identity, text)
        const i = at % cursor.length
        const flipped =
          cursor.slice(0, i) + String.fromCharCode(cursor.charCodeAt(i) ^ (1 << bit)) + cursor.slice(i + 1)
        expect(refused(identity, flipped)).toBe('invalid_cursor')
      }),
    )
  })

  it('is refused when it is anything else', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: codePoint, maxLength: 700 }), fc.base64String({ maxLength: 700 })),
        (text) => {
          expect(
            refused(
              listIdentity({ route: '/', params: {}, filters: {}, deployment: { id: null, mode: 'direct' } }),
              text,
            ),
          ).toBe('invalid_cursor')
        },
      ),
    )
  })

  it('does not depend on the order of filters, and tells a text from a boolean and null from a name', () => {
    const of = (filters: object, id: string | null = null) =>
      listIdentity({ route: '/x', params: {}, filters: { ...filters }, deployment: { id, mode: 'direct' } })
    expect(of({ a: '1', b: '2' })).toBe(of({ b: '2', a: '1' }))
    expect(
      new Set([
        of({ a: true }),
        of({ a: 'true' }),
        of({}),
        of({}, 'null'),
        of({ a: '1', b: '2' }),
        of({ a: '2', b: '1' }),
      ]).size,
    ).toBe(6)
  })
})
