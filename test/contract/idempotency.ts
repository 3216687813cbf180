/** What every store of idempotency keys promises, whatever it keeps them in. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { IdempotencyClaim, IdempotencyStore, Invocation } from '../../src/internal/contract/invocations.js'
import { type Clock, createClock } from './clock.js'

/** An answer of that many bytes, and a few. */
export const answer = (bytes = 1, id = 'i1'): Invocation => ({
  invocation_id: id,
  action: 'archive_note',
  status: 'succeeded',
  result: 'x'.repeat(bytes),
  error: null,
  started_at: '2026-01-01T00:00:00.000Z',
  finished_at: '2026-01-01T00:00:00.000Z',
})

let attempts = 0
export const claimOf = (change: Partial<IdempotencyClaim> = {}): IdempotencyClaim => ({
  session_id: 's1',
  user_id: 'bob',
  key: 'k1',
  fingerprint: 'f1',
  attempt: `a${++attempts}`,
  lease_ms: 30_000,
  ...change,
})

export function idempotencyBattery(
  name: string,
  make: (options: { now: () => number; keysPerViewer: number }) => IdempotencyStore,
): void {
  describe(`idempotency keys in ${name}`, () => {
    let clock: Clock
    let store: IdempotencyStore
    beforeEach(() => {
      clock = createClock()
      store = make({ now: clock.now, keysPerViewer: 3 })
    })

    it('stand for one call for ten minutes, whichever way it ended, and not for longer', async () => {
      for (const kept of [answer(), null]) {
        const claim = claimOf({ key: String(kept?.status) })
        expect(await store.claim(claim)).toEqual({ state: 'claimed', at: clock.now() })
        expect(await store.claim({ ...claim, attempt: 'other' })).toEqual({ state: 'running' })
        await store.keep(claim, kept)
        expect(await store.claim({ ...claim, attempt: 'other' })).toEqual({ state: 'ended', answer: kept })
      }
      clock.advance(599_999)
      expect(await store.claim(claimOf({ key: 'succeeded' }))).toEqual({ state: 'ended', answer: answer() })
      if (name !== 'memory') return
      clock.advance(1)
      expect(await store.claim(claimOf({ key: 'succeeded' }))).toMatchObject({ state: 'claimed' })
    })

    it('belong to one call of one viewer in one session', async () => {
      await store.claim(claimOf())
      expect(await store.claim(claimOf({ fingerprint: 'f2' }))).toEqual({ state: 'reused' })
      expect(await store.claim(claimOf({ user_id: 'carol', fingerprint: 'f2' }))).toMatchObject({ state: 'claimed' })
      expect(await store.claim(claimOf({ session_id: 's2', fingerprint: 'f2' }))).toMatchObject({ state: 'claimed' })
    })

    it('are free again when nothing was run, and only then', async () => {
      const claim = claimOf()
      await store.claim(claim)
      await store.release({ ...claim, attempt: 'other' })
      expect(await store.claim(claimOf())).toEqual({ state: 'running' })
      await store.release(claim)
      const next = claimOf()
      expect(await store.claim(next)).toMatchObject({ state: 'claimed' })
      await store.keep(next, answer())
      await store.release(next)
      expect(await store.claim(claimOf())).toEqual({ state: 'ended', answer: answer() })
    })

    it('take every word of an attempt twice for once', async () => {
      const claim = claimOf()
      const first = await store.claim(claim)
      expect(await store.claim(claim)).toEqual(first)
      await store.keep(claim, answer())
      await store.keep(claim, answer(1, 'another'))
      expect(await store.claim(claim)).toEqual({ state: 'ended', answer: answer() })
      const freed = claimOf({ key: 'k2' })
      await store.claim(freed)
      await store.release(freed)
      const next = claimOf({ key: 'k2' })
      await store.claim(next)
      await store.release(freed)
      await store.keep(freed, answer())
      expect(await store.claim(claimOf({ key: 'k2' }))).toEqual({ state: 'running' })
    })

    it('of a relay that died read as unknown when the time of the call is over, and never run again', async () => {
      await store.claim(claimOf())
      clock.advance(29_999)
      expect(await store.claim(claimOf())).toEqual({ state: 'running' })
      clock.advance(1)
      expect(await store.claim(claimOf())).toEqual({ state: 'ended', answer: null })
    })

    it('are so many per viewer and session: the oldest that has ended leaves, and none that runs', async () => {
      const claims = ['k1', 'k2', 'k3'].map((key) => claimOf({ key }))
      for (const claim of claims) await store.claim(claim)
      await expect(async () => store.claim(claimOf({ key: 'k4' }))).rejects.toMatchObject({ code: 'capacity_exceeded' })
      for (const other of [{ user_id: 'carol' }, { session_id: 's2' }])
        expect(await store.claim(claimOf({ key: 'k4', ...other }))).toMatchObject({ state: 'claimed' })
      await store.keep(claims[1] as IdempotencyClaim, answer())
      expect(await store.claim(claimOf({ key: 'k4' }))).toMatchObject({ state: 'claimed' })
      expect(await store.claim(claimOf({ key: 'k1' }))).toEqual({ state: 'running' })
    })
  })
}
