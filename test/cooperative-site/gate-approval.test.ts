/** The approval of a call by the application: asked once, bounded in time, never enough by itself. */
import { describe, expect, it } from 'vitest'
import type { Session } from '../../src/internal/contract/sessions.js'
import type { Site } from '../../src/internal/contract/sites.js'
import { bob, createWorld, refusal } from './gate-world.js'

describe('approval of an action', () => {
  it('is requested once, for exactly the call that is sent', async () => {
    const asked: unknown[] = []
    const { world, invoke } = createWorld({
      approve: (request) => {
        asked.push(request)
        return true
      },
    })
    await invoke()
    expect(asked).toEqual([
      {
        invocation_id: 'i1',
        session_id: 's1',
        site_id: 'notes',
        action: 'archive_note',
        parameters: { id: 7 },
        viewer: bob,
        signal: expect.any(AbortSignal),
      },
    ])
    expect(world.calls).toHaveLength(1)
    await invoke()
    expect(asked).toHaveLength(2)
  })

  it.each<[string, () => unknown]>([
    ['false', () => false],
    ['anything that is not true', () => 'yes'],
    ['a throw', () => Promise.reject(new Error('no'))],
  ])('is denied by %s', async (_, approve) => {
    const { world, invoke } = createWorld({ approve: approve as () => boolean })
    await expect(invoke()).rejects.toMatchObject(refusal('approval_denied'))
    expect(world.calls).toEqual([])
  })

  it('times out with the call by default', async () => {
    const approve = () => new Promise<boolean>(() => {})
    for (const [options, input] of [[{ timeoutMs: 5 }], [{}, { timeout_ms: 5 }]]) {
      const { world, invoke } = createWorld({ approve, ...options })
      await expect(invoke(input)).rejects.toMatchObject(refusal('approval_timeout'))
      expect(world.calls).toEqual([])
    }
  })

  it('times out', async () => {
    const { world, invoke, gate } = createWorld({ approve: () => new Promise(() => {}), approvalTimeoutMs: 5 })
    await expect(invoke()).rejects.toMatchObject(refusal('approval_timeout'))
    expect(world.calls).toEqual([])
    expect(gate.pending).toBe(0)
  })

  it.each<[string, (world: ReturnType<typeof createWorld>['world']) => void, string]>([
    [
      'the session was closed',
      (w) => {
        w.session = { ...(w.session as Session), state: 'closed' }
      },
      'session_not_active',
    ],
    [
      'the list was shortened',
      (w) => {
        w.site = { ...(w.site as Site), action_names: [] }
      },
      'action_not_allowed',
    ],
    [
      'the site was deleted',
      (w) => {
        w.site = null
      },
      'site_not_cooperative',
    ],
    [
      'the right was taken back',
      (w) => {
        w.rights = ['view']
      },
      'forbidden',
    ],
    [
      'the viewer lost the session',
      (w) => {
        w.rights = []
      },
      'session_not_found',
    ],
  ])('does not help if %s meanwhile', async (_, change, code) => {
    const own = createWorld({
      approve: () => {
        change(own.world)
        return true
      },
    })
    await expect(own.invoke()).rejects.toMatchObject(refusal(code))
    expect(own.world.calls).toEqual([])
  })
})
