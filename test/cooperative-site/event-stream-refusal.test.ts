/** Who gets no event stream. */
import { describe, expect, it } from 'vitest'
import { createCooperativeSiteEventBus } from '../../src/cooperative-site/index.js'
import { Refusal } from '../../src/internal/refusal.js'
import { deferred } from './deferred.js'
import { holdTime, watch } from './viewer.js'
import { createWorld, type World } from './world.js'

holdTime()

describe('the event stream is refused', () => {
  const ask = (world: World, user: string | null, id = world.session_id) =>
    world.ask(user, 'GET', `/sessions/${id}/events`)

  it('in the same way for a missing session and for one of another user', async () => {
    const world = await createWorld()
    const answers = [await ask(world, 'mallory'), await ask(world, 'mallory', 'guessed')]
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    expect(answers.map(({ status }) => status)).toEqual([404, 404])
    expect(texts[0]).toBe(texts[1])
    expect(JSON.parse(texts[0] ?? '').code).toBe('session_not_found')
  })

  it('for a pending or closed session, but not for a suspended one', async () => {
    const world = await createWorld()
    await world.sessions.suspend(world.session_id)
    const suspended = await watch(world)
    await suspended.read()
    expect(suspended.frames[0]?.event).toBe('ready')
    await world.sessions.close(world.session_id)
    const closed = await ask(world, 'bob')
    expect([closed.status, (await closed.json()).code]).toEqual([409, 'session_not_active'])
    const pending = await world.sessions.open({ site_id: 'notes', owner: 'alice' })
    expect((await ask(world, 'alice', pending.session_id)).status).toBe(409)
  })

  it('when its site was deleted', async () => {
    const world = await createWorld()
    await world.sites.delete('notes')
    expect((await ask(world, 'bob')).status).toBe(409)
  })

  describe('to a viewer with too many open streams', () => {
    const BOUNDS = { streamsPerViewer: 3, streamsPerViewerInSession: 2 }

    /** The session of the world, and another one that bob and carol may view. */
    async function open() {
      const world = await createWorld(BOUNDS)
      const other = await world.sessions.open({ site_id: 'notes', owner: 'alice' })
      await world.sessions.activate(other.session_id)
      for (const user_id of ['bob', 'carol'])
        await world.sessions.share(other.session_id, { user_id, rights: ['view'] })
      return { world, other: { ...world, session_id: other.session_id } }
    }

    const refused = async (world: World, user = 'bob') => {
      const answer = await ask(world, user, world.session_id)
      return [answer.status, (await answer.json()).code]
    }

    it('in one session, and keeps the open ones', async () => {
      const { world } = await open()
      const first = [await watch(world), await watch(world)]
      expect(await refused(world)).toEqual([429, 'share_exceeded'])
      for (const viewer of first) {
        await viewer.read()
        expect(viewer.frames).toMatchObject([{ event: 'ready' }])
      }
      expect(world.relay.streams).toBe(2)
      // The streams of one viewer do not count for another.
      await watch(world, 'carol')
    })

    it('in all sessions together', async () => {
      const { world, other } = await open()
      for (const where of [world, world, other]) await watch(where)
      expect(await refused(other)).toEqual([429, 'share_exceeded'])
      await watch(other, 'carol')
    })

    it.each<[string, (world: World, first: Awaited<ReturnType<typeof watch>>) => unknown]>([
      ['its client hangs up', (_world, { controller }) => controller.abort()],
      ['its reader stops', (_world, { reader }) => reader.cancel()],
      [
        'its permission ends',
        async ({ sessions, session_id }, first) => {
          await sessions.unshare(session_id, 'bob')
          await first.drain()
          await sessions.share(session_id, { user_id: 'bob', rights: ['view'] })
        },
      ],
    ])('until %s', async (_how, end) => {
      const { world } = await open()
      const [first] = [await watch(world), await watch(world)]
      expect((await refused(world))[0]).toBe(429)
      await end(world, first)
      await watch(world)
    })

    it('not counting those that failed to open', async () => {
      let isDown = true
      const bus = createCooperativeSiteEventBus()
      const prepare = async () => {
        if (isDown) throw new Refusal('unavailable')
      }
      const world = await createWorld({ ...BOUNDS, bus: { ...bus, prepare } })
      for (let n = 0; n < 5; n++) expect((await ask(world, 'bob')).status).toBe(503)
      isDown = false
      await watch(world)
      await watch(world)
      expect((await refused(world))[0]).toBe(429)
    })

    it('counting those that are being opened', async () => {
      const bus = createCooperativeSiteEventBus()
      const ready = deferred<void>()
      const world = await createWorld({ ...BOUNDS, bus: { ...bus, prepare: () => ready.promise } })
      const opening = Array.from({ length: 5 }, () => ask(world, 'bob'))
      ready.resolve()
      const statuses = (await Promise.all(opening)).map(({ status }) => status)
      expect(statuses.sort()).toEqual([200, 200, 429, 429, 429])
    })
  })
})
