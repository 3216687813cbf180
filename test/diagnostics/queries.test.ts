import { describe, expect, it } from 'vitest'
import { CASES, createSubject, createWatched, expectProblem, get, withQuery } from './subject.js'
import { NOW } from './world.js'

const LIMITED = CASES.filter(({ route }) => route.page !== undefined)

const NO_LIMITS = [
  ...[
    '0',
    '-1',
    '1.5',
    '1e3',
    '0x10',
    '010',
    '+5',
    '%205%20',
    '5%20',
    '',
    '9'.repeat(40),
    '٣',
    '５',
    'Infinity',
    'NaN',
  ],
  ...['null', 'true', '1,2', '1_0', '5%00'],
]

describe.each(LIMITED)('limit of $path', ({ path, url }) => {
  const max = path === '/history/messages' ? 1_000 : 500
  it('refuses any text but a number within its bounds', async () => {
    const { router, calls } = createWatched()
    for (const limit of [...NO_LIMITS, String(max + 1)]) {
      const problem = expectProblem(await get(router, withQuery(url, `limit=${limit}`)), 422, 'invalid_query')
      expect(problem.errors, limit).toMatchObject([{ in: 'query', name: 'limit' }])
    }
    expect(calls).toEqual([])
  })
  it('accepts 1, 2 and its maximum', async () => {
    const router = createSubject()
    for (const limit of [1, 2, max]) {
      const { status, body } = await get(router, withQuery(url, `limit=${limit}`))
      expect(status).toBe(200)
      expect((body.items ?? body.idle).length).toBeLessThanOrEqual(limit)
    }
  })
  it('is lowered by the host, and never clamped', async () => {
    const lowered = createSubject({ limits: { pageMax: 2, historyMax: 2 } })
    expectProblem(await get(lowered, withQuery(url, 'limit=3')), 422, 'invalid_query')
    const { status, body } = await get(lowered, url)
    expect(status).toBe(200)
    expect((body.items ?? body.idle).length).toBeLessThanOrEqual(2)
    // Nor does another router of the process lift it, or have it.
    expect((await get(createSubject(), withQuery(url, 'limit=3'))).status).toBe(200)
    expectProblem(await get(lowered, withQuery(url, 'limit=3')), 422, 'invalid_query')
  })
})

