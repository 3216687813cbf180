import { describe, expect, it } from 'vitest'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { capabilitiesOf } from '../../src/internal/contract/capabilities.js'
import { createMemoryFacilities, createMessageHistory, memoryComposition } from '../../src/memory/index.js'
import { createMetrics } from '../../src/metrics/index.js'
import { ASK } from '../contract/clock.js'

const desk = { user_id: 'ann', client_id: 'desk', instance_id: 'one' }
const message = { ...desk, message_id: 'm', stream: 'sites/x/events', kind: 'event', payload: { name: 'x' } } as const

describe('the facilities of one process', () => {
  it('ingest a message of a current instance once, in the stream of its user', async () => {
    const facilities = createMemoryFacilities()
    await facilities.connections.connect({ ...desk, client_type: 'console' })
    expect(await facilities.ingest(message)).toEqual({ accepted: true, duplicate: false })
    expect(await facilities.ingest(message)).toEqual({
      accepted: true,
      duplicate: true,
      first: { client_id: 'desk', at: expect.any(String) },
    })
    const stream = 'users/ann/sites/x/events'
    expect((await facilities.history.inspector.readMessages({ stream, limit: 5 }, ASK)).items).toHaveLength(1)
    await expect(facilities.ingest({ ...message, instance_id: 'old' })).rejects.toMatchObject({
      code: 'stale_instance',
    })
    await facilities.close()
  })

  it('release a claim when the history could not retain the message', async () => {
    const facilities = createMemoryFacilities({ history: { inlineBytes: 10, maxPayloadBytes: 10 } })
    await facilities.connections.connect({ ...desk, client_type: 'console' })
    await expect(facilities.ingest(message)).rejects.toMatchObject({ code: 'payload_too_large' })
    expect(await facilities.ingest({ ...message, payload: 1 })).toEqual({ accepted: true, duplicate: false })
    await facilities.close()
  })

  it('retain a payload that is too large for its message, and return it', async () => {
    const facilities = createMemoryFacilities()
    await facilities.connections.connect({ ...desk, client_type: 'console' })
    const text = 'x'.repeat(200_000)
    await facilities.ingest({ ...message, payload: { name: 'x', data: text } })
    const read = await facilities.history.inspector.readMessages({ stream: 'users/ann/sites/x/events', limit: 5 }, ASK)
    expect(read.items[0]).toMatchObject({ payload: { data: text }, externalized: { hydration: 'hydrated' } })
    await facilities.close()
  })

  it('share the connections, so that all of them know the current instance', async () => {
    const facilities = createMemoryFacilities()
    await facilities.connections.connect({ ...desk, client_type: 'console' })
    expect(await facilities.rpc.inspector.checkInstance?.(desk, ASK)).toMatchObject({ current: true })
    await expect(
      (async () => facilities.dispatcher.attach({ ...desk, instance_id: 'old' }, () => {}))(),
    ).rejects.toMatchObject({ code: 'stale_instance' })
    await facilities.close()
  })

  it('end pending calls when they are closed', async () => {
    const facilities = createMemoryFacilities()
    const { result } = await facilities.rpc.open({ action: 'a', user_id: 'u', client_id: 'c' })
    await facilities.close()
    await expect(result).rejects.toMatchObject({ code: 'closed' })
    await facilities.close()
  })
})

describe('the memory composition', () => {
  it('inspects exactly the given facilities', async () => {
    const facilities = createMemoryFacilities()
    const { inspectors, deployment } = memoryComposition(facilities, { deploymentId: 'd1' })
    expect(deployment).toEqual({ id: 'd1', mode: 'direct' })
    expect(inspectors.registry).toBe(facilities.connections.inspector)
    expect(await inspectors.delivery?.summary(ASK)).toMatchObject({ deployment_id: 'd1', mode: 'direct' })
    expect(await inspectors.delivery?.listTenants({ limit: 5, cursor: null }, ASK)).toMatchObject({ items: [] })
    expect(memoryComposition(facilities).inspectors.delivery).toBe(facilities.dispatcher.inspector)
    const { extensions, ...flags } = capabilitiesOf(inspectors)
    expect(Object.values(flags)).toEqual(Array(11).fill(true))
    await facilities.close()
  })

  it('reports a missing family as unknown, never as zero', async () => {
    const { connections } = createMemoryFacilities()
    await connections.connect({ ...desk, client_type: 'console' })
    const composition = { ...memoryComposition({ connections }), auth: noopAuth() }
    const router = createDiagnosticsRouter(composition)
    const ask = async (path: string) => {
      const response = await router(new Request(`http://relay${path}`))
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    expect((await ask('/users')).body.items).toMatchObject([
      { user_id: 'ann', observed_connections: 1, observed_contexts: null, observed_browser_windows: null },
    ])
    for (const path of [
      '/contexts',
      '/browser-windows',
      '/rpc/pending',
      '/delivery/summary',
      '/history/streams',
      '/sites',
    ])
      expect(await ask(path), path).toMatchObject({ status: 501, body: { code: 'inspector_absent' } })
    const series = await (await createMetrics(composition)(new Request('http://relay/metrics'))).text()
    expect(series).toMatch(/^relayscope_connections\{/m)
    expect(series).not.toMatch(/^relayscope_(contexts|browser_windows|rpc|delivery|history|sites|sessions)/m)
  })

  it('accepts any subset: a missing facility is a missing inspector', () => {
    const { inspectors, deployment } = memoryComposition({ history: createMessageHistory() })
    expect(deployment).toEqual({ id: null, mode: 'direct' })
    expect(capabilitiesOf(inspectors)).toMatchObject({ history: true, history_list_streams: true, registry: false })
    expect(capabilitiesOf(memoryComposition({}).inspectors).delivery).toBe(false)
  })
})
