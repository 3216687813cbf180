import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ActionConnector } from '../../src/contract/invocations.js'
import type { Session } from '../../src/contract/sessions.js'
import type { Site } from '../../src/contract/sites.js'
import { ActionFailure, createCooperativeActionGate } from '../../src/cooperative-site/index.js'
import { Refusal } from '../../src/refusal.js'
import { deferred } from './deferred.js'

type Call = Parameters<ActionConnector['call']>

const START = Date.parse('2026-01-01T00:00:00.000Z')
const at = new Date(START).toISOString()
const bob = { user_id: 'bob' }

/** A gate between plain data, so that every condition can be set by hand. */
function createWorld(options: Partial<Parameters<typeof createCooperativeActionGate>[0]> = {}) {
  const world = {
    time: START,
    site: {
      site_id: 'notes',
      owner: 'alice',
      mode: 'cooperative',
      title: null,
      event_names: [],
      action_names: ['archive_note'],
      capability_profile: { action_invocation: true },
      created_at: at,
      updated_at: at,
    } as Site | null,
    session: {
      session_id: 's1',
      site_id: 'notes',
      owner: 'alice',
      state: 'active',
      connector: { user_id: 'alice', client_id: 'laptop' },
      opened_at: at,
      expires_at: null,
      updated_at: at,
      close_reason: null,
    } as Session | null,
    rights: ['view', 'invoke'],
    calls: [] as Call[],
    answer: (async () => ({ archived: true })) as (...call: Call) => unknown,
  }
  const gate = createCooperativeActionGate({
    sites: { get: async (id) => (id === 'notes' ? world.site : null) },
    sessions: { get: async (id) => (id === 's1' ? world.session : null) },
    policy: { check: async ({ right }) => world.rights.includes(right) },
    connector: {
      async call(...call) {
        world.calls.push(call)
        return world.answer(...call)
      },
    },
    now: () => world.time,
    newId: () => 'i1',
    ...options,
  })
  const invoke = (input: object = {}) =>
    gate.invoke({ session_id: 's1', action: 'archive_note', parameters: { id: 7 }, viewer: bob, ...input })
  return { world, gate, invoke }
}

const refusal = (code: string) => ({ name: 'Refusal', code })

