/** Single defences of gate, handlers, streams and ring, each of which could be weakened without another test's notice. */
import { describe, expect, it, vi } from 'vitest'
import * as z from 'zod'
import { siteStream } from '../../src/contract/ingest.js'
import type { Session } from '../../src/contract/sessions.js'
import type { Site } from '../../src/contract/sites.js'
import { createActionHandlers, createCooperativeSiteEventBus } from '../../src/cooperative-site/index.js'
import { createSessionGrants } from '../../src/cooperative-site/sessions/grants.js'
import { createTopic } from '../../src/event-ring/topic.js'
import { collect, event } from '../contract/event-bus.js'
import { deferred } from './deferred.js'
import { createWorld as createGate, refusal } from './gate-world.js'
import { flushPromises, holdTime, publish, START, watch } from './viewer.js'
import { createWorld } from './world.js'

describe('the gate', () => {
  it.each<[string, string, (world: ReturnType<typeof createGate>['world']) => void]>([
    [
      'session_not_active',
      'the session is suspended',
      (world) => {
        world.session = { ...(world.session as Session), state: 'suspended' }
      },
    ],
    [
      'action_not_allowed',
      'the action is taken off the list',
      (world) => {
        world.site = { ...(world.site as Site), action_names: [] }
      },
    ],
    [
      'site_not_cooperative',
      'the site is gone',
      (world) => {
        world.site = null
      },
    ],
    [
      'session_not_found',
      'the right to view is taken back',
      (world) => {
        world.rights = []
      },
    ],
    [
      'forbidden',
      'the right to invoke is taken back',
      (world) => {
        world.rights = ['view']
      },
    ],
  ])('refuses with %s when %s while somebody approves', async (code, _, change) => {
    const made = createGate({
      approve: () => {
        change(made.world)
        return true
      },
    })
    await expect(made.invoke()).rejects.toMatchObject(refusal(code))
    expect(made.world.calls).toEqual([])
  })

  it.each([1, 'yes', {}, [], 'true'])('takes a policy that answers %j for a no', async (said) => {
    const none = createGate({ policy: { check: () => said as never } })
    await expect(none.invoke()).rejects.toMatchObject(refusal('session_not_found'))
    const views = createGate({ policy: { check: ({ right }) => (right === 'view' ? true : (said as never)) } })
    await expect(views.invoke()).rejects.toMatchObject(refusal('forbidden'))
    const approved = createGate({ approve: () => said as never })
    await expect(approved.invoke()).rejects.toMatchObject(refusal('approval_denied'))
  })

  it('asks for an absent session what it asks for a foreign one', async () => {
    const count = async (session_id: string) => {
      const asked: string[] = []
      const { invoke } = createGate({
        sessions: {
          get: async (id) => {
            asked.push('session')
            return id === 's1' ? createGate().world.session : null
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

describe('a handler`s lease', () => {
  it('comes back when the handler fails', async () => {
    const handlers = createActionHandlers({ onError: null })
    let runs = 0
    handlers.handle('archive_note', { parameters: z.looseObject({}), lease: true }, () => {
      if (++runs === 1) throw new Error('x')
      return runs
    })
    await handlers.execute({ action: 'archive_note' })
    expect(await handlers.execute({ action: 'archive_note' })).toEqual({ ok: true, result: 2 })
  })
})

describe('the ring of a topic', () => {
  it('reads no event that is older than its size', async () => {
    const bus = createCooperativeSiteEventBus({ queueSize: 3 })
    const reader = bus.subscribe('t')
    for (let n = 1; n <= 4; n++) bus.publish('t', event(n))
    const [gap, ...rest] = await collect(reader, 4)
    expect(gap).toEqual({ type: 'gap', reason: 'overflow', dropped: 1, first_seq: 1, last_seq: 1 })
    expect(rest).toMatchObject([{ event: { data: 2 } }, { event: { data: 3 } }, { event: { data: 4 } }])
    expect(reader.take()).toBeUndefined()
  })

  it('reads none that is older either where the newest never came', async () => {
    const topic = createTopic({ queueSize: 3, position: { epoch: 'e', seq: 0 } })
    const reader = topic.subscribe()
    for (let seq = 1; seq <= 3; seq++) topic.append({ ...event(seq), seq })
    topic.moveTo({ epoch: 'e', seq: 4 })
    expect((await reader.next()).value).toEqual({
      type: 'gap',
      reason: 'overflow',
      dropped: 1,
      first_seq: 1,
      last_seq: 1,
    })
    expect((await reader.next()).value).toMatchObject({ event: { seq: 2 } })
  })

  it('keeps the place of a topic whose user has few of them, however many another has', () => {
    const bus = createCooperativeSiteEventBus()
    bus.publish('users/bob/sites/notes/events', event(1))
    for (let n = 0; n < 10_050; n++) bus.publish(`users/mallory/sites/s${n}/events`, event(1))
    expect(bus.subscribe('users/bob/sites/notes/events').position.seq).toBe(1)
    expect(bus.subscribe('users/mallory/sites/s0/events').position.seq).toBe(0)
    expect(bus.subscribe('users/mallory/sites/s10049/events').position.seq).toBe(1)
  })
})

describe('a grant', () => {
  it('is not fresh when something changed while it was read', async () => {
    const session = { ...(createGate().world.session as Session) }
    const first = deferred<Session>()
    const answers = [first.promise, new Promise<Session>(() => {})]
    let changed = () => {}
    const grants = createSessionGrants({
      sessions: {
        get: () => answers.shift() as Promise<Session>,
        watch: (_, notify) => {
          changed = notify
          return () => {}
        },
      },
      sites: { get: async () => createGate().world.site },
      policy: { check: async () => true },
      now: () => START,
    })
    const fresh = vi.fn()
    const grant = grants.hold(
      { fresh, ended: () => {} },
      { user_id: 'bob' },
      { session_id: 's1', topic: siteStream('alice', 'notes') },
    )
    grant.refresh()
    await flushPromises()
    changed()
    first.resolve(session)
    await flushPromises()
    expect(grant.isFresh).toBe(false)
    expect(fresh).not.toHaveBeenCalled()
    expect(answers).toEqual([])
  })
})

describe('a live stream', () => {
  holdTime()

  it.each([1, 'yes', {}])('ends when the policy answers %j', async (said) => {
    let answer: unknown = true
    const world = await createWorld({ policy: { check: async () => answer as boolean } })
    const viewer = await watch(world)
    await viewer.read()
    answer = said
    publish(world, 1, 1)
    await vi.advanceTimersByTimeAsync(1_000)
    expect((await viewer.drain()).at(-1)).toMatchObject({ event: 'end', data: { reason: 'policy_revoked' } })
  })

  it('shows of an event what its schema names, whatever was published past the ingest', async () => {
    const world = await createWorld()
    const viewer = await watch(world)
    await viewer.read()
    const name = 'note_changed'
    const published = { ...event(1), site_id: 'notes', name, secret: 'for nobody' }
    world.bus.publish('users/alice/sites/notes/events', published)
    await viewer.read()
    expect(viewer.frames.at(-1)).toMatchObject({ event: 'site_event', data: { name } })
    expect(JSON.stringify(viewer.frames)).not.toContain('for nobody')
  })

  it('of a token that was revoked ends, and that of another token of the same user goes on', async () => {
    const revoked = new Set<string>()
    const world = await createWorld({
      authenticateViewer: (request) => ({ user_id: 'bob', key: request.headers.get('x-token') as string }),
      policy: { check: async ({ viewer }) => !revoked.has(viewer.key as string) },
    })
    const [first, second] = [
      await watch(world, 'bob', { 'x-token': 'a' }),
      await watch(world, 'bob', { 'x-token': 'b' }),
    ]
    await Promise.all([first.read(), second.read()])
    revoked.add('a')
    await vi.advanceTimersByTimeAsync(1_000)
    publish(world, 1, 1)
    expect((await first.drain()).at(-1)).toMatchObject({ event: 'end', data: { reason: 'policy_revoked' } })
    await second.read()
    expect(second.frames.at(-1)).toMatchObject({ event: 'site_event' })
  })

  it('without a key shows the policy a user id and nothing else', async () => {
    const seen: object[] = []
    const world = await createWorld({
      authenticateViewer: () => ({ user_id: 'bob', token: 'secret' }) as { user_id: string },
      policy: { check: async ({ viewer }) => seen.push(viewer) > 0 },
    })
    await watch(world)
    expect(seen[0]).toEqual({ user_id: 'bob' })
  })

  it('is asked for again, and has its heartbeats, when the wall clock is set back', async () => {
    const world = await createWorld({ heartbeatMs: 2_000 })
    const viewer = await watch(world)
    await viewer.read()
    const beat = viewer.read()
    await vi.advanceTimersByTimeAsync(1_000)
    vi.setSystemTime(START - 600_000)
    await vi.advanceTimersByTimeAsync(2_000)
    await beat
    expect(viewer.comments).toHaveLength(1)
    await world.sites.delete('notes')
    publish(world, 1, 1)
    const last = viewer.drain()
    await vi.advanceTimersByTimeAsync(1_000)
    expect((await last).at(-1)).toMatchObject({ event: 'end', data: { reason: 'session_closed' } })
  })
})
