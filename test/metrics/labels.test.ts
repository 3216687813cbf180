import { describe, expect, it } from 'vitest'
import { emptyHistograms, measure } from '../../src/internal/contract/delivery-rules.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { parseText, seriesValue } from './parse.js'
import { changed, OPEN, request, scrape, subject } from './subject.js'

describe('nodes and scopes', () => {
  const NODE = {
    node_id: 'relay-1',
    stale: false,
    staleness_ms: 1_500,
    counters: { recovery: { ack_timeout: 3 }, outcome: { resulted: 9 }, acknowledgement: {}, other: {} },
  }

  it('a node has its counters under its own name, so that its restart is a reset of its own', async () => {
    const world = { nodes: [NODE, { ...NODE, node_id: 'relay-2', stale: true }] }
    const families = await scrape({ inspectors: createFakeInspectors({ delivery: world } as never) })
    const recoveries = families.get('relayscope_delivery_node_recoveries')
    expect(recoveries).toMatchObject({
      type: 'counter',
      samples: [
        { labels: { node_id: 'relay-1', reason: 'ack_timeout' }, value: 3 },
        { labels: { node_id: 'relay-2', reason: 'ack_timeout' }, value: 3 },
      ],
    })
    expect(seriesValue(families, 'relayscope_delivery_nodes', { state: 'stale' })).toBe(1)
    expect(seriesValue(families, 'relayscope_delivery_node_silence_seconds', { node_id: 'relay-1' })).toBe(1.5)
  })

  it('a node has a histogram for each step that was measured', async () => {
    const latency = emptyHistograms()
    for (const handover of [5, 6, 4_000, 7_200_000]) measure(latency, { handover, total: 10 })
    const world = {
      nodes: [
        { ...NODE, latency },
        { ...NODE, node_id: 'relay-2', latency: null },
      ],
    }
    const families = await scrape({ inspectors: createFakeInspectors({ delivery: world } as never) })
    const { type, unit, samples = [] } = families.get('relayscope_delivery_node_step_seconds') ?? {}
    expect([type, unit]).toEqual(['histogram', 'seconds'])
    expect(samples.every(({ labels }) => labels.node_id === 'relay-1')).toBe(true)
    const handover = samples.filter(({ labels }) => labels.step === 'handover')
    const buckets = handover.filter(({ name }) => name.endsWith('_bucket'))
    expect(buckets.map(({ labels, value }) => `${labels.le} ${value}`)).toEqual([
      ...['0.005 1', '0.01 2', '0.025 2', '0.05 2', '0.1 2', '0.25 2', '0.5 2', '1.0 2', '2.5 2', '5.0 3', '10.0 3'],
      ...['30.0 3', '60.0 3', '300.0 3', '3600.0 3', '+Inf 4'],
    ])
    expect(handover.slice(-2).map(({ name, value }) => [name.split('_').at(-1), value])).toEqual([
      ['count', 4],
      ['sum', 7_204.011],
    ])
    expect(samples.filter(({ labels }) => labels.step === 'outcome')).toEqual([])
  })

  it('names no more nodes than its bound, and is then not complete', async () => {
    const nodes = Array.from({ length: 150 }, (_, i) => ({ ...NODE, node_id: `n-${i}` }))
    const families = await scrape({ inspectors: createFakeInspectors({ delivery: { nodes } } as never) })
    expect(families.get('relayscope_delivery_node_stale')?.samples).toHaveLength(100)
    expect(seriesValue(families, 'relayscope_source_complete', { source: 'delivery' })).toBe(0)
  })

  it('hostile names are escaped, omitted if invalid, and never make a scrape invalid', async () => {
    const ids = ['say "no"', 'back\\slash', 'b{a="c"} 9', 'line\nbreak', 'x'.repeat(300), 'twice', 'twice', ' ']
    const inspectors = changed(({ delivery }) => ({
      delivery: {
        ...delivery,
        listNodes: () => ({
          items: ids.map((node_id) => ({ ...NODE_RECORD, node_id })),
          next_cursor: null,
          has_more: false,
        }),
      } as never,
    }))
    for (const [accept, open] of [
      [OPEN, true],
      ['text/plain', false],
    ] as const) {
      const text = await (
        await subject({ inspectors, deployment: { id: 'a"\n\ud800', mode: 'direct' } })(request({ accept }))
      ).text()
      const families = parseText(text, open)
      const named = families.get('relayscope_delivery_node_stale')?.samples.map(({ labels }) => labels.node_id)
      expect(named).toEqual(['say "no"', 'back\\slash', 'b{a="c"} 9', 'twice'])
      expect(seriesValue(families, 'relayscope_source_complete', { source: 'delivery' })).toBe(0)
      const [deployment] = families.get(`relayscope_deployment${open ? '' : '_info'}`)?.samples ?? []
      expect(deployment?.labels).toMatchObject({ deployment_id: 'a"\n\ufffd', mode: 'direct' })
    }
  })

  const NODE_RECORD = {
    mailbox_listener_alive: null,
    reconciliation_loop_alive: true,
    active_drainers: 0,
    connection_waiters: 0,
    updated_at: null,
    stale: false,
    staleness_ms: 0,
    counters: { recovery: {}, outcome: {}, acknowledgement: {}, other: {} },
  }

  const tenants = [
    { scope_id: 'acme', reserved_commands: 3, capacity: 10 },
    { scope_id: 'zoo', reserved_commands: 1 },
  ]

  it.each([true, false])('names the scopes that it may, and no other (by their id: %s)', async (byId) => {
    const { delivery } = createFakeInspectors({ delivery: { tenants } } as never)
    const inspectors = { delivery: byId ? delivery : { ...delivery, getTenant: undefined } } as Inspectors
    const none = await scrape({ inspectors })
    expect([...none.keys()].filter((name) => name.includes('_scope_'))).toEqual([])
    const families = await scrape({ inspectors, labels: { scopes: ['acme', 'empty'] } })
    const told = families.get('relayscope_delivery_scope_reserved_commands')?.samples
    expect(told?.map(({ labels, value }) => [labels.scope_id, value])).toEqual([
      ['acme', 3],
      ['empty', 0],
    ])
    expect(families.get('relayscope_delivery_scope_capacity')?.samples).toHaveLength(1)
  })

  it('says nothing of a scope that a part of the list did not name', async () => {
    const many = Array.from({ length: 30 }, (_, i) => ({ scope_id: `s-${i}` }))
    const { delivery } = createFakeInspectors({ delivery: { tenants: many } } as never)
    const inspectors = { delivery: { ...delivery, getTenant: undefined } } as Inspectors
    const families = await scrape({ inspectors, examined: 10, labels: { scopes: ['s-3', 's-20'] } })
    const told = families.get('relayscope_delivery_scope_reserved_commands')?.samples
    expect(told?.map(({ labels }) => labels.scope_id)).toEqual(['s-3'])
  })

  it('no user, client or command is a label', async () => {
    const text = await (await subject()(request())).text()
    expect(text).not.toMatch(/(user|client|command|instance|session|connection|correlation)_id=/)
    for (const { labels } of subject().families)
      expect(labels.filter((label) => label.endsWith('_id'))).toEqual(
        labels.filter((label) => ['node_id', 'scope_id', 'deployment_id'].includes(label)),
      )
  })
})