describe('the action gate', () => {
  it('refuses to be built without a policy', () => {
    expect(() => createWorld({ policy: undefined as never })).toThrow(new TypeError('policy is required'))
  })

  it('takes what a port does not know for absent, whichever way it says so', async () => {
    const get = async () => undefined as never
    const noSession = createWorld({ sessions: { get } })
    await expect(noSession.invoke()).rejects.toMatchObject(refusal('session_not_found'))
    const noSite = createWorld({ sites: { get } })
    await expect(noSite.invoke()).rejects.toMatchObject(refusal('site_not_cooperative'))
  })

  it('sends no generic name, though a registry of the host lists it', async () => {
    const { world, invoke } = createWorld()
    world.site = { ...(world.site as Site), action_names: ['execute', 'Run'] }
    for (const action of world.site.action_names)
      await expect(invoke({ action })).rejects.toMatchObject(refusal('action_not_allowed'))
    expect(world.calls).toEqual([])
  })

  it.each<[string, unknown]>([
    ['a date', { at: new Date(0) }],
    ['a function', { fn() {} }],
    ['a symbol', { is: Symbol('x') }],
    ['a number that JSON has no word for', { list: [Number.NaN] }],
    ['an object of a class', { map: new Map() }],
  ])('refuses parameters with %s in them', async (_, parameters) => {
    const { world, invoke } = createWorld()
    await expect(invoke({ parameters })).rejects.toMatchObject(refusal('invalid_parameters'))
    expect(world.calls).toEqual([])
  })

  it('answers what the application answered, once all conditions hold', async () => {
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

  const bits = [false, true]
  const combinations = bits.flatMap((active) =>
    bits.flatMap((cooperative) =>
      bits.flatMap((capability) => bits.map((allowed) => ({ active, cooperative, capability, allowed }))),
    ),
  )
  it.each(
    combinations,
  )('of all sixteen combinations lets one through: $active $cooperative $capability $allowed', async ({
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

  it('refuses in the order of the rulings, whatever else is wrong behind it', async () => {
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
  ])('knows no other spelling of an allowed name: %j', async (action) => {
    await expect(createWorld().invoke({ action })).rejects.toMatchObject(refusal('action_not_allowed'))
  })

  it('refuses when site, session and connector are no longer of one user', async () => {
    const { world, invoke } = createWorld()
    world.site = { ...(world.site as Site), owner: 'mallory' }
    await expect(invoke()).rejects.toMatchObject(refusal('site_not_cooperative'))
    world.site = { ...world.site, owner: 'alice' }
    world.session = { ...(world.session as Session), connector: { user_id: 'mallory', client_id: 'pc' } }
    await expect(invoke()).rejects.toMatchObject(refusal('connector_unavailable'))
  })

  it('takes a policy that throws for a no, and a store out of reach for what it is', async () => {
    const broken = createWorld({
      policy: {
        check: async () => {
          throw new Error('secret')
        },
      },
    })
    await expect(broken.invoke()).rejects.toMatchObject(refusal('session_not_found'))
    const away = createWorld({
      policy: {
        check: async () => {
          throw new Refusal('unavailable')
        },
      },
    })
    await expect(away.invoke()).rejects.toMatchObject(refusal('unavailable'))
  })

  describe('parameters', () => {
    const nested = (depth: number) => {
      let value: object = {}
      for (let n = 1; n < depth; n++) value = { a: value }
      return value
    }

    it.each<[string, unknown]>([
      ['null', null],
      ['a list', [1]],
      ['a text', 'id'],
      ['a Map', new Map()],
      ['33 levels', nested(33)],
      ['100,000 levels', nested(100_000)],
      ['a BigInt', { id: 1n }],
      ['a __proto__ key', JSON.parse('{"__proto__":{"__cooperative_site_id":"x"}}')],
      ['an escaped __proto__ key far inside', JSON.parse('{"a":[{"b":{"__\\u0070roto__":1}}]}')],
    ])('are refused as %s', async (_, parameters) => {
      const { world, invoke } = createWorld()
      await expect(invoke({ parameters })).rejects.toMatchObject(refusal('invalid_parameters'))
      expect(world.calls).toEqual([])
    })

    it('may be absent, and may nest 32 levels', async () => {
      const { world, invoke } = createWorld()
      await invoke({ parameters: undefined })
      await invoke({ parameters: nested(32) })
      expect(Object.keys(world.calls[0]?.[1].parameters ?? {})).toEqual([
        '__cooperative_site_session_id',
        '__cooperative_site_id',
      ])
    })

    it.each([
      '__cooperative_site_session_id',
      '__cooperative_site_id',
      '__cooperative_site_anything',
    ])('may not be called %s, which is the runtime`s to set', async (name) => {
      const parameters = JSON.parse(`{"${name.replace('_c', '_\\u0063')}": "forged"}`)
      await expect(createWorld().invoke({ parameters })).rejects.toMatchObject(refusal('reserved_parameter'))
    })

    it('reach the handler as they were checked, and cannot be changed on the way', async () => {
      const parameters = { note: { id: 7 } }
      const { world, invoke } = createWorld({
        approve: (request) => {
          parameters.note.id = 8
          expect(() => {
            ;(request.parameters.note as { id: number }).id = 9
          }).toThrow(TypeError)
          return true
        },
      })
      await invoke({ parameters })
      expect(world.calls[0]?.[1].parameters).toMatchObject({ note: { id: 7 } })
    })

    it('always carry the runtime`s two, whatever else they carry', async () => {
      await fc.assert(
        fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (parameters) => {
          const { world, invoke } = createWorld()
          const outcome = await invoke({ parameters }).catch((error) => error.code)
          const sent = world.calls[0]?.[1].parameters
          if (sent === undefined) expect(outcome).toMatch(/^(invalid_parameters|reserved_parameter)$/)
          else expect(sent).toMatchObject({ __cooperative_site_session_id: 's1', __cooperative_site_id: 'notes' })
        }),
        { numRuns: 50 },
      )
    })
  })

  describe('what the application does', () => {
    it.each<[string, () => unknown, object]>([
      [
        'an ActionFailure',
        () => Promise.reject(new ActionFailure('locked', 'In use')),
        { code: 'locked', message: 'In use' },
      ],
      [
        'an ActionFailure without words',
        () => Promise.reject(new ActionFailure('locked')),
        { code: 'locked', message: null },
      ],
      [
        'an ActionFailure whose code is a text',
        () => Promise.reject(new ActionFailure('So sorry!')),
        { code: 'other', message: null },
      ],
      [
        'any other throw',
        () => Promise.reject(new Error('secret /etc/passwd')),
        { code: 'handler_error', message: null },
      ],
      [
        'a throw at once',
        () => {
          throw new Error('secret')
        },
        { code: 'handler_error', message: null },
      ],
      [
        'a refusal that is not about the call',
        () => Promise.reject(new Refusal('forbidden', 'secret')),
        { code: 'handler_error', message: null },
      ],
      ['a result over 1 MiB', async () => 'x'.repeat(1_048_577), { code: 'result_too_large', message: null }],
      ['a result that is no JSON', async () => ({ n: 1n }), { code: 'handler_error', message: null }],
    ])('answers failed for %s', async (_, answer, error) => {
      const seen: unknown[] = []
      const { world, invoke } = createWorld({ onError: (thrown) => seen.push(thrown) })
      world.answer = answer
      const invocation = await invoke()
      expect(invocation).toMatchObject({ status: 'failed', result: null, error })
      expect(JSON.stringify(invocation)).not.toContain('secret')
    })

    it('shows at most 1,024 well-formed characters of a handler`s words', async () => {
      const { world, invoke } = createWorld()
      world.answer = async () => {
        throw new ActionFailure('locked', `\ud800${'x'.repeat(2_000)}`)
      }
      expect((await invoke()).error?.message).toBe(`\ufffd${'x'.repeat(1_023)}`)
    })

    it('answers null for a result that is none', async () => {
      const { world, invoke } = createWorld()
      world.answer = async () => undefined
      expect(await invoke()).toMatchObject({ status: 'succeeded', result: null })
    })

    it('refuses with connector_unavailable when the connector says so', async () => {
      const { world, invoke } = createWorld()
      world.answer = async () => {
        throw new Refusal('connector_unavailable')
      }
      await expect(invoke()).rejects.toMatchObject(refusal('connector_unavailable'))
    })

    it.each([
      'timeout',
      'unavailable',
      'closed',
    ] as const)('takes a connector that lost sight of the call (%s) for an unknown outcome', async (code) => {
      const { world, invoke } = createWorld()
      world.answer = async () => {
        throw new Refusal(code)
      }
      await expect(invoke()).rejects.toMatchObject(refusal('action_timeout'))
    })

    it('gives up at the timeout, aborts the call, and drops what comes late', async () => {
      const { world, invoke, gate } = createWorld()
      const late = deferred<unknown>()
      let aborted = false
      world.answer = (_client, { signal }) => {
        signal.addEventListener('abort', () => {
          aborted = true
        })
        return late.promise
      }
      await expect(invoke({ timeout_ms: 5 })).rejects.toMatchObject(refusal('action_timeout'))
      expect(aborted).toBe(true)
      expect(gate.pending).toBe(0)
      late.resolve('late')
    })

    it.each([0, 120_001, 1.5, Number.NaN])('refuses a timeout of %s ms', async (timeout_ms) => {
      await expect(createWorld().invoke({ timeout_ms })).rejects.toMatchObject(refusal('invalid_input'))
    })

    it('cancels the call when the viewer hangs up', async () => {
      const { world, invoke, gate } = createWorld()
      const controller = new AbortController()
      let aborted = false
      world.answer = (_client, { signal }) => {
        signal.addEventListener('abort', () => {
          aborted = true
        })
        controller.abort()
        return new Promise(() => {})
      }
      await expect(invoke({ signal: controller.signal })).rejects.toMatchObject(refusal('cancelled'))
      expect(aborted).toBe(true)
      expect(gate.pending).toBe(0)
      await expect(invoke({ signal: controller.signal })).rejects.toMatchObject(refusal('cancelled'))
      expect(world.calls).toHaveLength(1)
    })
  })

  describe('races', () => {
    it('never sends into a session that was closed while a store or the policy was being asked', async () => {
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

    it('sends at most once per call and never into a closed session, in any order of closing and invoking', async () => {
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

  describe('approval', () => {
    it('is asked once, about exactly the call that is sent', async () => {
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

    it('runs out with the time of the call where it has none of its own', async () => {
      const approve = () => new Promise<boolean>(() => {})
      for (const [options, input] of [[{ timeoutMs: 5 }], [{}, { timeout_ms: 5 }]]) {
        const { world, invoke } = createWorld({ approve, ...options })
        await expect(invoke(input)).rejects.toMatchObject(refusal('approval_timeout'))
        expect(world.calls).toEqual([])
      }
    })

    it('runs out', async () => {
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
    ])('does not help when %s meanwhile', async (_, change, code) => {
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

  describe('an idempotency key', () => {
    const key = { idempotency_key: 'k1' }

    it('runs a call once and answers repeats with the stored answer', async () => {
      const { world, invoke } = createWorld()
      const first = await invoke(key)
      expect(await invoke(key)).toBe(first)
      expect(world.calls).toHaveLength(1)
      world.time += 600_000
      await invoke(key)
      expect(world.calls).toHaveLength(2)
    })

    it('names the same command wherever it arrives, and another one for another viewer', async () => {
      const commands = new Set<string>()
      for (const input of [key, key, { ...key, viewer: { user_id: 'carol' } }, { idempotency_key: 'k2' }]) {
        const { world, invoke } = createWorld()
        await invoke(input)
        commands.add(world.calls[0]?.[1].command_id as string)
      }
      expect(commands.size).toBe(3)
      for (const command of commands) expect(command).toMatch(/^[0-9a-f]{32}$/)
    })

    it('is refused for another call, but free for another viewer', async () => {
      const { world, invoke } = createWorld()
      await invoke(key)
      await expect(invoke({ ...key, parameters: { id: 8 } })).rejects.toMatchObject(refusal('idempotency_key_reused'))
      await invoke({ ...key, viewer: { user_id: 'carol' } })
      await invoke({ ...key, parameters: { id: 7 } })
      expect(world.calls).toHaveLength(2)
    })

    it('lets one of a hundred equal calls through', async () => {
      const { world, invoke, gate } = createWorld()
      const held = deferred<unknown>()
      world.answer = () => held.promise
      const calls = Array.from({ length: 100 }, () => invoke(key).catch((error) => error.code))
      const codes = Promise.all(calls.slice(1))
      expect(await codes).toEqual(Array(99).fill('idempotency_in_progress'))
      held.resolve('done')
      expect(await calls[0]).toMatchObject({ result: 'done' })
      expect(world.calls).toHaveLength(1)
      expect(gate.pending).toBe(0)
    })

    it('stays taken by a call whose outcome is unknown', async () => {
      const { world, invoke } = createWorld()
      world.answer = () => new Promise(() => {})
      await expect(invoke({ ...key, timeout_ms: 5 })).rejects.toMatchObject(refusal('action_timeout'))
      await expect(invoke(key)).rejects.toMatchObject(refusal('action_timeout'))
      const controller = new AbortController()
      world.answer = () => {
        controller.abort()
        return new Promise(() => {})
      }
      const gone = invoke({ idempotency_key: 'k2', signal: controller.signal })
      await expect(gone).rejects.toMatchObject(refusal('cancelled'))
      await expect(invoke({ idempotency_key: 'k2' })).rejects.toMatchObject(refusal('action_timeout'))
      expect(world.calls).toHaveLength(2)
    })

    it('is free again when nothing was sent', async () => {
      const { world, invoke } = createWorld({ approve: () => world.time > START })
      await expect(invoke(key)).rejects.toMatchObject(refusal('approval_denied'))
      world.time++
      world.answer = async () => {
        throw new Refusal('connector_unavailable')
      }
      await expect(invoke(key)).rejects.toMatchObject(refusal('connector_unavailable'))
      world.answer = async () => 'done'
      expect(await invoke(key)).toMatchObject({ result: 'done' })
    })

    it('gives no stored answer to a viewer who has lost the right', async () => {
      const { world, invoke } = createWorld()
      await invoke(key)
      world.rights = ['view']
      await expect(invoke(key)).rejects.toMatchObject(refusal('forbidden'))
    })

    it('is one of at most a thousand per session; the oldest that has ended leaves first', async () => {
      const { world, invoke } = createWorld()
      for (let n = 0; n <= 1_000; n++) await invoke({ idempotency_key: `k${n}` })
      await invoke({ idempotency_key: 'k1000' })
      await invoke({ idempotency_key: 'k1' })
      expect(world.calls).toHaveLength(1_001)
      await invoke({ idempotency_key: 'k0' })
      expect(world.calls).toHaveLength(1_002)
    })
  })

  it('has at most a thousand calls of one session under way', async () => {
    const { world, invoke, gate } = createWorld()
    const held = deferred<unknown>()
    world.answer = () => held.promise
    const calls = Array.from({ length: 1_001 }, () => invoke().catch((error) => error.code))
    expect(await calls[1_000]).toBe('connector_unavailable')
    expect(gate.pending).toBe(1_000)
    held.resolve(null)
    await Promise.all(calls)
    expect(gate.pending).toBe(0)
  })
})
