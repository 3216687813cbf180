/** Holds the fuzzer's judgement: each violation, planted, is found, and nothing is held against a right answer. */
import { describe, expect, it } from 'vitest'
import { problemReply } from '../../src/internal/http/respond.js'
import { judge, judgeAnswer, PLANTED } from './fuzz-oracle.js'
import { createAttack, type Targets } from './fuzz-requests.js'
import { ECHO } from './fuzz-values.js'
import { type Answered, readAnswers } from './fuzz-wire.js'

const PREFIX = '/ops/diagnostics'
const asked = { method: 'GET', target: `${PREFIX}/connections/count`, authorized: true }
const head: Answered['headers'] = [
  ['content-type', 'application/json; charset=utf-8'],
  ['cache-control', 'no-store'],
]
const toAnswer = ({ status, headers, body }: ReturnType<typeof problemReply>): Answered => ({
  status,
  headers: Object.entries(headers),
  body,
})
const right = toAnswer(problemReply('not_found'))
const site = {
  site_id: 's',
  owner: 'alice',
  mode: 'observe',
  title: null,
  event_names: [],
  action_names: [],
  capability_profile: { action_invocation: false },
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
}
const json = (value: unknown, status = 200): Answered => ({ status, headers: head, body: JSON.stringify(value) })

describe('the response oracle', () => {
  it.each<[string, Answered]>([
    ['a problem', right],
    ['what Node refuses by itself', { status: 400, headers: [['connection', 'close']], body: '' }],
    ['a time-out that the world injects', toAnswer(problemReply('action_timeout', { outcome: 'unknown' }))],
    ['a site', json(site)],
    ['nothing', { status: 204, headers: head, body: '' }],
  ])('accepts %s', (_what, answer) => {
    expect(judgeAnswer('relay', answer, { ...asked, target: '/relay/sites/s' }, PREFIX)).toEqual([])
  })

  const body = (change: object) => ({ ...right, body: JSON.stringify({ ...JSON.parse(right.body), ...change }) })
  it.each<[string, Answered, string]>([
    ['an internal error', toAnswer(problemReply('internal')), '500 internal that was not injected'],
    ['a store that cannot be reached', toAnswer(problemReply('unavailable')), '503 unavailable that was not injected'],
    ['a deadline', toAnswer(problemReply('inspector_timeout')), '504 inspector_timeout that was not injected'],
    ['a planted secret', body({ detail: PLANTED }), 'holds what was planted'],
    ['a secret in a header', { ...right, headers: [...right.headers, ['x-key', PLANTED]] }, 'holds what was planted'],
    ['an echo', body({ detail: ECHO }), 'repeats what was sent'],
    [
      'an echo in a header',
      { ...right, headers: [...right.headers, ['location', ECHO]] },
      'repeats what was sent in a header',
    ],
    ['another status than its own', body({ status: 400 }), '404 says that it is 400'],
    ['a member that a problem has not', body({ stack: 'x' }), '404 is no problem'],
    ['a page of HTML', { ...right, body: '<h1>404</h1>' }, '404 is no problem'],
    ['a long problem', body({ detail: 'x'.repeat(2_048) }), 'is longer than a problem'],
    [
      'a CORS header',
      { ...right, headers: [...right.headers, ['access-control-allow-origin', '*']] },
      'carries access-control-allow-origin',
    ],
    ['what may be cached', { ...right, headers: [['content-type', 'application/problem+json']] }, 'may be cached'],
    ['a redirect', { ...right, status: 302 }, 'leads elsewhere'],
    ['what no schema reads', json({ total: 'many' }), '200 is not what its schema says'],
    [
      'the body of another route',
      json({ items: [], next_cursor: null, has_more: false }),
      '200 is not what its schema says',
    ],
    ['a response that is not HTTP', { ...right, status: 0 }, 'has no status line'],
  ])('finds %s', (_what, answer, word) => {
    expect(judgeAnswer('diagnostics', answer, asked, PREFIX)).toContain(word)
  })

  it('finds a field that the schema would have dropped', () => {
    const words = judgeAnswer('relay', json({ ...site, secret: 1 }), { ...asked, target: '/relay/sites/s' }, PREFIX)
    expect(words).toEqual(['200 is not what its schema says'])
  })

  it('finds a successful response to an unauthenticated caller', () => {
    expect(judgeAnswer('relay', json(site), { ...asked, authorized: false }, PREFIX)).toEqual([
      '200 for an unauthenticated caller',
    ])
  })

  it('finds an invalid event stream', () => {
    const stream = { status: 200, headers: [['content-type', 'text/event-stream'], head[1]] as Answered['headers'] }
    const judged = (text: string) => judgeAnswer('relay', { ...stream, body: text }, asked, PREFIX)
    expect(judged('retry: 5000\nid: e:0\nevent: ready\ndata: {}\n\n')).toEqual([])
    expect(judged('event: injected\ndata: {}\n\n')).toEqual(['is not a valid event stream'])
  })
})

describe('the connection oracle', () => {
  const attack = { index: 0, surface: 'relay', chunks: [], asked: [asked], lies: false, ending: 'read' } as const
  it('finds a missing response, a close without a response, and a truncated one', () => {
    const given = { ...attack, chunks: [], asked: [asked] }
    expect(judge(given, { answers: [], rest: '', ended: false }, PREFIX)).toContain('was never answered')
    expect(judge(given, { answers: [], rest: '', ended: true }, PREFIX)).toEqual(['was closed without an answer'])
    const cut = judge(given, { answers: [right], rest: 'HTTP/1.1 200', ended: true }, PREFIX)
    expect(cut).toEqual(['was cut off within an answer'])
  })
})

describe('the response parser', () => {
  it('separates pipelined responses, including HEAD, chunked and interim ones', () => {
    const wire = [
      'HTTP/1.1 100 Continue\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
      'HTTP/1.1 404 Not Found\r\nContent-Length: 20\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n',
      'HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 2',
    ].join('')
    const methods = ['GET', 'HEAD', 'GET', 'DELETE', 'GET'].map((method) => ({ ...asked, method }))
    const { answers, rest } = readAnswers(wire, methods)
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [200, 'ok'],
      [404, ''],
      [200, 'abc'],
      [204, ''],
    ])
    expect(rest).toBe('HTTP/1.1 2')
  })
})

it('a seed and a number make the same attack again', () => {
  const targets: Targets = {
    ports: { diagnostics: 1, relay: 2, control: 3 },
    diagnostics: [`${PREFIX}/users`],
    prefix: PREFIX,
    cursors: ['abc'],
    key: 'k',
    token: 't',
    session_id: 's',
    politeSessionId: 'p',
  }
  expect(createAttack(7, 3, targets)).toEqual(createAttack(7, 3, targets))
  expect(createAttack(7, 3, targets)).not.toEqual(createAttack(8, 3, targets))
})
