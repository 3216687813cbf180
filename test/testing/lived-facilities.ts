/** Memory facilities after some life: many users, every status, superseded instances, tasks, commands in every state. */
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import type { KnownEntries } from '../../src/testing/kits.js'
import { createClock } from '../contract/clock.js'

/** Ids that sort differently by UTF-16 units than by UTF-8 bytes, and ids that mean something to other code. */
const USERS = ['alice', 'bob', 'a/b', '*', '__proto__', '\uFFFD', '\u{1F600}', '\u00e9', 'e\u0301', 'Alice']

const TYPES = ['browser', 'console', 'mobile', 'web'] as const

export async function createLivedFacilities() {
  const clock = createClock()
  let ids = 0
  const facilities = createMemoryFacilities({ now: clock.now, newId: () => `id-${++ids}` })
  const {
    connections,
    contexts,
    browserWindows,
    rpc,
    history,
    deduplicator,
    dispatcher,
    sites,
    sessions,
    subscriptions,
  } = facilities
  for (const [i, user_id] of USERS.entries()) {
    const client_type = TYPES[i % TYPES.length] ?? 'web'
    for (const client_id of ['desk', 'phone']) {
      const instance_id = `${client_id}-${i}`
      const given = { user_id, client_id, client_type, actions: ['open', `action-${i % 3}`] }
      const { connection_id } = await connections.connect({ ...given, instance_id: 'before' })
      await connections.connect({ ...given, instance_id })
      if (i % 4 === 3) await connections.disconnect(connection_id, 'client_left')
      const call = await rpc.open({ user_id, client_id, instance_id, action: `action-${i % 3}`, timeout_ms: 60_000 })
      call.result.catch(() => {})
      for (let n = 0; n < 3; n++)
        await history.append({
          message_id: `${client_id}-${n}`,
          stream: `users/${encodeURIComponent(user_id)}/clients/${client_id}`,
          kind: 'event',
          user_id,
          client_id,
          instance_id,
          payload: { n },
        })
      await deduplicator.claim({ user_id, message_id: client_id })
      clock.advance(10)
    }
    const window_id = `window-${i}`
    await browserWindows.report({ window_id, user_id, client_id: 'desk', focused: i % 2 === 0, state: 'maximized' })
    if (i % 5 === 4) await browserWindows.close(window_id)
    for (let n = 0; n < 4; n++) {
      const context_id = `context-${i}-${n}`
      const report = { context_id, user_id, client_id: 'desk', client_type, window_id } as const
      await contexts.report({
        ...report,
        status: n % 2 ? 'idle' : 'active',
        ownership: n === 0 ? 'user-owned' : 'worker',
      })
      if (n === 2) await contexts.assignTask(context_id, `task-${i}`)
      if (n === 3 && i % 2) await contexts.close(context_id)
    }
    for (const mode of ['cooperative', 'observe'] as const) {
      const site_id = `${mode}-${i}`
      await sites.put({ site_id, owner: user_id, mode })
      for (let n = 0; n < 3; n++) {
        const connector = n === 0 ? null : { user_id, client_id: 'desk' }
        const { session_id } = await sessions.open({ site_id, owner: user_id, connector, ...(n ? {} : { ttl_ms: 1 }) })
        if (n === 2) await sessions.close(session_id)
        const state = { pending: n, dropped: i, last_position: 'epoch:1', last_taken_at: null }
        const opened_at = new Date(clock.now()).toISOString()
        const stream = {
          subscription_id: `${site_id}-${n}`,
          session_id,
          site_id,
          user_id,
          opened_at,
          state: () => state,
        }
        if (n < 2) subscriptions.add(stream)
      }
    }
    const command = { user_id, client_id: 'desk', command_id: `command-${i}` }
    await dispatcher.dispatch({ ...command, action: 'open', payload: { secret: 'payload' } })
    if (i % 3 === 1) await dispatcher.cancel({ ...command, reason: 'not_needed' })
    if (i % 3 === 2) await dispatcher.settle({ ...command, state: 'resulted' })
  }
  return facilities
}

export const LIVED: KnownEntries = {
  users: USERS,
  commands: USERS.map((user_id, i) => ({ user_id, client_id: 'desk', command_id: `command-${i}` })),
}
