import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { Id } from '../../src/internal/contract/ids.js'
import { ProblemError } from '../../src/internal/http/problem.js'
import { parseQuery } from '../../src/internal/http/query.js'
import { codePoint } from '../code-point.js'

const schema = z.object({
  limit: z.int().min(1).max(500).default(100),
  user_id: Id.optional(),
  focused: z.boolean().optional(),
  status: z.enum(['idle', 'active']).optional(),
})

const errorsOf = (search: string) => {
  try {
    parseQuery(schema, search)
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(ProblemError)
    return (error as ProblemError).extra.errors?.map(({ name }) => name)
  }
}

describe('parseQuery', () => {
  it('returns typed values of the given parameters, and defaults', () => {
    expect(parseQuery(schema, '')).toEqual({ limit: 100 })
    expect(parseQuery(schema, 'limit=7&focused=false&user_id=a%26b+c&status=idle')).toEqual({
      limit: 7,
      focused: false,
      user_id: 'a&b c',
      status: 'idle',
    })
    expect(parseQuery(schema, 'user%5Fid=a=b')).toEqual({ limit: 100, user_id: 'a=b' })
  })

  it('names every wrong parameter once, and an unreadable name not at all', () => {
    expect(errorsOf('limit=0&limit=x&status=IDLE&nope=1&%00=1&user_id=')).toEqual([
      'limit',
      'nope',
      '(unreadable)',
      'user_id',
      'status',
    ])
  })

  it('knows no parameter by a name that every object has', () => {
    expect(errorsOf('constructor=1')).toEqual(['constructor'])
    expect(errorsOf('__proto__=1&toString=1')).toEqual(['(unreadable)', 'toString'])
    expect(errorsOf('Limit=1&userId=2')).toEqual(['Limit', 'userId'])
  })

  it('gives any id back as it was, in either encoding of a space', () => {
    const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter((text) => Id.safeParse(text).success)
    fc.assert(
      fc.property(id, (user_id) => {
        expect(parseQuery(schema, `user_id=${encodeURIComponent(user_id)}`).user_id).toBe(user_id)
        expect(parseQuery(schema, new URLSearchParams({ user_id }).toString()).user_id).toBe(user_id)
      }),
    )
  })

  it('accepts a limit only as the canonical decimal of a number in range', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 5 }), fc.integer().map(String), fc.double().map(String)), (text) => {
        const canonical = /^[1-9][0-9]*$/.test(text) && Number(text) <= 500
        expect(errorsOf(`limit=${encodeURIComponent(text)}`)?.length === 0).toBe(canonical)
      }),
    )
  })

  it('never throws anything but a problem', () => {
    fc.assert(fc.property(fc.string({ unit: codePoint, maxLength: 200 }), (search) => void errorsOf(search)))
  })
})
