/** What every message history must do, whatever it keeps its messages in. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { Inspected } from '../../src/internal/contract/families.js'
import type { AppendInput, HistoryInspector, MessageHistory, SpillStore } from '../../src/internal/contract/history.js'
import type { Awaitable } from '../../src/internal/contract/page.js'
import { ASK, at, type Clock, createClock, walk } from './clock.js'
import { withSortedLists } from './parts.js'

export type HistoryFacility = Inspected<MessageHistory, HistoryInspector>

/** A spill store with configurable failures. */
export interface FlakySpill extends SpillStore {
  texts: Map<string, string>
  failing: boolean
}

export function createFlakySpill(): FlakySpill {
  const texts = new Map<string, string>()
  return {
    texts,
    failing: false,
    async put(ref, text) {
      if (this.failing) throw new Error('disk full')
      texts.set(ref, text)
    },
    async get(ref) {
      if (this.failing) throw new Error('disk gone')
      return texts.get(ref) ?? null
    },
    async delete(ref) {
      texts.delete(ref)
    },
  }
}

export function historyBattery(
  name: string,
  make: (options: {
    now: () => number
    maxPerStream: number
    maxMessages: number
    inlineBytes: number
    spill?: SpillStore
  }) => Awaitable<HistoryFacility>,
): void {
  describe(`history in ${name}`, () => {
    const STREAM = 'users/ann/sites/x/events'
    const bounds = { maxPerStream: 5, maxMessages: 12, inlineBytes: 1_024 }
    const large = { text: 'x'.repeat(2_000) }
    let clock: Clock
    let spill: FlakySpill
    let history: HistoryFacility

    beforeEach(async () => {
      clock = createClock()
      spill = createFlakySpill()
      history = await make({ now: clock.now, spill, ...bounds })
    })

    const append = (message_id: string, over: Partial<AppendInput> = {}) =>
      history.append({
        message_id,
        stream: STREAM,
        kind: 'event',
        user_id: 'ann',
        client_id: 'c',
        instance_id: 'i',
        ...over,
      })
    const read = async (stream = STREAM, limit = 100) => history.inspector.readMessages({ stream, limit }, ASK)
    const streams = (filter = {}) =>
      walk(async (page) => {
        const answer = await history.inspector.listStreams?.(filter, page, ASK)
        if (!answer) throw new Error('no streams')
        return answer
      }, 2)

    it('retains a message in full, and assigns its place and time', async () => {
      const payload = { name: 'changed', data: [1, null, 'é'] }
      const message = await append('m1', { payload })
      expect(message).toEqual({
        message_id: 'm1',
        stream: STREAM,
        sequence: 1,
        kind: 'event',
        user_id: 'ann',
        client_id: 'c',
        instance_id: 'i',
        recorded_at: at(),
        payload,
        externalized: null,
      })
      expect(await read()).toEqual({ items: [message], truncated: false })
    })

    it('shows the trace that a message was given, and none otherwise', async () => {
      const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
      await append('m-1', { trace, payload: large })
      await append('m-2')
      const [first, second] = (await read()).items
      expect(first).toMatchObject({ trace, trace_id: '4bf92f3577b34da6a3ce929d0e0e4736', payload: large })
      expect(second).not.toHaveProperty('trace')
      await expect(append('m-3', { trace: 'x' })).rejects.toMatchObject({ code: 'invalid_input' })
    })

    it('retains null where there is no payload', async () => {
      expect(await append('m1')).toMatchObject({ payload: null, externalized: null })
    })

    it('answers a repeated message with the retained one', async () => {
      const first = await append('m1', { payload: 1 })
      clock.advance(1_000)
      expect(await append('m1', { payload: 2 })).toEqual(first)
      expect((await append('m1', { stream: 'users/ann/other' })).sequence).toBe(1)
      expect((await read()).items).toHaveLength(1)
    })

    it('refuses an oversized payload in a repeat, too, and still returns the retained message', async () => {
      const first = await append('m1', { payload: 1 })
      const huge = { payload: 'x'.repeat(17_000_000) }
      await expect(async () => append('m1', huge)).rejects.toMatchObject({ code: 'payload_too_large' })
      expect(await append('m1', { payload: large })).toEqual(first)
      expect(spill.texts.size).toBe(0)
    })

    it.each([
      ['in full', { of: 'ann' }, { of: 'bob' }],
      ['aside', { of: 'ann', ...large }, { of: 'bob', ...large }],
    ])('returns no message of another user, whose payload is %s', async (_, ofAnn, ofBob) => {
      const BOB = { user_id: 'bob', payload: ofBob }
      await append('m1', { payload: ofAnn })
      expect(await append('m1', BOB)).toMatchObject({ user_id: 'bob', sequence: 2 })
      expect(await append('m1', BOB)).toMatchObject({ user_id: 'bob', sequence: 2 })
      expect(await append('m1', { payload: ofAnn })).toMatchObject({ user_id: 'ann', sequence: 1 })
      const { items } = await read()
      expect(items.map(({ user_id, message_id, payload }) => [user_id, message_id, payload])).toEqual([
        ['ann', 'm1', ofAnn],
        ['bob', 'm1', ofBob],
      ])
      // They leave as any other does.
      for (let n = 2; n <= 6; n++) await append(`m${n}`)
      expect((await read()).items.map(({ message_id }) => message_id)).toEqual(['m2', 'm3', 'm4', 'm5', 'm6'])
      expect(await append('m1', BOB)).toMatchObject({ user_id: 'bob', sequence: 8 })
    })

    it('answers the newest messages, oldest first, and says when there were more', async () => {
      for (const id of ['a', 'b', 'c', 'd']) await append(id)
      const { items, truncated } = await read(STREAM, 2)
      expect(items.map((m) => [m.message_id, m.sequence])).toEqual([
        ['c', 3],
        ['d', 4],
      ])
      expect(truncated).toBe(true)
      expect((await read()).truncated).toBe(false)
    })

    it('knows no messages of an unknown stream', async () => {
      for (const stream of ['users/ann/none', '__proto__', 'toString'])
        expect(await read(stream)).toEqual({ items: [], truncated: false })
    })

    it('evicts the oldest message of a full stream, and its sequence continues', async () => {
      for (let i = 1; i <= 8; i++) await append(`m${i}`)
      const { items, truncated } = await read()
      expect(items.map((m) => m.sequence)).toEqual([4, 5, 6, 7, 8])
      expect(truncated).toBe(true)
      expect((await append('m1')).sequence).toBe(9)
    })

    it('lets the oldest of all go when all streams together are full', async () => {
      for (let i = 0; i < 12; i++) await append(`m${i}`, { stream: `users/ann/s${i % 4}` })
      await append('late', { stream: 'users/ann/s3' })
      expect((await read('users/ann/s0')).items.map((m) => m.sequence)).toEqual([2, 3])
      expect((await read('users/ann/s0')).truncated).toBe(true)
      expect((await streams()).reduce((sum, stream) => sum + (stream.message_count ?? 0), 0)).toBe(12)
    })

    it('continues the sequence of a stream that was emptied', async () => {
      await append('early', { stream: 'users/ann/s0' })
      for (let i = 0; i < 15; i++) await append(`m${i}`, { stream: `users/ann/s${1 + (i % 3)}` })
      expect(await read('users/ann/s0')).toEqual({ items: [], truncated: true })
      expect((await streams()).map((s) => s.stream).sort()).toEqual(['users/ann/s1', 'users/ann/s2', 'users/ann/s3'])
      expect((await append('again', { stream: 'users/ann/s0' })).sequence).toBe(2)
    })

    it('lists streams with what they retain, of all or of one user', async () => {
      await append('m1')
      clock.advance(1_000)
      await append('m2')
      await append('m3', { stream: 'users/bob/x', user_id: 'bob' })
      await append('m4', { stream: 'users/bob/y', user_id: 'bob' })
      const ours = {
        stream: STREAM,
        user_id: 'ann',
        message_count: 2,
        first_recorded_at: at(),
        last_recorded_at: at(1_000),
      }
      expect(await streams()).toHaveLength(3)
      expect(await streams({ user_id: 'ann' })).toEqual([ours])
      expect((await streams({ user_id: 'bob' })).map((s) => s.stream).sort()).toEqual(['users/bob/x', 'users/bob/y'])
      expect([...((await history.inspector.listUserIds?.({ after: null, limit: 5 }, ASK)) ?? [])]).toEqual([
        'ann',
        'bob',
      ])
      expect(withSortedLists(await history.inspector.observeUsers?.(['bob', 'missing'], ASK))).toEqual([
        { user_id: 'bob', observed_streams: 2 },
      ])
    })

    it('keeps a large payload outside its message and brings it back on reading', async () => {
      const message = await append('m1', { payload: large })
      expect(message.payload).toBeNull()
      expect(message.externalized?.bytes).toBe(JSON.stringify(large).length)
      expect(await append('m1', { payload: large })).toEqual(message)
      expect(spill.texts.size).toBe(1)
      expect((await read()).items).toMatchObject([{ payload: large, externalized: { hydration: 'hydrated' } }])
    })

    it('says what became of a payload that does not come back, and answers the rest of the message', async () => {
      const ref = (await append('m1', { payload: large })).externalized?.ref as string
      const text = spill.texts.get(ref) as string
      const reads = async () => {
        const [message] = (await read()).items
        expect(message).toMatchObject({ message_id: 'm1', sequence: 1, payload: null })
        return message?.externalized?.hydration
      }
      spill.texts.set(ref, text.slice(0, -5))
      expect(await reads()).toBe('error')
      // Of another length, though it would parse.
      spill.texts.set(ref, '{}')
      expect(await reads()).toBe('error')
      spill.texts.set(ref, 'x'.repeat(text.length))
      expect(await reads()).toBe('error')
      spill.failing = true
      expect(await reads()).toBe('error')
      spill.failing = false
      spill.texts.delete(ref)
      expect(await reads()).toBe('missing')
    })

    it('takes undefined for a payload that is not there, as a Map answers', async () => {
      await append('m1', { payload: large })
      spill.get = async () => undefined
      expect((await read()).items[0]?.externalized?.hydration).toBe('missing')
    })

    it('does not read a payload over a mebibyte', async () => {
      await append('m1', { payload: 'x'.repeat(1_048_577) })
      await append('m2', { payload: large })
      expect((await read()).items.map((m) => m.externalized?.hydration)).toEqual(['too_large', 'hydrated'])
    })

    it('takes a payload along when its message leaves', async () => {
      for (let i = 0; i < 9; i++) await append(`m${i}`, { payload: large })
      await new Promise((resolve) => setImmediate(resolve))
      expect(spill.texts.size).toBe(5)
    })

    it('retains nothing when the spill store fails, so that a retry can succeed', async () => {
      spill.failing = true
      await expect(async () => append('m1', { payload: large })).rejects.toMatchObject({ code: 'unavailable' })
      expect((await read()).items).toEqual([])
      spill.failing = false
      expect((await append('m1', { payload: large })).sequence).toBe(1)
    })

    it('retains one of many equal messages at once', async () => {
      await Promise.all(Array.from({ length: 20 }, () => append('m1', { payload: large })))
      await new Promise((resolve) => setImmediate(resolve))
      expect((await read()).items).toHaveLength(1)
      expect(spill.texts.size).toBe(1)
    })

    it('refuses a large payload when there is nowhere to put it', async () => {
      history = await make({ now: clock.now, ...bounds })
      await expect(async () => append('m1', { payload: large })).rejects.toMatchObject({ code: 'payload_too_large' })
      expect((await append('m1', { payload: 'small' })).sequence).toBe(1)
    })

    it('refuses an invalid message and stores nothing of it', async () => {
      const cycle: Record<string, unknown> = {}
      cycle.self = cycle
      let deep: unknown = null
      for (let i = 0; i < 100_000; i++) deep = [deep]
      const bad: Partial<Record<keyof AppendInput, unknown>>[] = [
        { message_id: '' },
        { stream: '' },
        { stream: 'x'.repeat(2_049) },
        { stream: 'users/ann/a\nb' },
        { stream: 'users/ann/a\u202eb' },
        { stream: 'users/ann/\ud800' },
        { kind: 'gossip' },
        { user_id: 'a\u200bb' },
        { payload: cycle },
        { payload: 1n },
        { payload: deep },
      ]
      for (const over of bad)
        await expect(async () => append('m1', over as Partial<AppendInput>)).rejects.toMatchObject({
          code: 'invalid_input',
        })
      await expect(async () => append('m1', { paylod: 1 } as Partial<AppendInput>)).rejects.toMatchObject({
        code: 'invalid_input',
        detail: 'Unknown field "paylod". Did you mean "payload"?',
      })
      expect(await streams()).toEqual([])
    })

    it('is not changed by what its caller does to the payload afterwards', async () => {
      const payload = { tags: ['a'] }
      await append('m1', { payload })
      payload.tags.push('b')
      expect((await read()).items[0]?.payload).toEqual({ tags: ['a'] })
    })
  })
}
