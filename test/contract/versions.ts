/** The changes that a version must reflect: every write of every facility, and the family whose lists show it. */
import { expect } from 'vitest'
import type { FamilyName } from '../../src/internal/contract/families.js'
import { siteStream } from '../../src/internal/contract/ingest.js'
import type { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import type { createRedisFacilities } from '../../src/redis/composition/facilities.js'

import { soon } from '../redis/wait-for.js'

type Facilities = ReturnType<typeof createMemoryFacilities> | ReturnType<typeof createRedisFacilities>

export interface Write {
  what: string
  family: FamilyName
  /** The change is visible some time after the call. */
  later?: true
  act(): Promise<unknown>
}

const CLIENT = { user_id: 'ann', client_id: 'desk', instance_id: 'i-1' }
const COMMAND = { user_id: 'ann', client_id: 'desk' }
const CONTEXT = { user_id: 'ann', client_id: 'desk', client_type: 'console', context_id: 'c-1' } as const
const WINDOW = { user_id: 'ann', client_id: 'desk', window_id: 'w', state: 'normal' } as const
const MESSAGE = { ...CLIENT, stream: 'users/ann/clients/desk', kind: 'event', payload: { n: 1 } } as const
const SITE = { site_id: 'notes', owner: 'ann', mode: 'observe' } as const

/** The writes, to be made in this order.  */
export function writesOf(facilities: Facilities): Write[] {
  const {
    connections,
    contexts,
    browserWindows,
    rpc,
    history,
    dispatcher,
    sites,
    sessions,
    subscriptions,
    bus,
    ingest,
  } = facilities
  const open = async (correlation_id: string, signal?: AbortSignal) => {
    const given = { ...CLIENT, correlation_id, action: 'a', timeout_ms: 86_400_000, ...(signal && { signal }) }
    ;(await rpc.open(given)).result.catch(() => {})
  }
  const command = (command_id: string, more: object = {}) =>
    dispatcher.dispatch({ ...COMMAND, command_id, action: 'a', deadline_ms: 86_400_000, ...more })
  const cancelled = new AbortController()
  let connection_id = ''
  let session_id = ''
  let detach = async (): Promise<unknown> => undefined
  let end = () => {}
  let delivered = 0

  const all: Record<string, [FamilyName, () => Promise<unknown>, later?: true]> = {
    'a connection': [
      'registry',
      async () => ({ connection_id } = await connections.connect({ ...CLIENT, client_type: 'web', actions: ['open'] })),
    ],
    'a sign of life': ['registry', () => connections.heartbeat(connection_id)],
    'a new instance': [
      'registry',
      async () =>
        ({ connection_id } = await connections.connect({ ...CLIENT, client_type: 'web', instance_id: 'i-2' })),
    ],
    'the same instance again': [
      'registry',
      async () =>
        ({ connection_id } = await connections.connect({ ...CLIENT, client_type: 'web', instance_id: 'i-2' })),
    ],
    'the end of a connection': ['registry', () => connections.disconnect(connection_id, 'client_left')],
    'a context': ['contextRegistry', () => contexts.report({ ...CONTEXT, status: 'active', ownership: 'worker' })],
    'another report of it': [
      'contextRegistry',
      () => contexts.report({ ...CONTEXT, status: 'idle', ownership: 'worker' }),
    ],
    'a task': ['contextRegistry', () => contexts.assignTask('c-1', 'task')],
    'the end of a task': ['contextRegistry', () => contexts.releaseTask('c-1')],
    'a closed context': ['contextRegistry', () => contexts.close('c-1')],
    'a window': ['browserWindowRegistry', () => browserWindows.report({ ...WINDOW, focused: false })],
    'another report of a window': ['browserWindowRegistry', () => browserWindows.report({ ...WINDOW, focused: true })],
    'a closed window': ['browserWindowRegistry', () => browserWindows.close('w')],
    'a call': ['rpc', () => open('call-1')],
    'its reply': ['rpc', () => rpc.settle('call-1', { ok: true, result: 1 })],
    'a second call': ['rpc', () => open('call-2', cancelled.signal)],
    'a call that is cancelled': ['rpc', async () => cancelled.abort(), true],
    'a message': ['history', () => history.append({ ...MESSAGE, message_id: 'm-1' })],
    'a second message': ['history', () => history.retain({ ...MESSAGE, message_id: 'm-2' })],
    'an ingested message': [
      'history',
      async () => {
        await connections.connect({ ...CLIENT, client_type: 'web' })
        return ingest({ ...MESSAGE, stream: 'log', message_id: 'm-3' })
      },
    ],
    'a command': ['delivery', () => command('k-1')],
    'a command of a scope': ['delivery', () => command('k-2', { scope_id: 'elsewhere' })],
    'a refused command': ['delivery', () => command('k-3', { require_waiter: true, client_id: 'missing' })],
    'a command of a refused id': ['delivery', () => command('k-3', { client_id: 'missing' })],
    'commands that are delivered': [
      'delivery',
      async () => {
        const waiter = await dispatcher.attach(CLIENT, async () => void delivered++)
        detach = () => waiter.detach()
        await soon(() => expect(delivered).toBe(2))
      },
    ],
    'an acknowledged command': ['delivery', () => dispatcher.acknowledge({ ...CLIENT, command_id: 'k-1' })],
    'the end of a command': ['delivery', () => dispatcher.settle({ ...CLIENT, command_id: 'k-1', state: 'resulted' })],
    'a cancelled command': [
      'delivery',
      async () => {
        await detach()
        return dispatcher.cancel({ ...COMMAND, command_id: 'k-2' })
      },
    ],
    'a site': ['sites', () => sites.put(SITE)],
    'a site that is declared again': ['sites', () => sites.put({ ...SITE, mode: 'cooperative' })],
    'an event of a site': [
      'sites',
      () =>
        bus.publish(siteStream('ann', 'notes'), {
          event_id: 'e',
          name: 'changed',
          site_id: 'notes',
          data: null,
          published_at: '2026-01-01T00:00:00.000Z',
        }),
    ],
    'a session': [
      'sessions',
      async () => ({ session_id } = await sessions.open({ site_id: 'notes', owner: 'ann', ttl_ms: 86_400_000 })),
    ],
    'an active session': ['sessions', () => sessions.activate(session_id)],
    'a suspended session': ['sessions', () => sessions.suspend(session_id)],
    'a share': ['sessions', () => sessions.share(session_id, { user_id: 'bob', rights: ['view'] })],
    'the end of a share': ['sessions', () => sessions.unshare(session_id, 'bob')],
    'a closed session': ['sessions', () => sessions.close(session_id, 'done')],
    'a viewer stream': [
      'subscriptions',
      async () => {
        const state = () => ({ pending: 0, dropped: 0, last_position: null, last_taken_at: null })
        const opened_at = '2026-01-01T00:00:00.000Z'
        end = subscriptions.add({
          subscription_id: 's',
          session_id,
          site_id: 'notes',
          user_id: 'ann',
          opened_at,
          state,
        })
      },
      true,
    ],
    'the end of a viewer stream': ['subscriptions', async () => end(), true],
    'a deleted site': ['sites', () => sites.delete('notes')],
  }
  return Object.entries(all).map(([what, [family, act, later]]) => ({ what, family, act, ...(later && { later }) }))
}
