import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeSegment, parsePrefix, splitUrl } from '../../src/internal/http/target.js'

const segment = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .filter((text) => text.isWellFormed() && !/[\p{Cc}?#\\]/u.test(text) && text !== '.' && text !== '..')

describe('a prefix', () => {
  it('owns its own path and the paths below it', () => {
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 4 }), fc.array(segment, { maxLength: 4 }), (own, rest) => {
        // As in a URL: characters that are not part of its syntax are left unencoded.
        const spelled = (text: string) =>
          new URL(`http://h/${text.replace(/[%/]/g, encodeURIComponent)}/`).pathname.slice(1, -1)
        const encoded = (segments: string[]) => segments.map((text) => `/${spelled(text)}`).join('')
        const prefix = parsePrefix(encoded(own))
        expect(prefix.path).toBe(encoded(own))
        expect(parsePrefix(`${prefix.path}/`).path).toBe(prefix.path)
        const path = encoded(own) + encoded(rest) || '/'
        expect(prefix.owns(path)).toBe(true)
        if (own.length > 0) expect(prefix.owns(`/x${path}`)).toBe(own[0] === `x/${own[0]}`)
      }),
    )
  })

  it('takes a slash as data where it is encoded', () => {
    const prefix = parsePrefix('/a')
    expect(prefix.owns('/a%2Fb')).toBe(false)
  })
})

it.each([
  ['%', null],
  ['%a', null],
  ['%zz', null],
  ['%ff', null],
  ['%c0%af', null],
  ['%ed%a0%80', null],
  ['a%2fb', 'a/b'],
  ['%2525', '%25'],
  ['+', '+'],
  ['', ''],
])('the segment %j is %j', (text, decoded) => {
  expect(decodeSegment(text)).toBe(decoded)
})

it('of a URL only path and query are read', () => {
  expect(splitUrl('http://evil.test:9/a//b?x=1?y#z')).toEqual({ pathname: '/a//b', search: 'x=1?y' })
  expect(splitUrl('http://localhost')).toEqual({ pathname: '/', search: '' })
})
