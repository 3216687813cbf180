import { describe, expect, it, vi } from 'vitest'
import type { InspectionContext } from '../../src/internal/contract/page.js'
import { apiKeyAuth, bearerAuth, resolveAdminAuth } from '../../src/internal/http/auth.js'
import { parseText, seriesValue } from './parse.js'
import { changed, never, OPEN, request, scrape, subject } from './subject.js'

const KEY = 'correct-horse-battery'

describe('the handler', () => {
  it.each([
    ['text/plain;version=0.0.4', 'text/plain; version=0.0.4; charset=utf-8'],
    ['*/*', 'text/plain; version=0.0.4; charset=utf-8'],
    ['', 'text/plain; version=0.0.4; charset=utf-8'],
    [
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
    ],
    ['application/openmetrics-text;version=0.0.1', 'text/plain; version=0.0.4; charset=utf-8'],
    ['application/openmetrics-text;q=0', 'text/plain; version=0.0.4; charset=utf-8'],
    ['application/openmetrics-text;q=0.3, text/plain;q=0.9', 'text/plain; version=0.0.4; charset=utf-8'],
    ['Application/OpenMetrics-Text; Version="1.0.0"', 'application/openmetrics-text; version=1.0.0; charset=utf-8'],
  ])('answers %j as %s', async (accept, type) => {
    const response = await subject()(request({ accept }))
    expect(response.headers.get('content-type')).toBe(type)
    expect(response.headers.get('cache-control')).toBe('no-store')
    const text = await response.text()
    expect(parseText(text, type.includes('openmetrics')).size).toBeGreaterThan(20)
  })

  it('both formats and the data have the same series', async () => {
    const metrics = subject()
    const read = async (accept: string) => (await metrics(request({ accept }))).text()
    const series = (families: ReturnType<typeof parseText>) =>
      [...families.values()].flatMap(({ samples }) => samples.map(({ name, labels }) => ({ name, labels })))
    const open = series(parseText(await read(OPEN), true))
    expect(open).toEqual(series(parseText(await read('text/plain'), false)))
    const { families } = await metrics.collect()
    expect(families.map(({ name }) => name)).toEqual(metrics.families.map(({ name }) => name))
    const suffix = { gauge: '', counter: '_total', histogram: '', info: '_info' }
    const collected = families.flatMap(({ name, type, samples }) =>
      samples.map(({ labels, part }) => ({
        name: part ? `${name}_${part}` : name + suffix[type],
        labels: { ...labels },
      })),
    )
    expect(collected).toEqual(open)
    for (const { labels, samples } of families)
      for (const sample of samples) expect(labels).toEqual(expect.arrayContaining(Object.keys(sample.labels)))
  })

  it.each([
    ['X-Admin-Key', apiKeyAuth(KEY), { 'x-admin-key': KEY }, 200],
    ['the same key as a bearer token', apiKeyAuth(KEY), { authorization: `Bearer ${KEY}` }, 200],
    ['a bearer token', bearerAuth(KEY), { authorization: `Bearer ${KEY}` }, 200],
    ['another token', apiKeyAuth(KEY), { authorization: 'Bearer wrong' }, 403],
    [
      'a wrong key with the right token',
      apiKeyAuth(KEY),
      { 'x-admin-key': 'wrong', authorization: `Bearer ${KEY}` },
      403,
    ],
    ['a password', apiKeyAuth(KEY), { authorization: `Basic ${KEY}` }, 403],
    ['nothing', apiKeyAuth(KEY), {}, 403],
  ] as const)('%s', async (_, auth, headers, status) => {
    const summary = vi.fn()
    const inspectors =
      status === 200 ? {} : changed(({ delivery }) => ({ delivery: { ...delivery, summary } as never }))
    const response = await subject({ auth, inspectors })(request({ ...headers }))
    expect(response.status).toBe(status)
    if (status === 403) expect(await response.json()).toMatchObject({ code: 'forbidden' })
    expect(summary).not.toHaveBeenCalled()
  })

  it('under strict, without a key, answers this machine alone', async () => {
    const metrics = subject({ auth: resolveAdminAuth({ strict: true, host: '127.0.0.1', env: {} }), onError: null })
    const from = async (remoteAddress: string) => metrics(request(), { remoteAddress })
    expect((await from('127.0.0.1')).status).toBe(200)
    const refused = await from('192.0.2.7')
    expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'admin_key_required' }])
  })

  it('an authenticator that throws or never settles rejects every caller; its error is reported to the host only', async () => {
    const heard: unknown[] = []
    const onError = (error: unknown) => heard.push(error)
    const thrown = { authenticate: () => Promise.reject(new Error('s3cr3t')) }
    const response = await subject({ auth: thrown, onError })(request())
    expect([response.status, (await response.text()).includes('s3cr3t')]).toEqual([403, false])
    expect(heard).toMatchObject([{ message: 's3cr3t' }])
    expect((await subject({ auth: { authenticate: never }, deadlineMs: 30 })(request())).status).toBe(403)
  })

  it('those who scrape at once share one reading; who comes later gets a new one', async () => {
    let asked = 0
    const held: (() => void)[] = []
    const inspectors = changed(({ delivery }) => ({
      delivery: {
        ...delivery,
        async summary(ctx: InspectionContext) {
          asked += 1
          await new Promise<void>((resolve) => held.push(resolve))
          return delivery.summary(ctx)
        },
      },
    }))
    const metrics = subject({ inspectors, deadlineMs: 30_000 })
    const all = [metrics(request()), metrics(request({ accept: OPEN })), metrics.collect()]
    await vi.waitFor(() => expect(held).toHaveLength(1), { timeout: 300_000 })
    for (const release of held.splice(0)) release()
    await Promise.all(all)
    expect(asked).toBe(1)
    const later = metrics(request())
    await vi.waitFor(() => expect(held).toHaveLength(1), { timeout: 300_000 })
    for (const release of held.splice(0)) release()
    await later
    expect(asked).toBe(2)
  })

  it('answers problems as the routers do', async () => {
    const metrics = subject({ prefix: '/ops/metrics' })
    const answer = async (path: string, method = 'GET') => {
      const response = await metrics(request({}, path, { method }))
      return [response.status, method === 'HEAD' ? '' : ((await response.text()).match(/"code":"(\w+)"/)?.[1] ?? '')]
    }
    expect(await answer('/ops/metrics')).toEqual([200, ''])
    expect(await answer('/ops/metrics', 'HEAD')).toEqual([200, ''])
    expect(await answer('/ops/metrics', 'POST')).toEqual([405, 'method_not_allowed'])
    expect(await answer('/ops/metrics/more')).toEqual([404, 'route_not_found'])
    expect(await answer('/ops/metrics?name=x')).toEqual([422, 'invalid_query'])
    expect(['/ops/metrics', '/ops/metrics/', '/ops', '/metrics'].map(metrics.owns)).toEqual([true, true, false, false])
    expect(metrics.prefix).toBe('/ops/metrics')
  })

  it('reports at most a hundred errors of one scrape', async () => {
    const rows = Array.from({ length: 150 }, (_, i) => ({ site_id: i }))
    const sites = { listSites: () => ({ items: rows, next_cursor: null, has_more: false }), getSite: () => null }
    const onError = vi.fn()
    const families = await scrape({ inspectors: { sites } as never, onError })
    expect(onError).toHaveBeenCalledTimes(100)
    expect(onError.mock.calls[0]?.[1]).toEqual({ source: 'sites' })
    expect(seriesValue(families, 'relayscope_source_complete', { source: 'sites' })).toBe(0)
  })

  it.each([
    [{ auth: undefined }, /Missing required option "auth"/],
    [{ inspectors: { delivery: {} } }, /Invalid option "inspectors\.delivery"/],
    [{ labels: { users: ['ada'] } }, /Unknown option "labels\.users"/],
    [
      { labels: { scopes: 'acme' } },
      /Invalid option "labels\.scopes": expected an array of .* scope ids, got a string/,
    ],
    [{ labels: { scopes: ['a\nb'] } }, /Invalid option "labels\.scopes": expected .* valid scope ids/],
    [{ labels: { scopes: [7] } }, /Invalid option "labels\.scopes": expected .* valid scope ids/],
    [{ labels: { scopes: Array.from({ length: 51 }, (_, i) => `s-${i}`) } }, /at most 50/],
    [{ examined: 10_001 }, /Invalid option "examined": expected an integer from 1 to 10000, got 10001/],
    [{ deadlineMs: 0 }, /deadlineMs/],
    [{ deployment: { id: 3, mode: 'direct' } }, /deployment\.id/],
    [{ prefix: 'metrics' }, /Invalid option "prefix": expected an empty string or a path that starts with/],
    [{ prefx: '' }, /prefx/],
  ])('%j is refused by name', (options, reason) => {
    expect(() => subject(options as never)).toThrow(reason)
  })
})
