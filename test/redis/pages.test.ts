/** Cursors of pages over shards: only issued ones are accepted. */
import { expect, it } from 'vitest'
import { parseToken, toToken } from '../../src/redis/table/pages.js'

it.each([
  { shard: 0, sequence: 0 },
  { shard: 3, sequence: 9_007_199_254_740_991 },
  { shard: 10, sequence: 1.5 },
])('a token of $shard and $sequence is read back', (position) => {
  expect(parseToken(toToken(position), 0, 10)).toEqual(position)
})

it.each([
  '',
  '7',
  '.7',
  '1.',
  '1.-7',
  '01.7',
  '1.07',
  '1.7e1',
  '1.x',
  ' 1.7',
  '1.7\n',
  '1.NaN',
  '0.7',
  '4.7',
  '100.7',
])('rejects the cursor %j with shards 1 to 3', (token) => {
  expect(() => parseToken(token, 1, 3)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }))
})
