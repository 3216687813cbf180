/** `/findings` over live facilities of either composition: nothing of a healthy world under load, everything of a broken one. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Refusal } from '../../src/internal/refusal.js'
import type { Finding } from '../../src/internal/views/findings/finding.js'
import type { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { createClock } from './clock.js'

type MemoryFacilities = ReturnType<typeof createMemoryFacilities>
type Facilities = Pick<
  MemoryFacilities,
  'connections' | 'contexts' | 'browserWindows' | 'rpc' | 'dispatcher' | 'sites' | 'sessions' | 'close'
>

interface WorldOptions {
  dispatcher?: { ackTimeoutMs: number }
  nodeId?: string
  now?: () => number
}

/** The parts of a host and of its observer. */
interface World {
  facilities: Facilities
  get(path: string): Promise<{ status: number; body: { items: Finding[]; has_more: boolean; next_cursor: string } }>
}

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
      await dispatcher.dispatch({ ...key, command_id: `command-${rounds}-${n}`, action: 'open', deadline_ms: 60_000 })
    const { correlation_id, result } = await rpc.open({ ...key, instance_id, action: 'open', timeout_ms: 60_000 })
    await rpc.settle(correlation_id, { ok: true, result: rounds })
    await result
    // A client that disconnects cleanly has finished its work.
    await expect.poll(() => done.size, { interval: 5, timeout: 300_000 }).toBe(5)
    await contexts.releaseTask(context_id)
    await contexts.close(context_id)
    await browserWindows.close(window_id)
    await waiter.detach()
    await connections.disconnect(connection_id, 'client_left')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return rounds
}

/** A client in a process of its own that acknowledges each command it reads. Commands and acknowledgements are lines. */
function startClient(onAcknowledged: (command_id: string) => void) {
  const child = spawn(process.execPath, ['-e', 'process.stdin.pipe(process.stdout)'], { stdio: 'pipe' })
  onTestFinished(() => void child.kill('SIGKILL'))
  createInterface(child.stdout).on('line', onAcknowledged)
  return child
}

/**
 * @param make A fresh world each time.
 * @param seconds How long the healthy world works. A minute by hand: FINDINGS_SECONDS=60.
 */
