/** Nodes of a delivery system that is not ours, which knows of its workers that they are there, and little else. */
import { describe, expect, it } from 'vitest'
import type { DeliveryInspector, DeliveryNode } from '../../src/internal/contract/delivery.js'
import { METADATA_BYTES } from '../../src/internal/contract/limits.js'
import { deliveryContract } from '../../src/testing/delivery.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject, get } from './subject.js'

/** What a queue says of its workers: a name, an address, and since when it waits. It has no reports and no counters. */
const WORKERS = ['reports:1', 'reports:2', 'mails:1'].map((name) => ({ name, addr: '10.0.0.7:41822', idle: '3' }))

function toNode({ name, addr, idle }: (typeof WORKERS)[number]): DeliveryNode {
  return {
    node_id: name,
    mailbox_listener_alive: null,
    reconciliation_loop_alive: null,
    active_drainers: null,
    connection_waiters: null,
    updated_at: null,
    stale: null,
    staleness_ms: null,
    counters: { recovery: {}, outcome: {}, acknowledgement: {}, other: {} },
    metadata: { addr, idle },
  }
}

/** Delivery over such a queue: its jobs are commands, its job counts the summary. */
function foreignDelivery(nodes: readonly DeliveryNode[] = WORKERS.map(toNode)): DeliveryInspector {
  const { delivery } = createFakeInspectors({ delivery: { summary: { tracked_commands: 7, due_commands: 2 } } })
  const others = delivery as DeliveryInspector
  return {
    summary: (ask) => others.summary(ask),
    listTenants: (page, ask) => others.listTenants(page, ask),
    status: (key, ask) => others.status(key, ask),
    listNodes({ cursor, limit }) {
      const from = cursor === null ? 0 : Number(cursor)
      const items = nodes.slice(from, from + limit)
      const has_more = from + limit < nodes.length
      return { items, has_more, next_cursor: has_more ? String(from + limit) : null }
    },
  }
}

describe('nodes of another system', () => {
  it('are returned unchanged, with null for unknown fields', async () => {
    const { status, body } = await get(
      createSubject({ inspectors: { delivery: foreignDelivery() } }),
      '/delivery/nodes',
    )
    expect(status).toBe(200)
    const items = WORKERS.map((worker) => ({ ...toNode(worker), latency: null }))
    expect(body).toEqual({ items, next_cursor: null, has_more: false })
  })

  it('are returned a page at a time', async () => {
    const router = createSubject({ inspectors: { delivery: foreignDelivery() } })
    const { body: first } = await get(router, '/delivery/nodes?limit=2')
    expect(first).toMatchObject({ items: [{ node_id: 'reports:1' }, { node_id: 'reports:2' }], has_more: true })
    const { body: next } = await get(router, `/delivery/nodes?limit=2&cursor=${first.next_cursor}`)
    expect(next).toMatchObject({ items: [{ node_id: 'mails:1', stale: null }], has_more: false })
  })

  it('take nothing from the summary', async () => {
    const { status, body } = await get(
      createSubject({ inspectors: { delivery: foreignDelivery() } }),
      '/delivery/summary',
    )
    expect([status, body.tracked_commands, body.due_commands]).toEqual([200, 7, 2])
  })

  it.each(deliveryContract(foreignDelivery))('pass the contract suite: $name', async ({ run }) => {
    await run()
  })

  it.each(
    deliveryContract(() => createFakeInspectors({ delivery: { nodes: WORKERS.map(toNode) } }).delivery),
  )('pass it as fakes too: $name', async ({ run }) => {
    await run()
  })

  it('are complete when faked from an id: all other fields are null', async () => {
    const inspectors = createFakeInspectors({ delivery: { nodes: [{ node_id: 'mails:1', stale: null }] } })
    const { body } = await get(createSubject({ inspectors }), '/delivery/nodes')
    expect(body.items).toEqual([{ ...toNode({ name: 'mails:1', addr: '', idle: '' }), metadata: null, latency: null }])
  })

  it('have metadata of 4,096 bytes at most: a node with more is left out, and onError hears why', async () => {
    const text = (bytes: number) => ({ text: 'x'.repeat(bytes - Buffer.byteLength(JSON.stringify({ text: '' }))) })
    const heard: unknown[] = []
    const nodeOf = (bytes: number): DeliveryNode => ({
      ...toNode({ name: `node-${bytes}`, addr: '', idle: '' }),
      metadata: text(bytes),
    })
    const fits = nodeOf(METADATA_BYTES)
    const router = createSubject({
      inspectors: { delivery: foreignDelivery([fits, nodeOf(METADATA_BYTES + 1)]) },
      onError: (error) => heard.push(String(error)),
    })
    const { body } = await get(router, '/delivery/nodes')
    expect(body).toEqual({ items: [{ ...fits, latency: null }], next_cursor: null, has_more: false, omitted: 1 })
    expect(heard).toEqual([expect.stringContaining('metadata: expected JSON of at most 4096 bytes')])
  })
})
