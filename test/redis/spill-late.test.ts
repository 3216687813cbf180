/** A spill store that stalls, fails late or replies late, while messages are retained in Redis. */
import { expect, it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { INGEST_MESSAGE } from '../../src/redis/history/facility.js'
import { createStore } from '../../src/redis/store/store.js'
import { ASK, createClock } from '../contract/clock.js'
import { createFlakySpill } from '../contract/history.js'
import { deferred } from '../cooperative-site/deferred.js'
import { closedAfterTest } from './closing.js'
import { lossyClient } from './lossy-client.js'
import { runsOf } from './lossy-plan.js'
import { describeStores, type Place } from './matrix.js'
import { soon } from './wait-for.js'

const me = { user_id: 'ann', client_id: 'desk', instance_id: 'i1' }
const sent = (message_id: string) => ({
  ...me,
  message_id,
  stream: 'log',
  kind: 'event' as const,
  payload: 'x'.repeat(200),
})
/** Longer than a payload may be on its way into its message, and shorter than a silent connection counts as there. */
const GIVEN_UP_MS = 85_000

/** A spill store whose first put is controlled by the test. */
function createLateSpill() {
  const spill = createFlakySpill()
  const begun = deferred<string>()
  const end = deferred<void>()
  let puts = 0
  const late = {
    ...spill,
    async put(ref: string, text: string) {
      if (++puts === 1) {
        begun.resolve(ref)
        await end.promise
      }
      spill.texts.set(ref, text)
    },
  }
  return { late, spill, begun, end }
}

describeStores('a payload that is spilled late', (_kind, place) => {
  async function nodeOf(where: Place, options: object) {
    const node = closedAfterTest(createRedisFacilities({ ...where, ...options }))
    await node.connections.connect({ ...me, client_type: 'web' })
    return {
      send: (message_id: string) => node.ingest(sent(message_id)),
      /** Returns the messages whose payload can be read. */
      held: async () => {
        const { items } = await node.history.inspector.readMessages({ stream: 'users/ann/log', limit: 9 }, ASK)
        return items.map((m) => [m.message_id, m.externalized?.hydration])
      },
    }
  }
  const loose = async (where: Place) => {
    const store = createStore(where)
    const key = store.key(await store.shardOf('ann'), 'spilled', 'loose')
    return store.command(['ZCARD', key], key)
  }

  it.each([
    ['comes after all', (end: ReturnType<typeof deferred<void>>) => end.resolve()],
    ['fails in the end', (end: ReturnType<typeof deferred<void>>) => end.reject(new Error('disk full'))],
    ['hangs for good', () => {}],
  ])('is in no message when its put %s, and its message is retained when it is sent again', async (_, ends) => {
    const where = place()
    const { late, spill, end } = createLateSpill()
    const node = await nodeOf(where, { spill: late, history: { inlineBytes: 100, spillMs: 20 } })
    await expect(node.send('m')).rejects.toMatchObject({ code: 'unavailable' })
    expect(await node.held()).toEqual([])
    ends(end)
    expect(await node.send('m')).toEqual({ accepted: true, duplicate: false })
    expect(await node.held()).toEqual([['m', 'hydrated']])
    await soon(() => expect(spill.texts.size).toBe(1))
  })

  it('is deleted by a later writer after its time, if its message never came', async () => {
    const where = place()
    const clock = createClock()
    const spill = createFlakySpill()
    const { client, plan } = lossyClient(where.client)
    const options = { spill, now: clock.now, history: { inlineBytes: 100, spillMs: 2_000 } }
    const [dying, next] = [
      await nodeOf({ ...where, client }, { ...options, commandTimeoutMs: 2_000 }),
      await nodeOf(where, options),
    ]
    void plan.meet('unsent', await runsOf(INGEST_MESSAGE))
    await expect(dying.send('lost')).rejects.toMatchObject({ code: 'unavailable' })
    expect([spill.texts.size, await loose(where)]).toEqual([1, 1])
    // Possibly still in transit.
    await next.send('m1')
    expect([spill.texts.size, await loose(where)]).toEqual([2, 1])
    clock.advance(GIVEN_UP_MS)
    await next.send('m2')
    await soon(async () => expect([spill.texts.size, await loose(where)]).toEqual([2, 0]))
    expect(await next.held()).toEqual([
      ['m1', 'hydrated'],
      ['m2', 'hydrated'],
    ])
  })

  it('is in no message, and left nowhere, if it was deleted before it arrived', async () => {
    const where = place()
    const clock = createClock()
    const { late, spill, begun, end } = createLateSpill()
    const options = { now: clock.now, history: { inlineBytes: 100, spillMs: 20_000 } }
    const [slow, next] = [await nodeOf(where, { ...options, spill: late }), await nodeOf(where, { ...options, spill })]
    const sending = slow.send('m')
    sending.catch(() => {})
    await begun.promise
    clock.advance(GIVEN_UP_MS)
    await next.send('other')
    await soon(async () => expect(await loose(where)).toBe(0))
    end.resolve()
    await expect(sending).rejects.toMatchObject({ code: 'unavailable' })
    expect(await slow.held()).toEqual([['other', 'hydrated']])
    await soon(() => expect(spill.texts.size).toBe(1))
    expect(await slow.send('m')).toEqual({ accepted: true, duplicate: false })
    expect(spill.texts.size).toBe(2)
  })
})
