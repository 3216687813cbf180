/** What every ingest must do, whatever its history and its deduplicator keep their messages in. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { AppendInput, SpillStore } from '../../src/internal/contract/history.js'
import type { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { deferred } from '../cooperative-site/deferred.js'
import { ASK } from './clock.js'

type Facilities = Pick<ReturnType<typeof createMemoryFacilities>, 'connections' | 'ingest' | 'deduplicator'> & {
  history: Pick<ReturnType<typeof createMemoryFacilities>['history'], 'inspector'>
}

/** A spill store whose first put waits until the test settles it. */
function createSlowSpill() {
  const texts = new Map<string, string>()
  const end = deferred<void>()
  const begun = deferred<void>()
  let puts = 0
  const spill: SpillStore = {
    async put(ref, text) {
      puts++
      begun.resolve()
      if (puts === 1) await end.promise
      texts.set(ref, text)
    },
    get: async (ref) => texts.get(ref) ?? null,
    delete: async (ref) => void texts.delete(ref),
  }
  return { spill, texts, end, begun }
}

/** @param make One node of a deployment that is the same for all calls within a test; `fresh` starts another one. */
export function ingestBattery(
  name: string,
  make: (options: { spill?: SpillStore; history?: { inlineBytes: number } }, fresh: boolean) => Facilities,
): void {
  describe(`ingest in ${name}`, () => {
    const me = { user_id: 'ann', client_id: 'desk', instance_id: 'i1' }
    let node: Facilities

    async function start(options: Parameters<typeof make>[0] = {}) {
      node = make({ history: { inlineBytes: 100 }, ...options }, true)
      await node.connections.connect({ ...me, client_type: 'web' })
      await node.connections.connect({ ...me, client_id: 'phone', instance_id: 'i2', client_type: 'mobile' })
    }
    beforeEach(() => start())

    const send = (message_id: string, over: Partial<AppendInput> = {}, on = node) =>
      on.ingest({ ...me, message_id, stream: 'log', kind: 'event', payload: 1, ...over })
    const held = async (stream = 'users/ann/log') =>
      (await node.history.inspector.readMessages({ stream, limit: 100 }, ASK)).items.map((m) => m.message_id)
    const large = { payload: 'x'.repeat(200) }
    const first = { client_id: 'desk', at: expect.any(String) }

    it('names the sender and time of the first message for a repeat', async () => {
      expect(await send('m')).toEqual({ accepted: true, duplicate: false })
      const again = await send('m', { client_id: 'phone', instance_id: 'i2', payload: 2 })
      expect(again).toEqual({ accepted: true, duplicate: true, first })
      expect(await held()).toEqual(['m'])
    })

    it('keeps messages of one id apart by their streams', async () => {
      expect(await send('m', { stream: 'sites/a/events' })).toMatchObject({ duplicate: false })
      expect(await send('m', { stream: 'sites/b/events' })).toMatchObject({ duplicate: false })
      expect([await held('users/ann/sites/a/events'), await held('users/ann/sites/b/events')]).toEqual([['m'], ['m']])
    })

    it('takes in what was claimed and never retained', async () => {
      await node.deduplicator.claim({ user_id: 'ann', stream: 'users/ann/log', message_id: 'm' })
      expect(await send('m')).toEqual({ accepted: true, duplicate: false })
      expect(await held()).toEqual(['m'])
    })

    it('lets the first attempt decide for a second one that comes while it is under way', async () => {
      const slow = createSlowSpill()
      await start({ spill: slow.spill })
      const attempts = [send('m', large), send('m', large)]
      await slow.begun.promise
      slow.end.resolve()
      expect(await Promise.all(attempts)).toEqual([
        { accepted: true, duplicate: false },
        { accepted: true, duplicate: true, first },
      ])
      expect([await held(), slow.texts.size]).toEqual([['m'], 1])
    })

    it('calls nothing a duplicate of a first attempt that failed', async () => {
      const slow = createSlowSpill()
      await start({ spill: slow.spill })
      const attempts = [send('m', large), send('m', large)]
      const settled = Promise.allSettled(attempts)
      await slow.begun.promise
      slow.end.reject(new Error('disk full'))
      for (const one of await settled)
        expect(one).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } })
      expect(await send('m', large)).toEqual({ accepted: true, duplicate: false })
      expect([await held(), slow.texts.size]).toEqual([['m'], 1])
    })

    it('refuses the streams that the relay alone writes, however they are named', async () => {
      for (const stream of ['clients/desk/commands', 'users/ann/clients/desk/commands', 'clients/%64esk/commands'])
        await expect(send('m', { stream })).rejects.toMatchObject({ code: 'forbidden' })
      expect(await held('users/ann/clients/desk/commands')).toEqual([])
      expect(await send('m', { stream: 'clients/desk/commands/mine' })).toMatchObject({ accepted: true })
    })

    it('refuses stream names that could not be requested, and counts none of them', async () => {
      for (const stream of ['a\nb', 'a\u202eb', '\ud800', 'a\u2028b', ' ', 'x'.repeat(2_045)])
        await expect(send('m', { stream })).rejects.toMatchObject({ code: 'invalid_input' })
      expect(await node.deduplicator.inspector.summary(ASK)).toMatchObject({ entries: 0, accepted: 0 })
    })

    it('fences before anything is claimed', async () => {
      await expect(send('m', { instance_id: 'old' })).rejects.toMatchObject({ code: 'stale_instance' })
      expect(await node.deduplicator.inspector.summary(ASK)).toMatchObject({ entries: 0 })
    })
  })
}
