import { describe, expect, it } from 'vitest'
import type { ErrorPlace } from '../../src/internal/diagnostics/hooks.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import {
  ASKING,
  CASES,
  type Call,
  createSubject,
  createWatched,
  expectProblem,
  get,
  getInVain,
  ORIGIN,
  PREFIX,
  SECRET,
  withQuery,
} from './subject.js'

const OPERATIONS = [
  'history_list_streams',
  'registry_connection_history',
  'connection_churn',
  'connection_events',
  'rpc_instance_check',
  'rpc_summary',
  'rpc_ended',
  'dedup_per_user',
  'delivery_churn',
  'delivery_commands',
]

/** Adds a field to every object of an answer, except where the keys are the host's own. */
function plant(value: unknown, key = ''): unknown {
  if (['metadata', 'payload', 'parameters_schema', 'counters', 'ended'].includes(key)) return value
  if (Array.isArray(value)) return value.map((entry) => plant(entry))
  if (value === null || typeof value !== 'object') return value
  const members = Object.entries(value).map(([name, member]) => [name, plant(member, name)])
  return { ...Object.fromEntries(members), planted: SECRET, payload_planted: { deep: SECRET } }
}

const SECURITY = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const headersOf = (headers: Headers) => Object.fromEntries(headers)

/** Answers that no schema accepts. */
const UNACCEPTABLE: [what: string, respond: (call: Call) => unknown][] = [
  ['undefined', () => undefined],
  ['a text', () => 'x'],
  ['an empty object', () => ({})],
  ['a promise of undefined', async () => undefined],
]

/** Records that no schema accepts: by themselves a fault, in a list left out. */
const REFUSED: [what: string, respond: (call: Call) => unknown][] = [
  ['a cycle', () => cyclic()],
  ['a BigInt', ({ proceed }) => withField(proceed(), 10n)],
  ['a getter that throws', ({ proceed }) => withGetter(proceed())],
]

