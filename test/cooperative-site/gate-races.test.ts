/** The gate when a session closes while a call is on its way. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCooperativeActionGate } from '../../src/cooperative-site/index.js'
import type { Session } from '../../src/internal/contract/sessions.js'
import { bob, createWorld, refusal } from './gate-world.js'

describe('the action gate in a race', () => {
  it('never sends to a session that was closed during a check', async () => {
    const { world, gate } = createWorld()
    const close = async <T>(value: T) => {
      world.session = { ...(world.session as Session), state: 'closed' }
      return value
    }
    for (const slow of ['sites', 'policy'] as const) {
      const own = createWorld({
        ...(slow === 'sites' ? { sites: { get: async () => close(world.site) } } : {}),
        ...(slow === 'policy' ? { policy: { check: async () => close(true) } } : {}),
        sessions: { get: async () => world.session },
      })
      world.session = { ...(world.session as Session), state: 'active' }
      await expect(own.invoke()).rejects.toMatchObject(refusal('session_not_active'))
      expect(own.world.calls).toEqual([])
    }
    expect(gate.pending).toBe(0)
  })

  it('sends at most once per call and never to a closed session, in any order of closing and invoking', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.nat(3), async (scheduler, before) => {
        let state: Session['state'] = 'active'
        const sent: Session['state'][] = []
        const base = createWorld()
        const gate = createCooperativeActionGate({
          sites: { get: () => scheduler.schedule(Promise.resolve(base.world.site)) },
          sessions: {
            get: async () => {
              await scheduler.schedule(Promise.resolve())
              return { ...(base.world.session as Session), state }
            },
          },
          policy: { check: () => scheduler.schedule(Promise.resolve(true)) },
          connector: {
            call: async () => {
              sent.push(state)
              return null
            },
          },
        })
        const calls = Array.from({ length: before + 1 }, () =>
          gate.invoke({ session_id: 's1', action: 'archive_note', viewer: bob }).catch((error) => error.code),
        )
        const closing = scheduler.schedule(Promise.resolve()).then(() => {
          state = 'closed'
        })
        await scheduler.waitFor(Promise.all([...calls, closing]))
        expect(sent.every((at) => at === 'active')).toBe(true)
        expect(sent.length).toBeLessThanOrEqual(calls.length)
        expect(gate.pending).toBe(0)
      }),
      { numRuns: 100 },
    )
  })
})
