/** The viewer streams of a relay as its operator sees them. */
import { describe, expect, it } from 'vitest'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createSubscriptionRegistry } from '../../src/memory/cooperative/subscriptions.js'
import { subscriptionRegistryBattery } from '../contract/subscriptions.js'
import { holdTime, publish, START, watch } from './viewer.js'
import { createWorld } from './world.js'

subscriptionRegistryBattery('memory', async (options) => ({
  subscriptions: createSubscriptionRegistry(options),
  close: async () => {},
}))

describe('the streams of a relay', () => {
  holdTime()

  async function open() {
    const subscriptions = createSubscriptionRegistry()
    const world = await createWorld({ subscriptions })
    const { sessions, sites, facilities } = world
    const inspectors = memoryComposition({ ...facilities, sites, sessions, subscriptions })
    const router = createDiagnosticsRouter({ ...inspectors, auth: noopAuth(), onError: null })
    const ask = async (path: string) => (await router(new Request(`http://relay.test${path}`))).json()
    return { world, ask }
  }

  it('are listed with their pending and dropped events, the slowest first', async () => {
    const { world, ask } = await open()
    const [bob, carol] = [await watch(world, 'bob'), await watch(world, 'carol')]
    expect((await ask('/subscriptions')).items).toMatchObject([
      {
        user_id: 'bob',
        session_id: world.session_id,
        site_id: 'notes',
        node_id: null,
        pending: 0,
        last_taken_at: null,
      },
      { user_id: 'carol' },
    ])
    for (const viewer of [bob, carol]) await viewer.read()
    publish(world, 1, 130)
    await carol.read()
    await carol.read()
    const slowest = await ask('/subscriptions?order=slowest')
    const epoch = carol.frames[0]?.id?.split(':')[0]
    const now = new Date(START).toISOString()
    expect(slowest.items).toMatchObject([
      { user_id: 'bob', pending: 100, dropped: 30, last_position: `${epoch}:0`, last_taken_at: now, opened_at: now },
      { user_id: 'carol', pending: 0, dropped: 30, last_position: `${epoch}:130`, last_taken_at: now },
    ])
    expect(slowest.completeness).toMatchObject({ complete: true, examined: { subscriptions: 2 } })
    expect((await ask('/sessions')).items).toMatchObject([{ viewers: 2, shares: 2, connector_connected: true }])
  })

  it('are listed while they are open, however they end', async () => {
    const { world, ask } = await open()
    const [bob, carol] = [await watch(world, 'bob'), await watch(world, 'carol')]
    bob.controller.abort()
    expect((await ask('/subscriptions')).items).toMatchObject([{ user_id: 'carol' }])
    await carol.reader.cancel()
    expect((await ask('/subscriptions')).items).toEqual([])
    await watch(world, 'bob')
    await world.relay.close()
    expect((await ask('/subscriptions')).items).toEqual([])
  })

  it('show what a reconnected viewer had missed', async () => {
    const { world, ask } = await open()
    const first = await watch(world)
    await first.read()
    const { id } = first.frames[0] as { id: string }
    first.controller.abort()
    publish(world, 1, 5)
    await watch(world, 'bob', { 'last-event-id': id })
    expect((await ask('/subscriptions')).items).toMatchObject([{ dropped: 5, pending: 0 }])
  })

  it('continue even if a host’s own registry fails', async () => {
    const errors: unknown[] = []
    const failing = () => {
      throw new Error('no luck')
    }
    for (const add of [failing, () => failing, () => undefined as never]) {
      const world = await createWorld({ subscriptions: { add }, onError: (error) => errors.push(error) })
      const viewer = await watch(world)
      await viewer.read()
      publish(world, 1, 1)
      await viewer.read()
      expect(viewer.frames.map(({ event }) => event)).toEqual(['ready', 'site_event'])
      viewer.controller.abort()
      expect(world.relay.streams).toBe(0)
    }
    expect(errors).toHaveLength(2)
  })
})