describe.each(CASES)('$path', ({ path, route, target, query, url }) => {
  it('answers 200 with a body that its schema accepts unchanged', async () => {
    const { status, body, headers } = await get(createSubject(), url)
    expect(status).toBe(200)
    expect(route.response.parse(body)).toEqual(body)
    expect(headersOf(headers)).toMatchObject({ 'content-type': 'application/json; charset=utf-8', ...SECURITY })
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    const isCompared = path.endsWith('/count') || Array.isArray(body.items)
    expect(headers.has('etag')).toBe(isCompared)
  })

  it('drops whatever its schema does not name', async () => {
    const { router, calls } = createWatched({}, async (call) => plant(await call.proceed()))
    const { status, text } = await get(router, url)
    expect(status).toBe(200)
    expect(calls.length > 0).toBe(route.requires.length > 0)
    expect(text).not.toContain(SECRET)
    expect(text).toBe((await get(createSubject(), url)).text)
  })

  it('answers 403 without a key, byte for byte as an unknown route does, and asks nothing', async () => {
    const { router, calls } = createWatched()
    const refused = await router(new Request(`${ORIGIN}${PREFIX}${url}`))
    const unknown = await router(new Request(`${ORIGIN}${PREFIX}/nope`))
    expect([refused.status, unknown.status]).toEqual([403, 403])
    expect(headersOf(refused.headers)).toEqual(headersOf(unknown.headers))
    expect(await refused.text()).toBe(await unknown.text())
    expect(calls).toEqual([])
  })

  it('answers HEAD with the headers of GET and no body', async () => {
    const router = createSubject()
    const [head, full] = await Promise.all([get(router, url, { method: 'HEAD' }), get(router, url)])
    expect(head.status).toBe(200)
    expect(headersOf(head.headers)).toEqual(headersOf(full.headers))
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(full.text)))
    expect(head.text).toBe('')
  })

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'patch'])('answers 405 to %s', async (method) => {
    const { router, calls } = createWatched()
    const headers = { origin: 'https://evil.test', 'access-control-request-method': 'GET' }
    const answer = await get(router, url, { method, headers })
    expectProblem(answer, 405, 'method_not_allowed')
    expect(answer.headers.get('allow')).toBe('GET, HEAD')
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    expect(calls).toEqual([])
  })

  it('answers 412 to a caller that expects another deployment, before anything is asked', async () => {
    for (const deployment of [{ id: 'here', mode: 'direct' } as const, undefined]) {
      const { router, calls } = createWatched({ deployment })
      const headers = { 'x-expected-deployment-id': 'elsewhere' }
      expectProblem(await get(router, withQuery(url, 'nope=1'), { headers }), 412, 'deployment_mismatch')
      expect(calls).toEqual([])
    }
    const right = createSubject({ deployment: { id: 'here', mode: 'direct' } })
    expect((await get(right, url, { headers: { 'x-expected-deployment-id': 'here' } })).status).toBe(200)
  })

  it.each([
    ['an unknown parameter', 'nope=1', '(?:nope)'],
    ['a repeated parameter', 'limit=5&limit=5', 'limit'],
    ['an empty parameter', 'limit=', 'limit'],
    ['a parameter without a value', 'limit', 'limit'],
    ['a prototype name', '__proto__=1', '.*'],
    ['an empty pair', '', '.*'],
  ])('answers 422 to %s', async (_what, bad, name) => {
    const { router, calls } = createWatched()
    const problem = expectProblem(await get(router, `${withQuery(url, bad)}&`), 422, 'invalid_query')
    expect(problem.errors?.[0]).toMatchObject({ in: 'query', name: expect.stringMatching(new RegExp(`^${name}$`)) })
    expect(calls).toEqual([])
  })

  if (query)
    it('answers 422 when a required parameter is missing, empty, blank or doubled', async () => {
      const { router, calls } = createWatched()
      const pairs = query.split('&')
      for (const [i, pair] of pairs.entries()) {
        const name = pair.split('=')[0]
        for (const bad of [[], [`${name}=`], [`${name}=%20`], [`${name}=+`], [pair, pair], [`${name}=a%01`]]) {
          const search = [...pairs.slice(0, i), ...bad, ...pairs.slice(i + 1)].join('&')
          const problem = expectProblem(await get(router, `${target}?${search}`), 422, 'invalid_query')
          expect(problem.errors).toMatchObject([{ in: 'query', name }])
        }
      }
      expect(calls).toEqual([])
    })

  if (route.requires.length > 0) {
    it('answers 501 with its capability without the inspector, before its query is read', async () => {
      const problem = expectProblem(
        await get(createSubject({ inspectors: {} }), withQuery(url, 'nope=1')),
        501,
        'inspector_absent',
      )
      expect(problem.capability).toBe(route.requires[0])
    })
  } else {
    it('answers without any inspector', async () => {
      expect((await get(createSubject({ inspectors: {} }), url)).status).toBe(200)
    })
  }

  if (route.requires.length > 0 && !route.reportsFailures) {
    it('answers 500 when the inspector throws, without a word of what it threw', async () => {
      const thrown = Object.assign(new Error(SECRET), { status: 418, detail: SECRET, code: SECRET })
      for (const fail of [
        () => {
          throw thrown
        },
        () => Promise.reject(thrown),
        () => {
          throw SECRET
        },
        () => Promise.reject(new Refusal('stale_instance', SECRET)),
      ]) {
        const errors: unknown[] = []
        const { router } = createWatched({ onError: (error) => errors.push(error) }, fail)
        const answer = await get(router, url)
        expectProblem(answer, 500, 'internal')
        expect(answer.text).not.toContain(SECRET)
        expect(errors.length).toBeGreaterThan(0)
      }
    })

    const isSummary = /^\/(rpc|deduplicator|delivery)\/summary$/.test(path)

    it.each(UNACCEPTABLE)('answers a fixed 500 when the inspector answers %s', async (_what, respond) => {
      const answer = await get(createWatched({}, respond).router, url)
      // A summary may lack every field.
      if (isSummary && answer.status === 200)
        return expect(new Set(Object.values(answer.body))).toEqual(new Set([null]))
      expectProblem(answer, 500, 'internal')
      expect(answer.text).not.toContain(SECRET)
    })

    it.each(REFUSED)('leaves %s out of a list and says so, and alone it is a fixed 500', async (_what, respond) => {
      const places: ErrorPlace[] = []
      const answer = await get(createWatched({ onError: (_, place) => places.push(place) }, respond).router, url)
      const { completeness, items, omitted } = answer.body
      expect(answer.text).not.toContain(SECRET)
      if (answer.status === 500) {
        expect([route.page, path]).toEqual([undefined, expect.not.stringMatching(/count$/)])
        expectProblem(answer, 500, 'internal')
        return
      }
      expect(route.response.parse(answer.body)).toEqual(answer.body)
      if (isSummary) return
      expect([items ?? [], completeness?.complete ?? omitted === 0]).toEqual([[], false])
      // The summary of a user also reads summaries, which are no lists.
      const index = path === '/users/{user_id}/summary' ? {} : { index: expect.any(Number) }
      for (const place of places) expect(place).toMatchObject({ route: path, source: expect.any(String), ...index })
      expect(places.length).toBeGreaterThan(0)
    })

    it('answers 504 at the deadline when the inspector hangs, and aborts its signal', async () => {
      const signals: AbortSignal[] = []
      const answer = await getInVain(url, ({ args }) => signals.push((args.at(-1) as { signal: AbortSignal }).signal))
      expectProblem(answer, 504, 'inspector_timeout')
      expect(signals.length).toBeGreaterThan(0)
      expect(signals.every((signal) => signal.aborted)).toBe(true)
    })

    it('answers 503 with retry-after when the inspector cannot reach its store', async () => {
      const { router } = createWatched({}, () => Promise.reject(new Refusal('unavailable', SECRET)))
      const answer = await get(router, url)
      expectProblem(answer, 503, 'inspector_unavailable')
      expect(answer.headers.get('retry-after')).toBe('1')
      expect(answer.text).not.toContain(SECRET)
    })
  }

  if (OPERATIONS.includes(route.requires[0] ?? ''))
    it('answers 501 operation_absent when the inspector lacks the operation', async () => {
      const inspectors = createFakeInspectors({
        connections: [],
        messages: [],
        calls: [],
        deduplicator: {},
        delivery: {},
      })
      const problem = expectProblem(await get(createSubject({ inspectors }), url), 501, 'operation_absent')
      expect(problem.capability).toBe(route.requires[0])
    })

  if (route.record)
    it.each([
      'unknown',
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
    ])('answers 404 not_found for the unknown record %s', async (id) => {
      const unknown = path.includes('{')
        ? path.replaceAll(/\{\w+\}/g, id)
        : `${path}?user_id=alice&client_id=desk&command_id=${id}`
      expectProblem(await get(createSubject(), unknown), 404, 'not_found')
    })
  else if (path.includes('{'))
    it('answers 200 for something unknown, for it addresses no record', async () => {
      const search = query ? `?${query}` : ''
      const { status, body } = await get(createSubject(), path.replaceAll(/\{\w+\}/g, 'unknown') + search)
      expect(status).toBe(200)
      expect(body).toMatchObject(path.startsWith('/rpc') ? { current: false } : { items: [], has_more: false })
    })

  if (path.includes('{'))
    it.each([
      '%ff',
      '%',
      '%ZZ',
      '%c0%af',
      '%00',
      '%0d%0a',
      '%7f',
      '%C2%85',
      '%E2%80%AE',
      '%E2%80%8B',
      '%20',
    ])('answers 422 invalid_path to the segment %s', async (bad) => {
      const { router, calls } = createWatched()
      const broken = path.replaceAll(/\{\w+\}/g, bad) + (query ? `?${query}` : '')
      const problem = expectProblem(await get(router, broken), 422, 'invalid_path')
      expect(problem.errors).toMatchObject([{ in: 'path', name: path.match(/\{(\w+)\}/)?.[1] }])
      expect(calls).toEqual([])
    })
})

