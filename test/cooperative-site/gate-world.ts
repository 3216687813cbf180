/** An action gate between plain data, so that a test can set every condition by hand. */

import { createCooperativeActionGate } from '../../src/cooperative-site/index.js'
import type { ActionConnector } from '../../src/internal/contract/invocations.js'
import type { Session } from '../../src/internal/contract/sessions.js'
import type { Site } from '../../src/internal/contract/sites.js'

type Call = Parameters<ActionConnector['call']>

export const START = Date.parse('2026-01-01T00:00:00.000Z')
export const at = new Date(START).toISOString()
export const bob = { user_id: 'bob' }

/** The gate with its world, and `invoke`, which asks it as bob to archive a note unless told otherwise. */
export function createWorld(options: Partial<Parameters<typeof createCooperativeActionGate>[0]> = {}) {
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
    onError: null,
    ...options,
  })
  const invoke = (input: object = {}) =>
    gate.invoke({ session_id: 's1', action: 'archive_note', parameters: { id: 7 }, viewer: bob, ...input })
  return { world, gate, invoke }
}

export const refusal = (code: string) => ({ name: 'Refusal', code })
