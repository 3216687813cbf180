/** `/findings` over live facilities of either composition: nothing of a healthy world under load, everything of a broken one. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import type { Refusal } from '../../src/refusal.js'
import type { Finding } from '../../src/views/findings/finding.js'

type MemoryFacilities = ReturnType<typeof createMemoryFacilities>
type Facilities = Pick<
  MemoryFacilities,
  'connections' | 'contexts' | 'browserWindows' | 'rpc' | 'dispatcher' | 'sites' | 'sessions' | 'close'
>

/** What a host and whoever observes it have. */
interface World {
  facilities: Facilities
  get(path: string): Promise<{ status: number; body: { items: Finding[]; has_more: boolean; next_cursor: string } }>
}

// A minute by hand: FINDINGS_SECONDS=60.
const SECONDS = Number(process.env.FINDINGS_SECONDS ?? 4)
const CLIENTS = 12

const clientOf = (i: number) => ({
  user_id: `user-${i % 5}`,
  client_id: `client-${i}`,
  client_type: 'browser' as const,
})

async function allFindings({ get }: World): Promise<Finding[]> {
  const found: Finding[] = []
  let cursor = ''
  do {
    const { status, body } = await get(`/findings?limit=50${cursor}`)
    expect(status).toBe(200)
    found.push(...body.items)
    cursor = body.has_more ? `&cursor=${body.next_cursor}` : ''
  } while (cursor !== '')
  return found
}

/** One client at work until `isOver`: reports, tasks, commands, calls, and a clean leave each time. */
async function work({ facilities }: World, i: number, isOver: () => boolean): Promise<number> {
  const { connections, contexts, browserWindows, dispatcher, rpc } = facilities
  const client = clientOf(i)
  const key = { user_id: client.user_id, client_id: client.client_id }
  let rounds = 0
  for (; !isOver(); rounds++) {
    const instance_id = `instance-${rounds}`
    const own = { ...client, instance_id }
    const { connection_id } = await connections.connect({ ...own, actions: ['open'] })
    const done = new Set<string>()
    const waiter = await dispatcher.attach({ ...key, instance_id }, async ({ command_id }) => {
      await dispatcher.acknowledge({ ...key, command_id, instance_id })
      await dispatcher.settle({ ...key, command_id, state: 'resulted', instance_id })
      done.add(command_id)
    })
    const context_id = `context-${i}-${rounds}`
    const window_id = `window-${i}-${rounds}`
    await browserWindows.report({ ...key, window_id })
    await contexts.report({ ...own, context_id, window_id, status: 'active', ownership: 'worker' })
    await contexts.assignTask(context_id, `task-${rounds}`)
    for (let n = 0; n < 5; n++)
      await dispatcher.dispatch({ ...key, command_id: `command-${rounds}-${n}`, action: 'open', deadlineMs: 60_000 })
    const { correlation_id, result } = await rpc.open({ ...key, instance_id, action: 'open', timeoutMs: 60_000 })
    await rpc.settle(correlation_id, { ok: true, result: rounds })
    await result
    // Whoever leaves cleanly has done what came.
    await expect.poll(() => done.size, { interval: 5, timeout: 30_000 }).toBe(5)
    await contexts.releaseTask(context_id)
    await contexts.close(context_id)
    await browserWindows.close(window_id)
    await waiter.detach()
    await connections.disconnect(connection_id, 'client_left')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return rounds
}

/** @param make A fresh world each time. */
export function findingsBattery(name: string, make: () => Promise<World> | World): void {
  describe(`findings over ${name}`, () => {
    const create = async () => {
      const world = await make()
      onTestFinished(async () => void (await world.facilities.close()))
      return world
    }

    it('are none of a healthy world under load', { timeout: SECONDS * 1_000 + 120_000 }, async () => {
      const world = await create()
      const endsAt = performance.now() + SECONDS * 1_000
      const isOver = () => performance.now() > endsAt
      const clients = Array.from({ length: CLIENTS }, (_, i) => work(world, i, isOver))
      const found: Finding[] = []
      let looks = 0
      for (; !isOver(); looks++) found.push(...(await allFindings(world)))
      const rounds = (await Promise.all(clients)).reduce((sum, one) => sum + one, 0)
      expect(found.slice(0, 3).map((one) => JSON.stringify(one))).toEqual([])
      expect([looks > 0, rounds >= CLIENTS]).toEqual([true, true])
    })

    it('are what a broken one contradicts', async () => {
      const world = await create()
      const { connections, contexts, browserWindows, dispatcher, rpc, sites, sessions } = world.facilities
      const gone = { user_id: 'ann', client_id: 'gone' }
      const here = { user_id: 'ann', client_id: 'here' }
      const client_type = 'console' as const
      await connections.connect({ ...here, client_type, instance_id: 'old' })
      const call = await rpc.open({ ...here, instance_id: 'old', action: 'a', timeoutMs: 60_000 })
      call.result.catch((_: Refusal) => {})
      await connections.connect({ ...here, client_type, instance_id: 'new' })
      await contexts.report({ ...gone, client_type, context_id: 'tab', status: 'active' })
      await contexts.report({ ...gone, client_type, context_id: 'flow', status: 'idle', ownership: 'worker' })
      await contexts.assignTask('flow', 'task')
      await contexts.report({ ...here, client_type, context_id: 'well', status: 'active' })
      await browserWindows.report({ ...gone, window_id: 'frame' })
      await dispatcher.dispatch({ ...gone, command_id: 'k', action: 'a', deadlineMs: 60_000 })
      await sites.put({ site_id: 'notes', owner: 'ann', mode: 'observe' })
      const { session_id } = await sessions.open({ site_id: 'notes', owner: 'ann', connector: gone })
      await sessions.activate(session_id)
      const told = (await allFindings(world)).map(({ kind, subject }) => [kind, Object.values(subject)[0]])
      expect(told.sort()).toEqual(
        [
          ['call_to_superseded_instance', call.correlation_id],
          ['command_waiting_for_nobody', 'ann'],
          ['context_of_disconnected_client', 'tab'],
          ['session_without_connector', session_id],
          ['window_of_disconnected_client', 'frame'],
          ['worker_of_disconnected_client', 'flow'],
        ].sort(),
      )
    })
  })
}
