/** What an id is: each class of characters that none may hold, and its bound in bytes. */
import { describe, expect, it } from 'vitest'
import { checkId, countUtf8, Id, randomId, toReason, utf8Length } from '../../src/internal/contract/ids.js'

describe('an id', () => {
  it.each([
    ['a control character', 'a\u0000b'],
    ['a line break', 'a\nb'],
    ['a control character of the second set', 'a\u0085b'],
    ['a format character', 'a\u200bb'],
    ['a character that turns the direction', 'a\u202eb'],
    ['a line separator', 'a\u2028b'],
    ['a paragraph separator', 'a\u2029b'],
    ['a lone surrogate', 'a\ud800b'],
    ['nothing but a space', ' '],
    ['nothing', ''],
    ['. alone', '.'],
    ['.. alone', '..'],
  ])('holds no %s', (_, id) => {
    expect(checkId(id)).toEqual(expect.any(String))
    expect(Id.safeParse(id).success).toBe(false)
  })

  it.each(['é'.repeat(128), 'x'.repeat(256), '\u{1f600}'.repeat(64)])('has up to 256 bytes', (id) => {
    expect([utf8Length(id), countUtf8(id)]).toEqual([256, 256])
    expect(checkId(id)).toBeUndefined()
    expect(checkId(`${id}x`)).toEqual(expect.any(String))
    expect(Id.safeParse(`${id}x`).success).toBe(false)
  })

  it('is repeated by no reason for refusing it', () => {
    expect(checkId('secret\u0000')).not.toContain('secret')
  })
})

it('makes random ids of 128 bits in hexadecimal, each a new one', () => {
  const ids = Array.from({ length: 1_000 }, randomId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
})

it.each([
  ['heartbeat_lost', 'heartbeat_lost'],
  ['The server said: "x"', 'other'],
  ['x'.repeat(65), 'other'],
  ['', 'other'],
  [null, null],
  [undefined, null],
])('the reason %j is shown as %j', (given, told) => {
  expect(toReason(given)).toBe(told)
})
