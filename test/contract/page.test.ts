/** Tokens of lists that go by a sequence: what was handed out is read back, and nothing else. */
import { expect, it } from 'vitest'
import { admitsCommand } from '../../src/internal/contract/delivery-rules.js'
import { matcherOf, parseSequence } from '../../src/internal/contract/page.js'
import { at } from './clock.js'

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

it.each<[record: object, began: boolean, ended: boolean]>([
  [{ connected_at: at(1), disconnected_at: at(9) }, false, false],
  [{ connected_at: at(0), disconnected_at: at(10) }, true, true],
  [{ connected_at: at(0), disconnected_at: null }, true, true],
  // Whether an unknown time is within the span is unknown, too.
  [{ connected_at: null, disconnected_at: null, status: 'disconnected' }, true, true],
  [{ connected_at: null, disconnected_at: at(9) }, true, false],
  [{ started_at: at(1), ended_at: at(10) }, false, true],
  [{ started_at: at(0), ended_at: at(9) }, true, false],
  [{ admission: { at: at(0) }, terminal: { at: at(9) } }, true, false],
  [{ admission: { at: at(1) }, terminal: { at: at(10) } }, false, true],
  [{ admission: { at: null }, terminal: { at: null } }, true, true],
  [{ admission: { at: at(1) }, terminal: null }, false, true],
  [{ command_id: 'c1', state: 'resulted' }, true, true],
])('the life of %j begins by an instant: %j, ends from another one: %j', (record, began, ended) => {
  const command = record as Parameters<typeof admitsCommand>[1]
  const isCommand = !('connected_at' in record || 'started_at' in record)
  for (const admits of [(filter: object) => matcherOf({ ...filter })(record), isCommand && withCommand]) {
    if (!admits) continue
    expect([admits({ to: at(0) }), admits({ from: at(10) })]).toEqual([began, ended])
    expect(admits({ from: at(10), to: at(0) })).toBe(began && ended)
    expect(admits({ from: undefined, to: undefined })).toBe(true)
  }

  function withCommand(filter: object): boolean {
    return admitsCommand(filter, command)
  }
})
