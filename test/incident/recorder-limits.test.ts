/** The flight recorder where it cannot have everything: long lists, sources that hang, clocks that are set. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Change, withinTime } from '../../src/incident/follow.js'
import { PART_BY_ROUTE, type Part } from '../../src/incident/parts.js'
import { createFlightRecorder, type FlightRecorderOptions } from '../../src/incident/recorder.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/kits.js'
import { createSubject, type RouterOptions } from '../diagnostics/subject.js'
import { connection, createWorld, NOW } from '../diagnostics/world.js'
import { soon } from '../redis/wait-for.js'
import { askRouter, HEADERS } from './subject.js'

/** A recorder over a world of fakes, which has read once, and a router that has it. */
async function recorded(options: FlightRecorderOptions = {}, routerOptions: RouterOptions = {}) {
  const world = createWorld()
  world.connections = []
  const inspectors = createFakeInspectors(world as FakeWorld)
  const recorder = createFlightRecorder({ inspectors, everyMs: 600_000, onError: null, ...options })
  onTestFinished(() => recorder.close())
  await recorder.started
  const router = createSubject({ inspectors, recorder, ...(options.now && { now: options.now }), ...routerOptions })
  const fetchAt = (instant: number, path: string) =>
    router.fetch(new Request(`http://localhost${router.prefix}/at/${instant}${path}`, { headers: HEADERS }))
  return { world, recorder, fetchAt }
}

describe('createFlightRecorder', () => {
  it('shows what is between two readings as of the last one, and says so', async () => {
    const { world, recorder, fetchAt } = await recorded()
    world.connections = [connection({})]
    const readAt = new Date(recorder.span()?.to as number).toISOString()
    const list = await fetchAt(Date.now(), '/connections')
    expect([list.headers.get('x-as-of'), await list.json()]).toEqual([readAt, expect.objectContaining({ items: [] })])
    const count = await (await fetchAt(Date.now(), '/connections/count')).json()
    expect(count).toMatchObject({ total: 0, observed_at: readAt })
  })

  it('names no instant in a refusal', async () => {
    const { recorder, fetchAt } = await recorded({}, { authorize: () => false })
    const refused = await fetchAt(recorder.span()?.to as number, '/connections')
    expect([refused.status, refused.headers.get('x-as-of')]).toEqual([403, null])
  })

  it('keeps what ended badly of a list that is longer than what is followed', async () => {
    const most = { maxConnections: 10_000, maxConnectionsPerUser: 10_000 }
    const facilities = createMemoryFacilities({ connections: most, dispatcher: { deadlineMs: 3_600_000 } })
    const { connections, dispatcher } = facilities
    const composition = memoryComposition(facilities)
    const client = { user_id: 'alice', instance_id: 'i' }
    const connect = (client_id: string) => connections.connect({ ...client, client_id, client_type: 'web' })
    const dispatch = (command_id: string, i: number) =>
      dispatcher.dispatch({ user_id: `user-${i % 10}`, client_id: 'c', command_id, action: 'work', payload: {} })
    const oldest = await connect('oldest')
    await connections.connect({ ...client, user_id: 'user-0', client_id: 'c', client_type: 'web' })
    await dispatcher.attach({ ...client, user_id: 'user-0', client_id: 'c' }, () => {})
    await dispatch('oldest', 0)
    for (let i = 0; i < 2_100; i++) {
      await connect(`client-${i}`)
      await dispatch(`later-${i}`, i)
    }
    const recorder = createFlightRecorder({ ...composition, everyMs: 5, onError: null })
    onTestFinished(async () => {
      await recorder.close()
      await facilities.close()
    })
    await recorder.started
    await connections.disconnect(oldest.connection_id, 'crashed')
    await dispatcher.settle({
      user_id: 'user-0',
      client_id: 'c',
      instance_id: 'i',
      command_id: 'oldest',
      state: 'failed',
    })
    const router = createSubject({ ...composition, recorder })
    await soon(async () => {
      const at = recorder.span()?.to
      const ask = (path: string) => askRouter(router, `/at/${at}${path}`, HEADERS)
      expect(await ask(`/connections/${oldest.connection_id}`)).toMatchObject({ body: { status: 'disconnected' } })
      const failed = await ask('/delivery/commands?state=failed')
      expect(failed).toMatchObject({ body: { items: [{ command_id: 'oldest' }] } })
      // The oldest rows are unknown: no page begins with others in their place.
      expect((await ask('/connections?order=oldest')).status).toBe(503)
    })
  })

  it('drops what comes again after its clock was set back', async () => {
    let skew = 0
    const errors: unknown[] = []
    const now = () => NOW + Math.round(performance.now()) + skew
    const { world, recorder, fetchAt } = await recorded({ now, everyMs: 5, onError: (error) => errors.push(error) })
    await soon(() => expect(recorder.span()?.to).toBeGreaterThan(recorder.span()?.from as number))
    skew = -300_000
    await soon(() => expect(recorder.span()?.to).toBeLessThan(now() + 1_000))
    world.connections = [connection({})]
    await soon(async () => {
      const { items } = (await (await fetchAt(recorder.span()?.to as number, '/connections')).json()) as {
        items: object[]
      }
      expect(items).toHaveLength(1)
    })
    expect(errors.map(String)).toEqual([expect.stringContaining('the clock was set back by')])
  })

  it('shows the time that a clock skips as a gap', async () => {
    let skew = 0
    const now = () => NOW + Math.round(performance.now()) + skew
    const { recorder, fetchAt } = await recorded({ now, everyMs: 5 })
    skew = 1_800_000
    await soon(() => expect(recorder.span()?.gaps).toHaveLength(1))
    const [from, to] = recorder.span()?.gaps[0] as readonly [number, number]
    expect(to - from).toBeGreaterThan(1_700_000)
    const within = await fetchAt(Math.floor((from + to) / 2), '/connections')
    expect([within.status, within.headers.get('x-as-of')]).toEqual([200, new Date(from).toISOString()])
  })
})

describe('a route that does not answer in time', () => {
  it('is lost until it answers, and is then read as a whole', async () => {
    const part = PART_BY_ROUTE.get('/connections') as Part
    const answer = (step: number): Change => ({ kind: 'answer', route: part.route, answer: { step } })
    let step = 0
    let release = () => {}
    let hanging: Promise<void> | undefined
    const one = withinTime(
      {
        part,
        async read() {
          await hanging
          return [answer(++step)]
        },
        isLost: () => false,
        whole: () => [answer(100 + step)],
        row: () => undefined,
      },
      20,
    )
    expect(await one.read()).toEqual([answer(1)])
    hanging = new Promise((resolve) => {
      release = resolve
    })
    const lost = { kind: 'lost', route: part.route, reason: 'unreachable', detail: 'no answer within 20 ms' }
    expect([await one.read(), one.isLost(), one.whole()]).toEqual([[lost], true, [lost]])
    // One that is asked already is not asked again.
    expect([await one.read(), step]).toEqual([[], 1])
    release()
    hanging = undefined
    await soon(async () => expect(await one.read()).toEqual([answer(100 + step)]))
    expect([await one.read(), one.isLost()]).toEqual([[answer(step)], false])
  })
})
