/** Tokens of lists that go by a sequence: what was handed out is read back, and nothing else. */
import { expect, it } from 'vitest'
import { parseSequence } from '../../src/internal/contract/page.js'

it.each([
  [null, 0],
  ['0', 0],
  ['7', 7],
  ['9007199254740991', Number.MAX_SAFE_INTEGER],
])('a token %j is %d', (token, sequence) => {
  expect(parseSequence(token)).toBe(sequence)
})

it.each([
  '',
  ' ',
  '07',
  '+7',
  '-7',
  '7.0',
  '7 ',
  '7\n',
  '7e1',
  '0x7',
  '9007199254740992',
  '٧',
  'Infinity',
])('refuses the token %j', (token) => {
  expect(() => parseSequence(token)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }))
})
