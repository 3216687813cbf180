/** How adapters read the path of a request that a fetch-style host has parsed. */
import { expect, it } from 'vitest'
import { pathOf } from '../../src/adapters/handler.js'

/** A request as a host may show it: not every one resolves what it was sent. */
const shown = (url: string, host = 'h') =>
  Object.defineProperty(new Request('http://h/', { headers: { host } }), 'url', { value: url })

it.each([
  ['http://h/a/b%2Fc?d#e', '/a/b%2Fc'],
  ['http://h', '/'],
  ['http://h?d', '/'],
  ['http://h/a/../b', '/a/../b'],
])('returns the pathname of %s', (url, path) => {
  expect(pathOf(shown(url))).toBe(path)
})

it.each([
  ['a backslash, which some read as a slash', shown('http://h/a\\b')],
  ['a malformed Host', shown('http://h/a', 'a b')],
  ['no URL', shown('/a')],
])('returns undefined for a request with %s', (_, request) => {
  expect(pathOf(request)).toBeUndefined()
})
