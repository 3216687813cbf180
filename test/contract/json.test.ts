/** JSON serialisation, and inputs that are refused. */
import { describe, expect, it } from 'vitest'
import { isDeeperThan, toJson } from '../../src/contract/json.js'

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
