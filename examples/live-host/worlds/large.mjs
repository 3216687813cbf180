/** 5,000 connections and 20,000 commands in one process, admitted over the last hour. */
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { every } from './every.mjs'

const CONNECTIONS = 5_000
const COMMANDS = 20_000
const HOUR_MS = 3_600_000
const TYPES = ['browser', 'console', 'mobile', 'web']
const ACTIONS = ['sync', 'open_tab', 'export', 'notify']
/** Commands that are left open, and clients that stay attached. */
const OPEN = 200

export async function open({ signal }) {
  // The past is written with a clock that is set back, and then runs as the system's does.
  let behindMs = HOUR_MS
  const now = () => Date.now() - behindMs
  const facilities = createMemoryFacilities({
    now,
    dispatcher: { deadlineMs: 24 * HOUR_MS, maxRetained: COMMANDS },
    connections: { heartbeatTimeoutMs: 2 * HOUR_MS },
    contexts: { ttlMs: 2 * HOUR_MS },
  })
  const { connections, contexts, dispatcher } = facilities
  const clients = Array.from({ length: CONNECTIONS }, (_, i) => ({
    user_id: `user-${String(i % 1_200).padStart(4, '0')}`,
    client_id: `client-${i}`,
    instance_id: `instance-${i}`,
    client_type: TYPES[i % TYPES.length],
  }))

  /** Of each client its connection. */
  const ids = {}

  /** What happens with the `i`th command. */
  async function command(i) {
    const client = clients[(i * 7) % CONNECTIONS]
    const named = { user_id: client.user_id, client_id: client.client_id, command_id: `command-${i}` }
    await dispatcher.dispatch({ ...named, action: ACTIONS[i % ACTIONS.length] })
    if (i >= COMMANDS - OPEN) return
    if (i % 50 === 0) await dispatcher.cancel({ ...named, reason: 'no_longer_wanted' })
    else if (i % 23 === 0) await dispatcher.settle({ ...named, state: 'failed', reason: 'disk_full' })
    else await dispatcher.settle({ ...named, state: 'resulted' })
  }

  const steps = 60
  for (let step = 0; step < steps && !signal.aborted; step++) {
    behindMs = HOUR_MS * (1 - step / steps)
    for (let i = 0; i < CONNECTIONS / steps; i++) {
      const client = clients[Math.floor((step * CONNECTIONS) / steps) + i]
      if (!client) continue
      ids[client.client_id] = (await connections.connect(client)).connection_id
      if (client.client_type === 'browser')
        await contexts.report({
          ...client,
          context_id: `tab-${client.client_id}`,
          status: 'active',
        })
    }
    for (let i = 0; i < COMMANDS / steps; i++) {
      const next = Math.floor((step * COMMANDS) / steps) + i
      if (next < COMMANDS) await command(next)
    }
  }
  behindMs = 0
  let beaten = 0
  every(1_000, signal, async () => {
    for (let i = 0; i < CONNECTIONS / 20; i++) {
      const id = ids[clients[beaten++ % CONNECTIONS].client_id]
      if (id) await connections.heartbeat(id)
    }
  })
  let next = COMMANDS
  every(1_000, signal, () => command(next++ % (COMMANDS - OPEN)))
  return {
    about: `${CONNECTIONS} connections and ${COMMANDS} commands of the last hour`,
    composition: memoryComposition({ connections, contexts, dispatcher }),
    close: () => facilities.close(),
  }
}