it('reads the routes that the router lists', () => {
  expect(createSubject().routes.map((route) => [route.path, route.capability, route.available])).toEqual(
    CASES.map(({ path, route }) => [path, route.operation ?? route.requires[0] ?? null, true]),
  )
  expect(createSubject({ inspectors: {} }).routes.filter((route) => route.available)).toHaveLength(
    CASES.length - ASKING.length,
  )
})

function cyclic(): unknown {
  const value: Record<string, unknown> = { has_more: false, next_cursor: null }
  value.self = value
  value.items = [value]
  return value
}

/** An answer whose first record has a field that its schema cannot accept. */
function withField(value: unknown, field: unknown): unknown {
  return withRecord(value, (record) => {
    for (const name of Object.keys(record)) if (typeof record[name] !== 'object') return { ...record, [name]: field }
    return record
  })
}

function withGetter(value: unknown): unknown {
  return withRecord(value, (record) =>
    Object.defineProperty({ ...record }, Object.keys(record)[0] as string, {
      enumerable: true,
      get() {
        throw new Error(SECRET)
      },
    }),
  )
}

function withRecord(value: unknown, change: (record: Record<string, unknown>) => unknown): unknown {
  const answer = value as { items?: Record<string, unknown>[] }
  if (!Array.isArray(answer.items)) return change(value as Record<string, unknown>)
  return { ...answer, items: answer.items.map(change) }
}