describe('filters', () => {
  const enums: [path: string, name: string, values: string[]][] = [
    ['/connections', 'client_type', ['browser', 'console', 'mobile', 'web']],
    ['/connections', 'status', ['connected', 'disconnected']],
    ['/connections/count', 'status', ['connected', 'disconnected']],
    ['/actions', 'client_type', ['browser', 'console', 'mobile', 'web']],
    ['/contexts', 'status', ['active', 'idle', 'closed', 'stale']],
    ['/contexts', 'ownership', ['user-owned', 'worker']],
    ['/contexts/count', 'client_type', ['browser', 'console', 'mobile', 'web']],
    ['/workers?user_id=alice', 'client_type', ['browser', 'console', 'mobile', 'web']],
    ['/workers/count?user_id=alice', 'client_type', ['browser', 'console', 'mobile', 'web']],
    ['/workers/available?user_id=alice', 'client_type', ['browser', 'console', 'mobile', 'web']],
    ['/browser-windows', 'status', ['open', 'stale', 'closed']],
    ['/browser-windows', 'type', ['normal', 'popup', 'panel', 'app', 'devtools']],
    ['/browser-windows', 'state', ['normal', 'minimized', 'maximized', 'fullscreen']],
    ['/browser-windows', 'ownership', ['user-owned', 'worker']],
    ['/browser-windows', 'focused', ['true', 'false']],
    ['/browser-windows', 'incognito', ['true', 'false']],
    ['/browser-windows/count', 'draining', ['true', 'false']],
  ]
  it.each(enums)('%s takes %s as one of its values and as nothing else', async (path, name, values) => {
    const accepting = createSubject()
    for (const value of values) expect((await get(accepting, withQuery(path, `${name}=${value}`))).status).toBe(200)
    const { router, calls } = createWatched()
    const [first = '', second = ''] = values
    for (const bad of [
      first.toUpperCase(),
      `${first},${second}`,
      `${first}%20`,
      `%20${first}`,
      `${first}%00`,
      '*',
      '1',
      '0',
      'yes',
      '__proto__',
      'constructor',
      'null',
    ]) {
      const problem = expectProblem(await get(router, withQuery(path, `${name}=${bad}`)), 422, 'invalid_query')
      expect(problem.errors).toMatchObject([{ in: 'query', name }])
      expect(JSON.stringify(problem)).toContain(values.join(values.length === 2 && first === 'true' ? ' or ' : ', '))
    }
    expect(calls).toEqual([])
  })

  it('reach the inspector typed, under their query names, and only those that were given', async () => {
    const { router, calls } = createWatched()
    await get(router, '/browser-windows?focused=true&incognito=false&status=open&limit=7')
    await get(router, '/connections')
    await get(router, '/workers?user_id=default')
    expect(
      calls.filter(({ args }) => !Object.hasOwn(args[0] as object, 'window_id')).map(({ args }) => args.slice(0, -1)),
    ).toEqual([
      [
        { focused: true, incognito: false, status: 'open' },
        { limit: 7, cursor: null, order: 'newest' },
      ],
      [{}, { limit: 100, cursor: null, order: 'newest' }],
      [
        { user_id: 'default', ownership: 'worker' },
        { limit: 500, cursor: null },
      ],
    ])
  })

  it.each([
    '/delivery/commands?reason=',
    '/connections?ended_reason=',
    '/connections/events?reason=',
  ])('refuse %s a text that no reason can be', async (path) => {
    for (const text of ['attempts%20exhausted', 'Busy', '1', ''])
      expectProblem(await get(createSubject(), path + text), 422, 'invalid_query')
    expect((await get(createSubject(), `${path}attempts_exhausted`)).status).not.toBe(422)
  })

  it('count a silence back from now', async () => {
    const { router, calls } = createWatched()
    await get(router, '/connections?silent_for_ms=60000')
    await get(router, '/contexts?silent_for_ms=60000')
    const at = new Date(NOW - 60_000).toISOString()
    expect(calls.map(({ args }) => args[0])).toEqual([{ last_seen_before: at }, { updated_before: at }])
    for (const path of ['/connections', '/connections/count', '/contexts', '/contexts/count'])
      expect((await get(router, `${path}?silent_for_ms=0`)).status).toBe(422)
  })

  const SPANNED = ['/connections', '/connections/count', '/delivery/commands', '/rpc/ended']

  it.each(
    SPANNED,
  )('take a span of %s in ISO 8601 or epoch ms, and hand it to the inspector as timestamps', async (path) => {
    const { router, calls } = createWatched()
    const span = { from: new Date(NOW - 1_000).toISOString(), to: new Date(NOW).toISOString() }
    const seconds = (ms: number) => new Date(ms).toISOString().slice(0, 19)
    for (const [from, to] of [
      [NOW - 1_000, NOW],
      [span.from, span.to],
      [span.from.replace('Z', '%2B00:00'), span.to.replace('Z', '000Z')],
    ])
      expect((await get(router, `${path}?from=${from}&to=${to}`)).status).toBe(200)
    const filters = calls.map(({ args: [filter] }) => filter).filter((filter) => filter && 'from' in Object(filter))
    expect(filters.length).toBeGreaterThanOrEqual(3)
    for (const filter of filters) expect(filter).toMatchObject(span)
    calls.length = 0
    await get(router, `${path}?from=${seconds(NOW)}Z&to=${seconds(NOW)}Z`)
    const whole = `${seconds(NOW)}.000Z`
    expect(calls.map(({ args: [filter] }) => filter)).toContainEqual({ from: whole, to: whole })
  })

  it.each(SPANNED)('refuse a bad instant, or a span of %s that ends before it begins', async (path) => {
    const { router, calls } = createWatched()
    const bad = ['now', '-1', '1.5', '2026-01-02', '2026-02-30T00:00:00Z', '2026-01-02T03:04:05']
    for (const text of [...bad, '9'.repeat(15), '9'.repeat(16), '2026-01-02T03:04:05+01:00', '%20'])
      for (const name of ['from', 'to']) {
        const problem = expectProblem(await get(router, `${path}?${name}=${text}`), 422, 'invalid_query')
        const reason = 'must be ISO 8601 with Z or an offset, or epoch ms'
        expect(problem.errors).toEqual([{ in: 'query', name, reason }])
      }
    for (const [from, to] of [
      [2, 1],
      ['1970-01-01T00:00:00.002Z', 1],
    ]) {
      const problem = expectProblem(await get(router, `${path}?from=${from}&to=${to}`), 422, 'invalid_query')
      expect(problem.errors).toEqual([{ in: 'query', name: 'from', reason: 'must not be after to' }])
    }
    expect(calls).toEqual([])
    expect((await get(router, `${path}?from=1&to=1`)).status).toBe(200)
  })

  it('keep the cursor of a span that is given in another notation', async () => {
    const router = createSubject()
    const at = NOW - 600
    const first = await get(router, `/connections?from=${at}&limit=2`)
    expect(first.body.has_more).toBe(true)
    const next = `/connections?from=${new Date(at).toISOString()}&limit=2&cursor=${first.body.next_cursor}`
    expect((await get(router, next)).status).toBe(200)
  })

  it('narrow users to those whose ids begin with a prefix, of every source', async () => {
    const { body } = await get(createSubject(), '/users?user_id_prefix=al')
    expect(body.items.map((user: { user_id: string }) => user.user_id)).toEqual(['alice'])
    expect((await get(createSubject(), '/users?user_id_prefix=AL')).body.items).toEqual([])
  })

  it('are refused one by one in a body that stays small and repeats no value', async () => {
    const names = Array.from(
      { length: 40 },
      (_, i) => `${'n'.repeat(60)}${String(i).padStart(4, 'a').replaceAll(/[0-9]/g, 'z')}`,
    )
    for (const query of [
      names.map((name) => `${name}=v4lue`).join('&'),
      'v4lue'.repeat(900),
      `user_id=v4lue%00&status=v4lue&v4lue=1`,
    ]) {
      const answer = await get(createSubject(), `/browser-windows?${query}`)
      const problem = expectProblem(answer, 422, 'invalid_query')
      expect(problem.errors?.length).toBeLessThanOrEqual(8)
      expect(problem.errors?.length).toBeGreaterThan(query.includes('&') ? 1 : 0)
      expect(JSON.stringify(problem.errors?.map(({ reason }) => reason))).not.toContain('v4lue')
    }
  })

  it.each([
    'user_id=%ff',
    'user_id=%',
    'user_id=%C0%AF',
    'user_id=%ED%A0%80',
    'user_id=a%0Db',
    'user_id=%E2%80%8B',
    '%ff=1',
    'a%00=1',
    'user_id=a&user%5Fid=b',
    '&',
    'user_id=a&&client_id=b',
    '=',
    '=x',
    'Limit=5',
    'limit%20=5',
    'limit[]=5',
  ])('refuses the query %s', async (query) => {
    expectProblem(await get(createSubject(), `/connections?${query}`), 422, 'invalid_query')
  })

  it.each([
    'a%00',
    'a%0Ab',
    'a%7F',
    'a%C2%80',
    'a%E2%80%AEb',
    '%20',
    '%E2%80%8B',
    'x'.repeat(2_049),
  ])('refuses the stream name %s', async (stream) => {
    const { router, calls } = createWatched()
    expectProblem(await get(router, `/history/messages?stream=${stream}`), 422, 'invalid_query')
    expect(calls).toEqual([])
  })

  it.each(['cursor=', 'cursor', 'user_id=', 'status='])('takes %s for an empty value, not for none', async (query) => {
    const problem = expectProblem(await get(createSubject(), `/connections?${query}`), 422, 'invalid_query')
    expect(problem.errors?.[0]?.reason).toBe('must not be empty')
  })

  it('an empty query is no query', async () => {
    expect((await get(createSubject(), '/connections?')).status).toBe(200)
  })
})
