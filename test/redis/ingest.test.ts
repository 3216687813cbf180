import { expect, it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { INGEST_MESSAGE } from '../../src/redis/history/facility.js'
import { ASK } from '../contract/clock.js'
import { createFlakySpill } from '../contract/history.js'
import { ingestBattery } from '../contract/ingest.js'
import { deferred } from '../cooperative-site/deferred.js'
import { closedAfterTest } from './closing.js'
import { lossyClient } from './lossy-client.js'
import { runsOf } from './lossy-plan.js'
import { describeStores, type Place } from './matrix.js'

const me = { user_id: 'ann', client_id: 'desk', instance_id: 'i1' }
const message = { ...me, message_id: 'm', stream: 'log', kind: 'event' as const }

describeStores('the ingest over Redis', (kind, place) => {
  ingestBattery(kind, (options) => closedAfterTest(createRedisFacilities({ ...place(), ...options })))

  const nodeOf = (where: Place, more = {}) =>
    closedAfterTest(createRedisFacilities({ ...where, ...more, history: { inlineBytes: 100 } }))

  it('keeps one payload when two nodes ingest the same message', async () => {
    const where = place()
    const spill = createFlakySpill()
    const begun = deferred<void>()
    const end = deferred<void>()
    const slow = {
      ...spill,
      async put(ref: string, text: string) {
        begun.resolve()
        await end.promise
        spill.texts.set(ref, text)
      },
    }
    const [a, b] = [nodeOf(where, { spill: slow }), nodeOf(where, { spill })]
    await a.connections.connect({ ...me, client_type: 'web' })
    const sent = { ...message, payload: 'x'.repeat(200) }
    const first = a.ingest(sent)
    await begun.promise
    expect(await b.ingest(sent)).toEqual({ accepted: true, duplicate: false })
    end.resolve()
    expect(await first).toMatchObject({ accepted: true, duplicate: true })
    const { items } = await b.history.inspector.readMessages({ stream: 'users/ann/log', limit: 9 }, ASK)
    expect(items).toMatchObject([{ message_id: 'm', externalized: { hydration: 'hydrated' } }])
    expect(spill.texts.size).toBe(1)
  })

  it('retains the message once when the reply is lost, and when the script arrives twice', async () => {
    for (const fault of ['lost', 'repeated'] as const) {
      const where = place()
      const { client, plan } = lossyClient(where.client)
      const node = nodeOf({ ...where, client }, { commandTimeoutMs: 10_000 })
      await node.connections.connect({ ...me, client_type: 'web' })
      await node.ingest({ ...message, message_id: 'before' })
      void plan.meet(fault, await runsOf(INGEST_MESSAGE))
      await node.ingest(message).catch(() => {})
      expect(await node.ingest(message)).toMatchObject({ accepted: true, duplicate: true })
      const { items } = await node.history.inspector.readMessages({ stream: 'users/ann/log', limit: 9 }, ASK)
      expect(items.map((m) => m.message_id)).toEqual(['before', 'm'])
    }
  })
})
