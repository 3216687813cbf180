/** The action gate: its options, its answers, and how it interprets the answers of its ports. */
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/internal/refusal.js'
import { deferred } from './deferred.js'
import { at, createWorld, refusal, START } from './gate-world.js'

describe('the action gate', () => {
  it('refuses to be built without a policy', () => {
    expect(() => createWorld({ policy: undefined as never })).toThrow(
      /^Missing required option "policy" \(createSessionPolicy/,
    )
  })

  it('treats null, undefined and not_found of a port as missing', async () => {
    const get = async () => undefined as never
    const noSession = createWorld({ sessions: { get } })
    await expect(noSession.invoke()).rejects.toMatchObject(refusal('session_not_found'))
    const noSite = createWorld({ sites: { get } })
    await expect(noSite.invoke()).rejects.toMatchObject(refusal('site_not_cooperative'))
  })

  it("returns the application's answer once all conditions hold", async () => {
    const { world, invoke, gate } = createWorld()
    world.answer = async () => {
      world.time += 25
      expect(gate.pending).toBe(1)
      return { archived: true }
    }
    expect(await invoke()).toEqual({
      invocation_id: 'i1',
      action: 'archive_note',
      status: 'succeeded',
      result: { archived: true },
      error: null,
      started_at: at,
      finished_at: new Date(START + 25).toISOString(),
    })
    expect(world.calls).toEqual([
      [
        { user_id: 'alice', client_id: 'laptop' },
        {
          action: 'archive_note',
          parameters: { id: 7, __cooperative_site_session_id: 's1', __cooperative_site_id: 'notes' },
          timeout_ms: 30_000,
          signal: expect.any(AbortSignal),
        },
      ],
    ])
    expect(gate.pending).toBe(0)
  })

  it('treats a policy that throws as an error, not as a decision, and reports it; passes on an unavailable store', async () => {
    const told: unknown[] = []
    const broken = createWorld({
      onError: (error) => told.push(error),
      policy: {
        check: async () => {
          throw new Error('secret')
        },
      },
    })
    await expect(broken.invoke()).rejects.toMatchObject(refusal('unavailable'))
    expect(told).toEqual([new Error('secret')])
    const away = createWorld({
      policy: {
        check: async () => {
          throw new Refusal('unavailable')
        },
      },
    })
    await expect(away.invoke()).rejects.toMatchObject(refusal('unavailable'))
  })

  it('allows at most a thousand pending calls of one viewer, and those of every other viewer', async () => {
    const { world, invoke, gate } = createWorld()
    const held = deferred<unknown>()
    world.answer = () => held.promise
    const calls = Array.from({ length: 1_001 }, () => invoke().catch((error) => error.code))
    expect(await calls[1_000]).toBe('capacity_exceeded')
    expect(gate.pending).toBe(1_000)
    const carols = invoke({ viewer: { user_id: 'carol' } })
    held.resolve(null)
    expect(await carols).toMatchObject({ status: 'succeeded' })
    await Promise.all(calls)
    expect(gate.pending).toBe(0)
  })
})
