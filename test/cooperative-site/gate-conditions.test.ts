/** What must hold of session, site, capability, list and viewer before the gate lets an action through. */
import { describe, expect, it } from 'vitest'
import type { Session } from '../../src/internal/contract/sessions.js'
import type { Site } from '../../src/internal/contract/sites.js'
import { createWorld, refusal } from './gate-world.js'

describe('the action gate', () => {
  it("sends no generic action name, even if the host's registry lists it", async () => {
    const { world, invoke } = createWorld()
    world.site = { ...(world.site as Site), action_names: ['execute', 'Run'] }
    for (const action of world.site.action_names)
      await expect(invoke({ action })).rejects.toMatchObject(refusal('action_not_allowed'))
    expect(world.calls).toEqual([])
  })

  const bits = [false, true]
  const combinations = bits.flatMap((active) =>
    bits.flatMap((cooperative) =>
      bits.flatMap((capability) => bits.map((allowed) => ({ active, cooperative, capability, allowed }))),
    ),
  )
  it.each(combinations)('accepts one of sixteen combinations: $active $cooperative $capability $allowed', async ({
    active,
    cooperative,
    capability,
    allowed,
  }) => {
    const { world, invoke } = createWorld()
    world.session = { ...(world.session as Session), state: active ? 'active' : 'suspended' }
    world.site = {
      ...(world.site as Site),
      mode: cooperative ? 'cooperative' : 'observe',
      capability_profile: { action_invocation: capability },
      action_names: allowed ? ['archive_note'] : ['add_note'],
    }
    const expected = !active
      ? 'session_not_active'
      : !cooperative
        ? 'site_not_cooperative'
        : !capability
          ? 'action_invocation_disabled'
          : !allowed
            ? 'action_not_allowed'
            : null
    if (expected === null) expect((await invoke()).status).toBe('succeeded')
    else await expect(invoke()).rejects.toMatchObject(refusal(expected))
    expect(world.calls).toHaveLength(expected === null ? 1 : 0)
  })

  it.each(['pending', 'suspended', 'closed', 'expired'] as const)('refuses a session that is %s', async (state) => {
    const { world, invoke } = createWorld()
    world.session = { ...(world.session as Session), state }
    await expect(invoke()).rejects.toMatchObject(refusal('session_not_active'))
  })

  it('reports the first failed check in the documented order', async () => {
    const { world, invoke } = createWorld()
    const bad = { parameters: { __cooperative_site_id: 'x' }, action: 'EXECUTE' }
    world.rights = []
    world.site = null
    world.session = { ...(world.session as Session), state: 'closed', connector: null }
    await expect(invoke({ session_id: 'guessed' })).rejects.toMatchObject(refusal('session_not_found'))
    await expect(invoke({ ...bad, parameters: [] })).rejects.toMatchObject(refusal('session_not_found'))
    world.rights = ['view']
    await expect(invoke({ ...bad, parameters: [] })).rejects.toMatchObject(refusal('invalid_parameters'))
    await expect(invoke(bad)).rejects.toMatchObject(refusal('session_not_active'))
    world.session = { ...(world.session as Session), state: 'active' }
    await expect(invoke(bad)).rejects.toMatchObject(refusal('site_not_cooperative'))
    world.site = { ...(createWorld().world.site as Site), capability_profile: { action_invocation: false } }
    await expect(invoke(bad)).rejects.toMatchObject(refusal('action_invocation_disabled'))
    world.site = { ...world.site, capability_profile: { action_invocation: true } }
    await expect(invoke(bad)).rejects.toMatchObject(refusal('action_not_allowed'))
    await expect(invoke({ ...bad, action: 'archive_note' })).rejects.toMatchObject(refusal('forbidden'))
    world.rights = ['view', 'invoke']
    await expect(invoke({ action: 'archive_note' })).rejects.toMatchObject(refusal('connector_unavailable'))
    world.session = { ...world.session, connector: { user_id: 'alice', client_id: 'laptop' } }
    await expect(invoke({ ...bad, action: 'archive_note' })).rejects.toMatchObject(refusal('reserved_parameter'))
    expect(world.calls).toEqual([])
  })

  it.each([
    ' archive_note',
    'archive_note\u200b',
    'ARCHIVE_NOTE',
    '__proto__',
    'constructor',
    '',
  ])('accepts no other spelling of an allowed name: %j', async (action) => {
    await expect(createWorld().invoke({ action })).rejects.toMatchObject(refusal('action_not_allowed'))
  })

  it('refuses when site, session and connector no longer belong to the same user', async () => {
    const { world, invoke } = createWorld()
    world.site = { ...(world.site as Site), owner: 'mallory' }
    await expect(invoke()).rejects.toMatchObject(refusal('site_not_cooperative'))
    world.site = { ...world.site, owner: 'alice' }
    world.session = { ...(world.session as Session), connector: { user_id: 'mallory', client_id: 'pc' } }
    await expect(invoke()).rejects.toMatchObject(refusal('connector_unavailable'))
  })

  it.each([1, 'yes', {}, [], 'true'])('treats a policy that answers %j as a refusal', async (said) => {
    const none = createWorld({ policy: { check: () => said as never } })
    await expect(none.invoke()).rejects.toMatchObject(refusal('session_not_found'))
    const views = createWorld({ policy: { check: ({ right }) => (right === 'view' ? true : (said as never)) } })
    await expect(views.invoke()).rejects.toMatchObject(refusal('forbidden'))
    const approved = createWorld({ approve: () => said as never })
    await expect(approved.invoke()).rejects.toMatchObject(refusal('approval_denied'))
  })

  it('makes the same calls for a missing session as for a foreign one', async () => {
    const count = async (session_id: string) => {
      const asked: string[] = []
      const { invoke } = createWorld({
        sessions: {
          get: async (id) => {
            asked.push('session')
            return id === 's1' ? createWorld().world.session : null
          },
        },
        policy: {
          check: () => {
            asked.push('policy')
            return false
          },
        },
      })
      await expect(invoke({ session_id })).rejects.toMatchObject(refusal('session_not_found'))
      return asked
    }
    expect(await count('guessed')).toEqual(await count('s1'))
  })
})