export function findingsBattery(
  name: string,
  make: (options?: WorldOptions) => Promise<World> | World,
  seconds = 1,
): void {
  const workMs = 1_000 * Number(process.env.FINDINGS_SECONDS ?? seconds)
  describe(`findings over ${name}`, () => {
    const create = async (...options: Parameters<typeof make>) => {
      const world = await make(...options)
      onTestFinished(async () => void (await world.facilities.close()))
      return world
    }

    it('are empty in a healthy world under load', { timeout: workMs + 120_000 }, async () => {
      const world = await create()
      const endsAt = performance.now() + workMs
      const isOver = () => performance.now() > endsAt
      const clients = Array.from({ length: CLIENTS }, (_, i) => work(world, i, isOver))
      const found: Finding[] = []
      let looks = 0
      for (; !isOver(); looks++) found.push(...(await allFindings(world)))
      const rounds = (await Promise.all(clients)).reduce((sum, one) => sum + one, 0)
      expect(found.slice(0, 3).map((one) => JSON.stringify(one))).toEqual([])
      expect([looks > 0, rounds >= CLIENTS]).toEqual([true, true])
    })

    it('name the command of a suspended client until the client runs again', { timeout: 120_000 }, async () => {
      const world = await create({ dispatcher: { ackTimeoutMs: 300 } })
      const { connections, dispatcher } = world.facilities
      const client = { user_id: 'ada', client_id: 'laptop' }
      const instance = { ...client, instance_id: 'run-1' }
      const child = startClient((command_id) => void dispatcher.acknowledge({ ...instance, command_id }))
      await connections.connect({ ...instance, client_type: 'console' })
      await dispatcher.attach(instance, ({ command_id }) => void child.stdin.write(`${command_id}\n`))
      // The same command again returns its record.
      const dispatch = (command_id: string) =>
        dispatcher.dispatch({ ...client, command_id, action: 'sync', deadline_ms: 100_000, max_attempts: 100 })
      const found = async () =>
        (await allFindings(world)).filter(({ kind }) => kind === 'command_not_acknowledged').map((one) => one.subject)
      await dispatch('before')
      const wait = { interval: 50, timeout: 300_000 }
      await expect.poll(async () => (await dispatch('before')).acknowledgement.state, wait).toBe('acknowledged')
      expect(await found()).toEqual([])
      child.kill('SIGSTOP')
      await dispatch('during')
      const subject = { ...client, command_id: 'during' }
      await expect.poll(found, wait).toEqual([subject])
      // It is still found after further attempts.
      await expect.poll(async () => (await dispatch('during')).attempts.count, wait).toBeGreaterThan(2)
      expect(await found()).toEqual([subject])
      child.kill('SIGCONT')
      await expect.poll(found, wait).toEqual([])
      expect((await dispatch('during')).acknowledgement.state).toBe('acknowledged')
    })

    it('name a suspended client after its command has failed, until it acknowledges one', {
      timeout: 120_000,
    }, async () => {
      const world = await create({ dispatcher: { ackTimeoutMs: 100 } })
      const { connections, dispatcher } = world.facilities
      const client = { user_id: 'ada', client_id: 'laptop' }
      const instance = { ...client, instance_id: 'run-1' }
      let isSuspended = true
      await connections.connect({ ...instance, client_type: 'console' })
      await dispatcher.attach(instance, async ({ command_id }) => {
        if (!isSuspended) await dispatcher.acknowledge({ ...instance, command_id })
      })
      const dispatch = (command_id: string) =>
        dispatcher.dispatch({ ...client, command_id, action: 'sync', deadline_ms: 100_000, max_attempts: 2 })
      const found = async () =>
        (await allFindings(world)).filter(({ kind }) => kind === 'client_not_acknowledging').map((one) => one.subject)
      const wait = { interval: 50, timeout: 300_000 }
      await dispatch('lost')
      await expect.poll(async () => (await dispatch('lost')).terminal?.reason, wait).toBe('attempts_exhausted')
      expect(await found()).toEqual([client])
      isSuspended = false
      await dispatch('seen')
      await expect.poll(async () => (await dispatch('seen')).acknowledgement.state, wait).toBe('acknowledged')
      expect(await found()).toEqual([])
    })

    it('name a silent node, and the count says how many connected clients are of it', async () => {
      const clock = createClock()
      const world = await create({ nodeId: 'node-1', now: clock.now })
      const { connections, dispatcher } = world.facilities
      for (const client_id of ['laptop', 'phone'])
        await connections.connect({ user_id: 'ada', client_id, instance_id: 'run-1', client_type: 'console' })
      await dispatcher.reconcile()
      const counted = async (query = '') => {
        const { status, body } = await world.get(`/connections/count${query}`)
        const { by_status, of_silent_nodes } = body as unknown as Record<string, unknown>
        return [status, by_status, of_silent_nodes]
      }
      const by_status = { connected: 2, disconnected: 0 }
      expect(await counted()).toEqual([200, by_status, 0])
      // No node is left to report.
      await dispatcher.close()
      clock.advance(6_000)
      expect(await counted()).toEqual([200, by_status, 2])
      expect(await counted('?client_id=phone&user_id=ada')).toEqual([200, { ...by_status, connected: 1 }, 1])
      expect(await counted('?node_id=node-2')).toEqual([200, { ...by_status, connected: 0 }, 0])
      expect(await counted('?status=disconnected')).toEqual([200, { ...by_status, connected: 0 }, 0])
      expect((await allFindings(world)).map(({ kind, subject }) => [kind, subject])).toEqual([
        ['silent_node_holds', { node_id: 'node-1' }],
      ])
    })

    it('are what a broken one contradicts', async () => {
      const world = await create()
      const { connections, contexts, browserWindows, dispatcher, rpc, sites, sessions } = world.facilities
      const gone = { user_id: 'ann', client_id: 'gone' }
      const here = { user_id: 'ann', client_id: 'here' }
      const client_type = 'console' as const
      await connections.connect({ ...here, client_type, instance_id: 'old' })
      const call = await rpc.open({ ...here, instance_id: 'old', action: 'a', timeout_ms: 60_000 })
      call.result.catch((_: Refusal) => {})
      await connections.connect({ ...here, client_type, instance_id: 'new' })
      await contexts.report({ ...gone, client_type, context_id: 'tab', status: 'active' })
      await contexts.report({ ...gone, client_type, context_id: 'flow', status: 'idle', ownership: 'worker' })
      await contexts.assignTask('flow', 'task')
      await contexts.report({ ...here, client_type, context_id: 'well', status: 'active' })
      await browserWindows.report({ ...gone, window_id: 'frame' })
      await dispatcher.dispatch({ ...gone, command_id: 'k', action: 'a', deadline_ms: 60_000 })
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
