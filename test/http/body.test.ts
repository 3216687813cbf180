/** Request bodies: their text is checked before anything is parsed, and errors repeat no name from outside. */
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { parseBody, readJson } from '../../src/internal/http/body.js'
import type { ProblemError } from '../../src/internal/http/problem.js'

const post = (text: string) =>
  new Request('http://h/', { method: 'POST', body: text, headers: { 'content-type': 'application/json' } })

describe('readJson', () => {
  it.each([
    ['names a member twice', '{"a":1,"a":2}'],
    ['nests too deep', `${'['.repeat(33)}${']'.repeat(33)}`],
    ['holds too many lists', `[${'[],'.repeat(40_000)}[]]`],
  ])('refuses a text that %s', async (_, text) => {
    const errors = [{ in: 'body', name: 'body', reason: expect.any(String) }]
    await expect(readJson(post(text))).rejects.toMatchObject({ code: 'invalid_body', extra: { errors } })
  })

  it('gives what any other text says', async () => {
    expect(await readJson(post('{"a":[1,{"a":null}]}'))).toEqual({ a: [1, { a: null }] })
  })
})

describe('parseBody', () => {
  const schema = z.object({ counts: z.record(z.string(), z.number()) })
  const errorsOf = (value: unknown) => {
    try {
      parseBody(schema, value)
      return []
    } catch (error) {
      return (error as ProblemError).extra.errors?.map(({ name }) => name)
    }
  }

  it('names the path of an error if it looks like a schema field, and no other', () => {
    expect(errorsOf({ counts: { a: 1 } })).toEqual([])
    expect(errorsOf({ counts: { fine_1: 'x' } })).toEqual(['counts.fine_1'])
    for (const name of ['Secret', 'a\nb', '<b>', 'x'.repeat(200)])
      expect(errorsOf({ counts: { [name]: 'x' } })).toEqual(['(unreadable)'])
    expect(errorsOf(null)).toEqual(['body'])
  })

  it('names an unknown field that has a plain name, and the one that may be meant', () => {
    const strict = z.strictObject({ timeout_ms: z.number().optional(), inner: z.strictObject({}).optional() })
    const reasonsOf = (value: unknown) => {
      try {
        return parseBody(strict, value)
      } catch (error) {
        return (error as ProblemError).extra.errors
      }
    }
    expect(reasonsOf({ timeoutMs: 1 })).toEqual([
      { in: 'body', name: 'timeoutMs', reason: 'Unknown field "timeoutMs". Did you mean "timeout_ms"?' },
    ])
    expect(reasonsOf({ inner: { a: 1 } })).toEqual([{ in: 'body', name: 'inner.a', reason: 'Unknown field' }])
    for (const name of ['<b>', 'a\nb', 'x'.repeat(200)])
      expect(reasonsOf({ [name]: 1 })).toEqual([{ in: 'body', name: 'body', reason: 'must not have unknown fields' }])
  })
})
