/** What the text of a body is refused for before anything is built of it. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { refuseJsonText } from '../../src/internal/http/body.js'

const DEEP = 'must not nest deeper than 32 levels'
const MANY = 'must not hold more than 32768 objects and lists'
const TWICE = 'must not name a member twice'

/** `{},` and the like, again and again in one list. */
const list = (item: string, times: number) => `[${Array(times).fill(item).join(',')}]`

describe('a JSON text', () => {
  it.each<[string, string, string | undefined]>([
    ['32 levels', '['.repeat(32) + ']'.repeat(32), undefined],
    ['33 levels', '['.repeat(33) + ']'.repeat(33), DEEP],
    ['100,000 levels that never close', '{"a":'.repeat(100_000), DEEP],
    ['brackets in a string', `"${'['.repeat(100)}"`, undefined],
    ['brackets behind an escaped quote', `"\\"${'['.repeat(100)}"`, undefined],
    ['a string that ends in a backslash, and then 33 levels', `["\\\\",${'['.repeat(32)}`, DEEP],
    ['32,768 objects and lists', list('{}', 32_767), undefined],
    ['one more', list('[]', 32_768), MANY],
    ['a list of 131,000 numbers', list('0', 131_000), undefined],
    ['a member twice', '{"a":1,"a":2}', TWICE],
    ['a member twice among many', '{"a":1,"b":2,"c":3,"b":4}', TWICE],
    ['a member twice in another spelling', '{"a":1,"\\u0061":2}', TWICE],
    ['a member twice, far inside', '[{"a":{"b":[{"c":1,"d":[],"c":2}]}}]', TWICE],
    ['a member twice behind an object', '{"a":{"b":1},"a":2}', TWICE],
    ['the same name in two objects', '[{"a":{"a":1}},{"a":2}]', undefined],
    ['the same text as a name and a value', '{"a":"a","b":"a"}', undefined],
    ['a colon in a string', '{"a":"b:c","d":":"}', undefined],
    ['names that objects have by themselves', '{"__proto__":1,"constructor":2,"toString":3}', undefined],
    ['nothing', '', undefined],
    ['a string that never ends', '{"a', undefined],
    ['an invalid escape', '{"\\x":1,"\\x":2}', TWICE],
    ['closing brackets alone', ']]}}[', undefined],
  ])('with %s is answered as it should be', (_, text, reason) => {
    expect(refuseJsonText(text)).toBe(reason)
  })

  it('that JSON.stringify has written is never refused', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => {
        expect(refuseJsonText(text)).toBeUndefined()
      }),
    )
  })

  it('of any kind is scanned to its end without a throw', () => {
    const token = fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', 'a', '\\u0061', ' ')
    fc.assert(
      fc.property(fc.array(token, { maxLength: 60 }), (tokens) => {
        const reason = refuseJsonText(tokens.join(''))
        expect([undefined, DEEP, TWICE]).toContain(reason)
      }),
    )
  })
})
