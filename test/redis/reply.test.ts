/** How errors of a client are interpreted. */
import { expect, it } from 'vitest'
import { count, isErrorReply, toError, UnknownScript } from '../../src/redis/store/reply.js'

it.each([
  ['a lost link', new Error('Socket closed unexpectedly')],
  ['a Cluster that looks for who has a slot', new TypeError("Cannot read properties of undefined (reading 'master')")],
  ['a store that is loading', new Error('LOADING Redis is loading the dataset in memory')],
  ['a value that is not an error', 'gone'],
])('treats %s as unavailable, and keeps the thrown value as the cause', (_, cause) => {
  expect(toError(cause)).toMatchObject({ name: 'Refusal', code: 'unavailable', cause })
})

it('treats any other error of the store as a fault', () => {
  expect(toError(new Error('ERR unknown command'))).not.toHaveProperty('code')
})

const NOSCRIPT = 'NOSCRIPT No matching script. Please use EVAL.'
const LOADING = 'LOADING Redis is loading the dataset in memory'

it.each([
  ['plain', new Error(NOSCRIPT)],
  ['as a cause', new Error('command failed', { cause: new Error(NOSCRIPT) })],
  ['as the last error of a node', Object.assign(new Error('all nodes failed'), { lastNodeError: new Error(NOSCRIPT) })],
  ['among others', new AggregateError([new Error('connect ETIMEDOUT'), new Error(NOSCRIPT)])],
  ['in its message', new Error(`Too many Cluster redirections. Last error: ReplyError: ${NOSCRIPT}`)],
])('knows a script that the store does not know, %s', (_, cause) => {
  expect(toError(cause)).toBeInstanceOf(UnknownScript)
})

it.each([
  ['that is loading', LOADING, 'not_run'],
  ['that is loading, wrapped', `ReplyError: ${LOADING}`, 'not_run'],
  ['that forbids a script to begin', "NOPERM User node has no permissions to run the 'evalsha' command", 'not_run'],
  ['that stops a script', `NOPERM no permission script: ${'a'.repeat(40)}, on @user_script:9.`, 'unknown'],
  ['whose link is lost', 'Socket closed unexpectedly', 'unknown'],
])('reports for a store %s whether the write may have run', (_, message, outcome) => {
  expect(toError(new Error(message))).toMatchObject({ code: 'unavailable', outcome })
})

it.each([
  ['NOPERM this user has no permissions', true],
  ['ERR unknown command', true],
  ['Connection is closed.', false],
  ['Socket closed unexpectedly', false],
])('knows whether %j is a reply of the store: %j', (message, isReply) => {
  expect(isErrorReply(toError(new Error(message)))).toBe(isReply)
})

it('follows nested errors to a limited depth, so that cycles end', () => {
  const round = new Error('gone')
  round.cause = round
  expect(toError(round)).toMatchObject({ code: 'unavailable', cause: round })
  const both = new AggregateError([round], 'gone')
  both.errors.push(both)
  expect(toError(both)).toMatchObject({ code: 'unavailable' })
})

it.each<[reply: string | number | null, number: number]>([
  ['7', 7],
  [7, 7],
  ['7.5', 7],
  ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ...[null, '', '0', '-1', -1, '9007199254740992', '1e308', 'junk'].map((reply): [string | number | null, number] => [
    reply,
    0,
  ]),
])('counts %j as %d', (reply, number) => {
  expect(count(reply)).toBe(number)
})
