import { describe, expect, it, vi } from 'vitest'
import type { InspectionContext } from '../../src/internal/contract/page.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { createWorld } from '../diagnostics/world.js'
import { parseText, seriesValue } from './parse.js'
import { changed, never, OPEN, request, scrape, subject, up } from './subject.js'

describe('a scrape', () => {
  it('says of every source that it is up, and what it answered', async () => {
    const families = await scrape()
    const summary = await createFakeInspectors(createWorld()).delivery?.summary({ signal: AbortSignal.timeout(1e3) })
    expect(families.get('relayscope_source_up')?.samples.map(({ labels, value }) => [labels.source, value])).toEqual(
      [
        'registry',
        'context_registry',
        'browser_window_registry',
        'rpc',
        'history',
        'deduplicator',
        'delivery',
        'sites',
        'sessions',
        'subscriptions',
      ].map((source) => [source, 1]),
    )
    expect(seriesValue(families, 'relayscope_delivery_tracked_commands')).toBe(summary?.tracked_commands)
    expect(seriesValue(families, 'relayscope_delivery_oldest_queued_age_sample_size')).toBe(summary?.sample_size)
    expect(families.get('relayscope_rpc_calls_opened')?.type).toBe('counter')
    expect(families.get('relayscope_source_duration_seconds')?.unit).toBe('seconds')
  })

  it('has no series of a source that is not part of the deployment', async () => {
    const { delivery } = createFakeInspectors(createWorld())
    const families = await scrape({ inspectors: { delivery } })
    expect(up(families, 'delivery')).toBe(1)
    expect(up(families, 'rpc')).toBeUndefined()
    expect([...families.keys()].filter((name) => /_rpc_|_sites|_sessions|_connections$/.test(name))).toEqual([])
  })

  it('tells a source that keeps no number from one that does not answer', async () => {
    const { history } = createFakeInspectors(createWorld())
    expect(up(await scrape({ inspectors: { history } }), 'history')).toBe(1)
    const broken = { ...history, listStreams: () => Promise.reject(new Error('lost')) } as never
    expect(up(await scrape({ inspectors: { history: broken } }), 'history')).toBe(0)
  })

  it('has no series for unknown values, and never 0 for them', async () => {
    const inspectors = changed(({ delivery, rpc }) => ({
      delivery: {
        ...delivery,
        summary: async (ctx: InspectionContext) => ({
          ...(await delivery.summary(ctx)),
          oldest_deadline_at: null,
          oldest_queued_age_ms: null,
          legacy_stream_depth: null,
          legacy_stream_lag: null,
          tracked_commands: 0,
        }),
      },
      rpc: { ...rpc, summary: undefined } as never,
    }))
    const families = await scrape({ inspectors })
    expect(seriesValue(families, 'relayscope_delivery_tracked_commands')).toBe(0)
    for (const name of ['oldest_deadline_timestamp_seconds', 'oldest_queued_age_seconds', 'legacy_stream_messages'])
      expect(families.has(`relayscope_delivery_${name}`)).toBe(false)
    expect([...families.keys()].filter((name) => name.startsWith('relayscope_rpc'))).toEqual([])
    expect(up(families, 'rpc')).toBe(1)
  })

  it.each([
    ['throws', () => Promise.reject(new Error('s3cr3t'))],
    [
      'throws at once',
      () => {
        throw new Error('s3cr3t')
      },
    ],
    ['answers no summary', () => 'none'],
    ['answers nothing', () => null],
  ])('a source that %s has no series of that, is not up, and the others are as they were', async (_, summary) => {
    const inspectors = changed(({ delivery }) => ({ delivery: { ...delivery, summary } as never }))
    const heard: unknown[] = []
    const metrics = subject({ inspectors, onError: (error, { source }) => heard.push([source, error]) })
    const text = await (await metrics(request({ accept: OPEN }))).text()
    const families = parseText(text, true)
    expect(up(families, 'delivery')).toBe(0)
    expect(seriesValue(families, 'relayscope_source_complete', { source: 'delivery' })).toBe(0)
    expect(families.has('relayscope_delivery_tracked_commands')).toBe(false)
    expect(families.has('relayscope_delivery_nodes')).toBe(true)
    expect(up(families, 'rpc')).toBe(1)
    expect(text).not.toMatch(/s3cr3t|NaN/)
    expect(heard).toMatchObject([['delivery', expect.any(Error)]])
  })

  it('a summary with an invalid field has the series of the others, and its source is not complete', async () => {
    const summary = () => ({ tracked_commands: 'many', due_commands: 3 })
    const inspectors = changed(({ delivery }) => ({ delivery: { ...delivery, summary } as never }))
    const errors: string[] = []
    const metrics = subject({ inspectors, onError: (error) => errors.push(String(error)) })
    const families = parseText(await (await metrics(request({ accept: OPEN }))).text(), true)
    expect(up(families, 'delivery')).toBe(1)
    expect(seriesValue(families, 'relayscope_source_complete', { source: 'delivery' })).toBe(0)
    expect(seriesValue(families, 'relayscope_source_complete', { source: 'rpc' })).toBe(1)
    expect(families.has('relayscope_delivery_tracked_commands')).toBe(false)
    expect(seriesValue(families, 'relayscope_delivery_due_commands')).toBe(3)
    expect(errors).toEqual([expect.stringContaining('tracked_commands: expected')])
  })

  it('answers with what it has when its time is up, and gives up what is under way', async () => {
    let signal: AbortSignal | undefined
    const slow = (ctx: InspectionContext) => {
      signal = ctx.signal
      return never()
    }
    const inspectors = changed(({ delivery }) => ({ delivery: { ...delivery, summary: slow } }))
    const families = await scrape({ inspectors, deadlineMs: 1_000 })
    expect(up(families, 'delivery')).toBe(0)
    expect(families.has('relayscope_delivery_tracked_commands')).toBe(false)
    expect(families.has('relayscope_delivery_nodes')).toBe(true)
    expect(up(families, 'registry')).toBe(1)
    await vi.waitFor(() => expect(signal?.aborted).toBe(true), { timeout: 300_000 })
  })

  it('a source that hangs does not block later scrapes: each read ends within its timeout', async () => {
    let asked = 0
    const hanging = () => {
      asked += 1
      return never()
    }
    const inspectors = changed(({ delivery }) => ({ delivery: { ...delivery, summary: hanging } }))
    const metrics = subject({ inspectors, deadlineMs: 1_000 })
    for (const times of [1, 2]) {
      const { families } = await metrics.collect()
      expect(asked).toBe(times)
      const down = families
        .find(({ name }) => name === 'relayscope_source_up')
        ?.samples.filter(({ value }) => value === 0)
      expect(down).toEqual([{ labels: { source: 'delivery' }, value: 0 }])
    }
  })

  it('counts what keeps no number within its bound, and says that it is a sample', async () => {
    const sites = Array.from({ length: 30 }, (_, i) => ({ site_id: `site-${i}`, mode: 'observe' as const }))
    const inspectors = createFakeInspectors({ sites } as never)
    const sample = await scrape({ inspectors, examined: 10 })
    expect(seriesValue(sample, 'relayscope_sites', { mode: 'observe' })).toBe(10)
    expect(seriesValue(sample, 'relayscope_sites_sample_size')).toBe(10)
    expect(seriesValue(sample, 'relayscope_source_complete', { source: 'sites' })).toBe(0)
    const whole = await scrape({ inspectors, examined: 100 })
    expect(seriesValue(whole, 'relayscope_sites', { mode: 'observe' })).toBe(30)
    expect(whole.has('relayscope_sites_sample_size')).toBe(false)
    expect(seriesValue(whole, 'relayscope_source_complete', { source: 'sites' })).toBe(1)
  })

  it('counts connected connections alone by the type of their client', async () => {
    const client = { user_id: 'ada', instance_id: 'run-1', client_type: 'mobile' }
    const connections = ['connected', 'connected', 'disconnected'].map((status, i) => ({
      ...client,
      connection_id: `c-${i}`,
      client_id: `phone-${i}`,
      status,
    }))
    const families = await scrape({ inspectors: createFakeInspectors({ connections } as never) })
    expect(seriesValue(families, 'relayscope_connections', { status: 'disconnected' })).toBe(1)
    expect(seriesValue(families, 'relayscope_connections_by_client_type', { client_type: 'mobile' })).toBe(2)
  })

  it('says of counts that a source cut short that they are a sample', async () => {
    const counts = { total: 7, by_status: { connected: 5, disconnected: 2 } }
    const by_client_type = { browser: 7, console: 0, mobile: 0, web: 0 }
    const counted = (truncated: boolean) =>
      changed(({ registry }) => ({
        registry: { ...registry, countConnections: () => ({ ...counts, by_client_type, truncated }) },
      }))
    const sample = await scrape({ inspectors: counted(true) })
    expect(seriesValue(sample, 'relayscope_connections', { status: 'connected' })).toBe(5)
    expect(seriesValue(sample, 'relayscope_connections_sample_size')).toBe(7)
    expect(seriesValue(sample, 'relayscope_source_complete', { source: 'registry' })).toBe(0)
    const whole = await scrape({ inspectors: counted(false) })
    expect(whole.has('relayscope_connections_sample_size')).toBe(false)
    expect(seriesValue(whole, 'relayscope_source_complete', { source: 'registry' })).toBe(1)
  })

  it('shows nothing of a list that failed half-way', async () => {
    const inspectors = changed(({ sites }) => ({
      sites: {
        ...sites,
        listSites: (filter: object, page: { cursor: string | null; limit: number }, ctx: InspectionContext) =>
          page.cursor === null
            ? Promise.resolve(sites.listSites(filter, { ...page, limit: 1 } as never, ctx)).then((first) => ({
                ...first,
                has_more: true,
                next_cursor: '1',
              }))
            : Promise.reject(new Error('lost')),
      },
    }))
    const families = await scrape({ inspectors })
    expect(families.has('relayscope_sites')).toBe(false)
    expect(up(families, 'sites')).toBe(0)
  })

  it('reads the last whole minute if it was observed, and none otherwise', async () => {
    const at = (minute: string) => ({ minute: `2026-01-01T00:${minute}:00.000Z` })
    const churn = (items: object[]) =>
      changed(({ registry }) => ({
        registry: { ...registry, connectionChurn: () => ({ items, observed_at: '2026-01-01T00:05:30.000Z' }) } as never,
      }))
    const whole = { ...at('04'), opened: 7, ended: { heartbeat_lost: 2, 'Not A Reason': 1 } }
    const underWay = { ...at('05'), opened: 1, ended: {} }
    const families = await scrape({ inspectors: churn([whole, underWay]) })
    expect(seriesValue(families, 'relayscope_connections_last_minute_opened')).toBe(7)
    expect(seriesValue(families, 'relayscope_connections_last_minute_ended', { reason: 'heartbeat_lost' })).toBe(2)
    expect(seriesValue(families, 'relayscope_connections_last_minute_ended', { reason: 'other' })).toBe(1)
    const reasons = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`reason_${i}`, 1]))
    const many = await scrape({ inspectors: churn([{ ...whole, ended: reasons }]) })
    const ended = many.get('relayscope_connections_last_minute_ended')?.samples
    expect(ended).toHaveLength(32)
    expect(ended?.reduce((sum, { value }) => sum + value, 0)).toBe(60)
    const unwatched = await scrape({ inspectors: churn([{ ...whole, ...at('02') }, underWay]) })
    expect([...unwatched.keys()].filter((name) => name.includes('last_minute'))).toEqual([])
  })
})
