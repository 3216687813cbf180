/** JSON serialisation, and inputs that are refused. */
import { describe, expect, it } from 'vitest'
import { digest64 } from '../../src/internal/contract/digest.js'
import { identityText, isDeeperThan, toJson } from '../../src/internal/contract/json.js'

/** `levels` of objects around one another, each referring to the next one twice. */
function doubled(levels: number): object {
  let node: object = {}
  for (let level = 1; level < levels; level++) node = { a: node, b: node }
  return node
}

describe('toJson', () => {
  it('refuses what nests deeper than 32 levels, a cycle among it', () => {
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    for (const value of [doubled(33), cycle])
      expect(() => toJson(value, 1_000_000)).toThrow(expect.objectContaining({ code: 'invalid_input' }))
    expect([isDeeperThan(doubled(33), 32), isDeeperThan(doubled(32), 32)]).toEqual([true, false])
  })

  it('refuses at once what a few objects stand for billions of', () => {
    expect(() => toJson(doubled(32), 1_000_000)).toThrow(expect.objectContaining({ code: 'payload_too_large' }))
  })

  it('counts the bytes of its text, and refuses one more than there may be', () => {
    expect(toJson('ä'.repeat(9), 20)).toEqual({ text: `"${'ä'.repeat(9)}"`, bytes: 20 })
    for (const value of ['ä'.repeat(10), 'x'.repeat(19)])
      expect(() => toJson(value, 20)).toThrow(expect.objectContaining({ code: 'payload_too_large' }))
  })

  it('counts an object in each place where it stands', () => {
    const { text, bytes } = toJson(doubled(3), 1_000)
    expect([text, bytes]).toEqual(['{"a":{"a":{},"b":{}},"b":{"a":{},"b":{}}}', 41])
    expect(() => toJson(doubled(3), 13)).toThrow(expect.objectContaining({ code: 'payload_too_large' }))
  })
})

describe('the identity of a value', () => {
  it('is the same text for two spellings of one value', () => {
    const [one, other] = ['{"a":[1,"x"],"b":null}', '{ "b" : null, "a" : [1.0, "\\u0078"] }'].map((text) =>
      JSON.parse(text),
    )
    expect(identityText(one)).toBe(identityText(other))
  })

  it('is another text for each other value', () => {
    const values: unknown[] = [
      null,
      'null',
      1,
      '1',
      true,
      'true',
      '',
      [],
      {},
      [[]],
      [''],
      ['', ''],
      { a: 1 },
      { a: '1' },
      { a: { b: 1 } },
    ]
    values.push(['a', 'b'], ['a,1"b'], { a: 'x', b: 'y' }, { a: 'x,1"b1"y' }, { '': 1 }, { 'a1"x': 1 }, ['1"a,'], '1"a')
    expect(new Set(values.map((value) => identityText(value as never))).size).toBe(values.length)
  })
})

describe('digest64', () => {
  it('tells texts of any length apart, whatever came before', () => {
    const texts = Array.from({ length: 3_000 }, (_, i) => 'ä\u{1f600}x\0'.repeat(i % 90) + 'a'.repeat(i))
    const digests = texts.map(digest64)
    expect(new Set(digests).size).toBe(texts.length)
    expect(texts.reverse().map(digest64).reverse()).toEqual(digests)
    expect(digests.every((digest) => /^[0-9a-f]{16}$/.test(digest))).toBe(true)
  })

  it('reads texts longer than its buffer whole', () => {
    const long = 'x'.repeat(40_000)
    expect(new Set([long, `${long}y`, `y${long}`, `${long.slice(1)}y`].map(digest64)).size).toBe(4)
  })
})
