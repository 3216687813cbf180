/**
 * What goes wrong at night, all at once: a client that never answers, a silent node, a full scope, two instances that
 * supersede each other, a dead application, and lost windows. Two nodes over the machine's own `redis-server`.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { redisComposition } from 'relayscope/redis'
import { own } from '../processes.mjs'
import { openStore } from '../store.mjs'
import { CAPACITY, clientOf, DEPLOYMENT, openNode } from './broken-node.mjs'
import { every } from './every.mjs'

const DYING_NODE = fileURLToPath(new URL('dying-node.mjs', import.meta.url))

export async function open({ signal }) {
  const store = await openStore('embedded')
  const live = await openNode(store.url, 'node-a')
  const { connections, contexts, browserWindows, dispatcher, rpc, sites, sessions, bus } = live.facilities
  const commands = { next: 1 }
  const idOf = (client, name) => ({
    user_id: client.user_id,
    client_id: client.client_id,
    command_id: `${name}-${commands.next++}`,
  })

  /** Connections that give signs of life. */
  const alive = []
  async function join(client, deliver) {
    alive.push((await connections.connect(client)).connection_id)
    await dispatcher.attach(client, deliver)
  }

  /** Reports the window of a browser and its workers, each with its task or `null`. */
  async function reportFarm(client, tasks) {
    const { user_id, client_id } = client
    const window_id = `window-of-${user_id}`
    await browserWindows.report({ user_id, client_id, window_id, ownership: 'worker', capacity: 2 })
    for (const [i, task] of tasks.entries()) {
      const context_id = `worker-of-${user_id}-${i + 1}`
      await contexts.report({ ...client, context_id, status: task ? 'active' : 'idle', ownership: 'worker', window_id })
      if (task) await contexts.assignTask(context_id, task)
    }
  }

  /** Takes a command and reports its result. */
  const works = (client) => async (command) => {
    const { user_id, client_id, command_id } = command
    await dispatcher.acknowledge({ user_id, client_id, command_id, instance_id: client.instance_id })
    const fails = command.action === 'export' && user_id === 'linus'
    await dispatcher.settle({
      user_id,
      client_id,
      command_id,
      state: fails ? 'failed' : 'resulted',
      ...(fails && { reason: 'disk_full' }),
    })
  }

  // Clients that work, among them the worker that has nothing to do.
  const grace = clientOf('grace', 'desk')
  const linus = clientOf('linus', 'desk')
  await join(grace, works(grace))
  await join(linus, works(linus))
  // A client that takes every command and every call, and answers none.
  const mute = clientOf('ada', 'laptop')
  await join(mute, async () => {})
  // The clients of a node that is killed.
  const node = own(fork(DYING_NODE, { env: { ...process.env, REDIS_URL: store.url } }))
  await once(node, 'message')
  node.kill('SIGKILL')
  // A user whose scope is full: his client is away, and his commands wait for it.
  const away = clientOf('edsger', 'batch', 'console')
  for (let i = 0; i < CAPACITY + 3; i++)
    await dispatcher.dispatch({ ...idOf(away, 'batch'), action: 'rebuild', deadline_ms: 3_600_000 })
  // An application whose connector is gone, in a session that is open.
  await sites.put({ site_id: 'notes', owner: 'barbara', mode: 'cooperative', title: 'Shared notes' })
  const session = await sessions.open({
    site_id: 'notes',
    owner: 'barbara',
    connector: { user_id: 'barbara', client_id: 'notes-app' },
  })
  await sessions.activate(session.session_id)
  // A window and a worker of a browser that is gone, and a browser with a worker that is free.
  const lost = clientOf('margaret', 'farm', 'browser')
  const farm = clientOf('grace', 'farm', 'browser')
  await reportFarm(lost, ['crawl-17'])
  await join(farm, works(farm))

  every(2_500, signal, async () => {
    for (const id of alive) await connections.heartbeat(id)
    await reportFarm(farm, ['crawl-18', null])
  })
  every(3_000, signal, async () => {
    for (const client of [grace, linus])
      for (const action of ['sync', 'export']) await dispatcher.dispatch({ ...idOf(client, action), action })
    await dispatcher.dispatch({ ...idOf(mute, 'sync'), action: 'sync', deadline_ms: 12_000 })
    await dispatcher.dispatch({ ...idOf(clientOf('margaret', 'tablet'), 'sync'), action: 'sync' })
    const call = await rpc.open({ user_id: 'ada', client_id: 'laptop', action: 'read_status', timeout_ms: 20_000 })
    call.result.catch(() => {})
  })
  // Two tabs under one client id: each kicks the other out.
  every(4_000, signal, async () => {
    await connections.connect(clientOf('ada', 'shared-tab', 'browser'))
  })
  return {
    about: 'two nodes over a shared store, with six kinds of trouble',
    composition: redisComposition({ client: live.client, deploymentId: DEPLOYMENT }),
    async close() {
      await bus.close()
      await live.facilities.close()
      live.client.destroy()
      await store.close()
    },
  }
}
