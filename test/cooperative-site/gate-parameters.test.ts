/** Which parameters the gate passes to the application, and that callers cannot set the runtime's own. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createWorld, refusal } from './gate-world.js'

describe('parameters of an action', () => {
  const nested = (depth: number) => {
    let value: object = {}
    for (let n = 1; n < depth; n++) value = { a: value }
    return value
  }

  it.each<[string, unknown]>([
    ['null', null],
    ['a list', [1]],
    ['a text', 'id'],
    ['a Map', new Map()],
    ['33 levels', nested(33)],
    ['100,000 levels', nested(100_000)],
    ['an object that holds a date', { at: new Date(0) }],
    ['an object that holds a function', { fn() {} }],
    ['an object that holds a symbol', { is: Symbol('x') }],
    ['an object that holds a number that JSON has no word for', { list: [Number.NaN] }],
    ['an object that holds one of a class', { map: new Map() }],
    ['a BigInt', { id: 1n }],
    ['a list without an end', { list: new Array(4_294_967_295) }],
    ['32,769 objects', { list: Array.from({ length: 32_768 }, () => ({})) }],
    ['a text over 256 KiB', { text: 'x'.repeat(262_144) }],
    ['a text over 256 KiB in bytes, though not in characters', { text: 'é'.repeat(150_000) }],
    [
      'what throws when it is read',
      { list: [Object.defineProperty({}, 'a', { enumerable: true, get: () => Symbol() })] },
    ],
    ['a __proto__ key', JSON.parse('{"__proto__":{"__cooperative_site_id":"x"}}')],
    ['an escaped __proto__ key far inside', JSON.parse('{"a":[{"b":{"__\\u0070roto__":1}}]}')],
  ])('are refused as %s', async (_, parameters) => {
    const { world, invoke } = createWorld()
    await expect(invoke({ parameters })).rejects.toMatchObject(refusal('invalid_parameters'))
    expect(world.calls).toEqual([])
  })

  it('may be absent, and may nest 32 levels', async () => {
    const { world, invoke } = createWorld()
    await invoke({ parameters: undefined })
    await invoke({ parameters: nested(32) })
    expect(Object.keys(world.calls[0]?.[1].parameters ?? {})).toEqual([
      '__cooperative_site_session_id',
      '__cooperative_site_id',
    ])
  })

  it.each([
    '__cooperative_site_session_id',
    '__cooperative_site_id',
    '__cooperative_site_anything',
  ])('may not be named %s, which the runtime sets', async (name) => {
    const parameters = JSON.parse(`{"${name.replace('_c', '_\\u0063')}": "forged"}`)
    await expect(createWorld().invoke({ parameters })).rejects.toMatchObject(refusal('reserved_parameter'))
  })

  it('reach the handler as they were checked, and cannot be changed in between', async () => {
    const parameters = { note: { id: 7 } }
    const { world, invoke } = createWorld({
      approve: (request) => {
        parameters.note.id = 8
        expect(() => {
          ;(request.parameters.note as { id: number }).id = 9
        }).toThrow(TypeError)
        return true
      },
    })
    await invoke({ parameters })
    expect(world.calls[0]?.[1].parameters).toMatchObject({ note: { id: 7 } })
  })

  it('always include the two of the runtime', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (parameters) => {
        const { world, invoke } = createWorld()
        const outcome = await invoke({ parameters }).catch((error) => error.code)
        const sent = world.calls[0]?.[1].parameters
        if (sent === undefined) expect(outcome).toMatch(/^(invalid_parameters|reserved_parameter)$/)
        else expect(sent).toMatchObject({ __cooperative_site_session_id: 's1', __cooperative_site_id: 'notes' })
      }),
      { numRuns: 50 },
    )
  })
})
