/** Liveness and readiness: what they depend on, what they say, and what they never say. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createProbes, type ProbesOptions } from '../../src/probes/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { node } from '../diagnostics/world.js'

const never = () => new Promise<never>(() => {})

async function ask(probes: ReturnType<typeof createProbes>, path = '/readyz', init?: RequestInit) {
  const response = await probes(new Request(`http://localhost${path}`, init))
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
}
const checksOf = async (options: Partial<ProbesOptions>) => {
  const { status, text } = await ask(createProbes({ inspectors: {}, onError: null, ...options }))
  const { status: said, checks } = JSON.parse(text)
  expect(said).toBe(status === 200 ? 'pass' : 'fail')
  return [
    status,
    Object.fromEntries(Object.entries<[{ status: string }]>(checks).map(([name, [one]]) => [name, one.status])),
  ]
}
/** Inspectors of a world with nodes, and a source that is asked `ping`. */
const withPing = (ping: () => unknown, nodes = [node()]) => {
  const { delivery } = createFakeInspectors({ delivery: { nodes } })
  return { delivery: { ...delivery, ping } } as ProbesOptions['inspectors']
}

describe('/readyz', () => {
  it('is 200 while every source answers and the loop runs, and names no id and no count', async () => {
    const facilities = createMemoryFacilities({ nodeId: 'node-7' })
    onTestFinished(async () => void (await facilities.close()))
    await facilities.connections.connect({ user_id: 'ada', client_id: 'desk', instance_id: 'i', client_type: 'web' })
    const { inspectors } = memoryComposition(facilities)
    const probes = createProbes({ inspectors, nodeId: 'node-7' })
    const { status, type, text } = await ask(probes)
    expect([status, type]).toEqual([200, 'application/health+json'])
    expect(JSON.parse(text)).toEqual({
      status: 'pass',
      checks: { sources: [{ status: 'pass' }], loop: [{ status: 'pass' }], serving: [{ status: 'pass' }] },
    })
    expect(text).not.toMatch(/\d|ada|node/)
  })

  it.each([
    ['fails', () => Promise.reject(new Error('s3cret'))],
    [
      'throws',
      () => {
        throw new Error('s3cret')
      },
    ],
    ['hangs', never],
  ])('is 503 while a source %s, which only onError receives', async (_what, ping) => {
    const onError = vi.fn()
    const probes = createProbes({ inspectors: withPing(ping), onError, deadlineMs: 50 })
    const { status, text } = await ask(probes)
    expect([status, JSON.parse(text).checks.sources]).toEqual([503, [{ status: 'fail' }]])
    expect(text).not.toContain('s3cret')
    expect(onError).toHaveBeenCalledWith(expect.any(Error), { source: 'delivery' })
    expect((await ask(probes, '/livez')).status).toBe(200)
  })

  it.each([
    ['runs', node({ node_id: 'me' }), 'pass'],
    ['does not run', node({ node_id: 'me', reconciliation_loop_alive: false }), 'fail'],
    ['is silent', node({ node_id: 'me', stale: true, reconciliation_loop_alive: null }), 'fail'],
    ['is not listed', node({ node_id: 'other' }), 'fail'],
    [
      'does not know whether it has a loop',
      node({ node_id: 'me', reconciliation_loop_alive: null, stale: null }),
      'pass',
    ],
  ])('looks for its own node, behind many others: one that %s', async (_what, own, expected) => {
    const others = Array.from({ length: 250 }, (_, i) => node({ node_id: `a-${i}`, reconciliation_loop_alive: false }))
    const inspectors = withPing(() => undefined, [...others, own])
    expect(await checksOf({ inspectors, nodeId: 'me' })).toEqual([
      expected === 'pass' ? 200 : 503,
      { sources: 'pass', loop: expected, serving: 'pass' },
    ])
  })

  it('is 503 after drain, without a look at the sources', async () => {
    const ping = vi.fn()
    const probes = createProbes({ inspectors: withPing(ping) })
    probes.drain()
    expect(await ask(probes)).toMatchObject({
      status: 503,
      text: '{"status":"fail","checks":{"serving":[{"status":"fail"}]}}',
    })
    expect(ping).not.toHaveBeenCalled()
    expect((await ask(probes, '/livez')).status).toBe(200)
  })

  it('asks once for requests at the same time and for a while, and once for sources that share a ping', async () => {
    const ping = vi.fn(async () => void (await sleep(5)))
    const { delivery, rpc, sites } = createFakeInspectors({ delivery: {}, calls: [], sites: [] })
    const inspectors = { delivery: { ...delivery, ping }, rpc: { ...rpc, ping }, sites } as ProbesOptions['inspectors']
    const probes = createProbes({ inspectors, keepMs: 60_000 })
    await Promise.all([ask(probes), ask(probes), ask(probes)])
    await ask(probes)
    expect(ping).toHaveBeenCalledTimes(1)
    const again = createProbes({ inspectors, keepMs: 1 })
    await ask(again)
    await sleep(5)
    await ask(again)
    expect(ping).toHaveBeenCalledTimes(3)
  })
})

it('answers only its two paths below its prefix, and only GET and HEAD', async () => {
  const probes = createProbes({ inspectors: {}, prefix: '/ops/health' })
  expect([createProbes({ inspectors: {} }).owns('/livez'), createProbes({ inspectors: {} }).owns('/')]).toEqual([
    true,
    false,
  ])
  expect([probes.prefix, probes.owns('/ops/health/livez'), probes.owns('/livez')]).toEqual(['/ops/health', true, false])
  expect((await ask(probes, '/ops/health/livez')).status).toBe(200)
  expect((await ask(probes, '/ops/health/readyz', { method: 'HEAD' })).text).toBe('')
  expect((await ask(probes, '/ops/health/other')).status).toBe(404)
  expect((await ask(probes, '/ops/health/livez', { method: 'POST' })).status).toBe(405)
})

it('refuses a node whose loop nothing can tell', () => {
  expect(() => createProbes({ inspectors: {}, nodeId: 'a' })).toThrow('Invalid option "nodeId"')
  expect(() => createProbes({ inspectors: {}, nodeid: 'a' } as never)).toThrow('Unknown option "nodeid"')
})
