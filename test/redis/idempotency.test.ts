/** Idempotency keys over a shared store: the battery, two relays, and replies that are lost on the way. */
import { describe, expect, it } from 'vitest'
import type { createCooperativeActionGate } from '../../src/cooperative-site/index.js'
import {
  CLAIM_KEY,
  createRedisIdempotencyStore,
  KEEP_ANSWER,
  RELEASE_KEY,
} from '../../src/redis/idempotency/facility.js'
import { createStore } from '../../src/redis/store/store.js'
import { createClock } from '../contract/clock.js'
import { answer, claimOf, idempotencyBattery } from '../contract/idempotency.js'
import { bob, createWorld } from '../cooperative-site/gate-world.js'
import { lossyClient } from './lossy-client.js'
import { runsOf } from './lossy-plan.js'
import { describeStores } from './matrix.js'

describeStores('idempotency keys in Redis', (kind, place) => {
  idempotencyBattery(kind, (options) => createRedisIdempotencyStore({ ...place(), ...options }))

  describe('between relays', () => {
    const invoke = {
      session_id: 's1',
      action: 'archive_note',
      parameters: { id: 7 },
      viewer: bob,
      idempotency_key: 'k1',
    }

    it('return the outcome of the first call to a repeat at any relay', async () => {
      const deployment = place()
      let runs = 0
      const relays = [1, 2].map(
        () =>
          createWorld({
            idempotency: createRedisIdempotencyStore(deployment),
            connector: { call: async () => ++runs },
            newId: () => `i${runs}`,
          }).gate,
      )
      const [first, second] = relays as [(typeof relays)[0], (typeof relays)[0]]
      const done = await first.invoke(invoke)
      expect(await second.invoke(invoke)).toEqual(done)
      await expect(second.invoke({ ...invoke, parameters: { id: 8 } })).rejects.toMatchObject({
        code: 'idempotency_key_reused',
      })
      expect(runs).toBe(1)
    })

    it('refuse a repeat while the call is in progress elsewhere', async () => {
      const deployment = place()
      const make = (connector: Parameters<typeof createCooperativeActionGate>[0]['connector']) =>
        createWorld({ idempotency: createRedisIdempotencyStore(deployment), connector }).gate
      const other = make({ call: async () => 'twice' })
      const gate = make({
        async call() {
          await expect(other.invoke(invoke)).rejects.toMatchObject({ code: 'idempotency_in_progress' })
          return 'once'
        },
      })
      expect(await gate.invoke(invoke)).toMatchObject({ result: 'once' })
      expect(await other.invoke(invoke)).toMatchObject({ result: 'once' })
    })
  })

  describe('with replies that are lost or arrive twice', () => {
    it.each([
      ['lost', CLAIM_KEY],
      ['lost', KEEP_ANSWER],
      ['repeated', CLAIM_KEY],
      ['repeated', KEEP_ANSWER],
      ['repeated', RELEASE_KEY],
    ] as const)('run a call once, though one reply is %s', async (fault, script) => {
      const deployment = place()
      const { client, plan } = lossyClient(deployment.client)
      let runs = 0
      let isUp = script !== RELEASE_KEY
      const { gate } = createWorld({
        idempotency: createRedisIdempotencyStore({ ...deployment, client }),
        connector: { call: async () => ++runs },
        approve: () => isUp,
      })
      const invoke = () =>
        gate
          .invoke({ session_id: 's1', action: 'archive_note', viewer: bob, idempotency_key: 'k1' })
          .catch((error) => error.code)
      const met = plan.meet(fault, await runsOf(script))
      const first = await invoke()
      void met
      isUp = true
      // An unconfirmed claim is released: nothing was run under it, and its key is free. On a Cluster, a node that does
      // not know the script loses only that reply.
      if (script === CLAIM_KEY && fault === 'lost' && !kind.includes('cluster')) expect(first).toBe('unavailable')
      const second = await invoke()
      expect(second).toMatchObject({ status: 'succeeded', result: 1 })
      expect(runs).toBe(1)
    })

    it('count an answer once, however often its key is used again', async () => {
      const clock = createClock()
      const options = { ...place(), shards: 1, now: clock.now }
      const store = createRedisIdempotencyStore({ ...options, bytesPerViewer: 10_000 })
      const { key, command } = createStore(options)
      const row = key(0, 'idem', 'key', 's1', 'bob', 'k1')
      const sizes = [2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_001, 2_000, 2_000]
      for (const size of sizes) {
        const claim = claimOf()
        expect(await store.claim(claim)).toMatchObject({ state: 'claimed' })
        // Its key expires shortly after this answer.
        clock.advance(500_000)
        await store.keep(claim, answer(size))
        expect(await store.claim(claimOf())).toEqual({ state: 'ended', answer: answer(size) })
        clock.advance(100_000)
        // The store would do this by its own clock.
        await command(['DEL', row], row)
      }
    })

    it('keep a later answer of a key when its earlier one is dropped', async () => {
      const clock = createClock()
      const options = { ...place(), shards: 1, now: clock.now }
      const store = createRedisIdempotencyStore({ ...options, bytesPerViewer: 10_000 })
      const { key, command } = createStore(options)
      const row = key(0, 'idem', 'key', 's1', 'bob', 'k1')
      for (const [name, size] of [
        ['k1', 4_000],
        ['k1', 3_000],
        ['k2', 4_000],
      ] as const) {
        if (name === 'k1') await command(['DEL', row], row)
        const claim = claimOf({ key: name })
        await store.claim(claim)
        clock.advance(1)
        await store.keep(claim, answer(size))
      }
      expect(await store.claim(claimOf())).toEqual({ state: 'ended', answer: answer(3_000) })
      expect(await store.claim(claimOf({ key: 'k2' }))).toEqual({ state: 'ended', answer: answer(4_000) })
    })

    it('do not count the answer of a key that was replaced', async () => {
      const store = createRedisIdempotencyStore({ ...place(), keysPerViewer: 2, bytesPerViewer: 30_000 })
      const say = async (session_id: string, name: string) => {
        const claim = claimOf({ session_id, key: name })
        await store.claim(claim)
        await store.keep(claim, answer(8_000))
      }
      await say('s1', 'first')
      for (let n = 0; n < 10; n++) await say('s2', `k${n}`)
      expect(await store.claim(claimOf({ key: 'first' }))).toEqual({ state: 'ended', answer: answer(8_000) })
    })

    it('limit the stored answers of one viewer in bytes, but keep its keys', async () => {
      const store = createRedisIdempotencyStore({ ...place(), bytesPerViewer: 30_000 })
      for (const n of [0, 1, 2, 3, 4]) {
        const claim = claimOf({ key: `k${n}` })
        await store.claim(claim)
        await store.keep(claim, answer(10_000))
      }
      expect(await store.claim(claimOf({ key: 'k0' }))).toEqual({ state: 'ended', answer: null })
      expect(await store.claim(claimOf({ key: 'k4' }))).toEqual({ state: 'ended', answer: answer(10_000) })
    })
  })
})
