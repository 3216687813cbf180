/** What an error of a client means. */
import { expect, it } from 'vitest'
import { toError } from '../../src/redis/reply.js'

it.each([
  ['a lost link', new Error('Socket closed unexpectedly')],
  ['a Cluster that looks for who has a slot', new TypeError("Cannot read properties of undefined (reading 'master')")],
  ['a store that is loading', new Error('LOADING Redis is loading the dataset in memory')],
  ['what is no error at all', 'gone'],
])('takes %s for unavailable, and keeps what was thrown as the cause', (_, cause) => {
  expect(toError(cause)).toMatchObject({ name: 'Refusal', code: 'unavailable', cause })
})

it('takes any other reply of the store for a fault', () => {
  expect(toError(new Error('ERR unknown command'))).not.toHaveProperty('code')
})
