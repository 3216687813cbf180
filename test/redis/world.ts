/** The same life on any facilities, so that two compositions can be compared result by result. */
import type { SiteEventBus } from '../../src/internal/contract/event-bus.js'
import { toTimestamp } from '../../src/internal/contract/ids.js'
import { siteStream } from '../../src/internal/contract/ingest.js'
import type { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { ASK, type Clock, walk } from '../contract/clock.js'
import { soon } from './wait-for.js'

/** What memory and Redis facilities have in common. */
export type Facilities = Pick<
  ReturnType<typeof createMemoryFacilities>,
  | 'connections'
  | 'history'
  | 'deduplicator'
  | 'contexts'
  | 'browserWindows'
  | 'ingest'
  | 'sites'
  | 'sessions'
  | 'subscriptions'
> & {
  rpc: Pick<ReturnType<typeof createMemoryFacilities>['rpc'], 'open' | 'settle'>
  bus: Pick<SiteEventBus, 'publish'>
}

const USERS = [
  'ann',
  'bob',
  'zoe',
  'é',
  '\ufffd',
  '\u{1f600}',
  'a:b',
  '*',
  '}{',
  '{x}',
  '[a-z]',
  '\\',
  'a/b',
  'x__proto__',
]
const TYPES = ['browser', 'console', 'mobile', 'web'] as const

/** Creates ids in the order of the calls: the same in every run. */
export function createIds(): () => string {
  let last = 0
  return () => `id-${++last}`.padEnd(32, 'x')
}

/** Runs the life. Nothing in it is random. */
export async function live(facilities: Facilities, clock: Clock): Promise<void> {
  const watched: [session_id: string, site_id: string][] = []
  const { connections, contexts, browserWindows, ingest, rpc, sites, sessions, subscriptions, bus } = facilities
  for (const [i, user_id] of USERS.entries()) {
    clock.advance(1_000)
    for (let c = 0; c <= i % 3; c++) {
      const client = { user_id, client_id: `client-${c}`, instance_id: `instance-${i}-${c}` }
      const { connection_id } = await connections.connect({
        ...client,
        client_type: TYPES[(i + c) % 4] ?? 'web',
        actions: [
          'open',
          { name: `act.${i % 4}`, description: `by ${i}`, parameters_schema: { type: 'object', properties: {} } },
        ],
        metadata: { n: i, list: [], text: 'ü' },
      })
      if (i % 5 === 0) await connections.heartbeat(connection_id)
      if (i % 4 === 3) await connections.disconnect(connection_id, 'client_closed')
      else
        for (let m = 0; m < 3; m++)
          await ingest({
            ...client,
            message_id: `m-${m % 2}`,
            stream: 'log',
            kind: 'event',
            payload: { m, nested: { empty: [], text: '"\n\u2028' } },
          })
      await contexts.report({
        context_id: `context-${i}-${c}`,
        ...client,
        client_type: 'browser',
        status: c % 2 ? 'active' : 'idle',
        ownership: i % 2 ? 'worker' : 'user-owned',
        window_id: `window-${i}`,
      })
      if (c === 1) await contexts.assignTask(`context-${i}-${c}`, 'task-1')
      if (c === 2) await contexts.close(`context-${i}-${c}`)
      const call = await rpc.open({ action: 'open', ...client, ...(c ? { timeout_ms: 600_000 } : {}) })
      if ((i + c) % 4 === 2)
        await rpc.settle(call.correlation_id, c ? { ok: true, result: 1 } : { ok: false, error: 1 })
    }
    await browserWindows.report({
      window_id: `window-${i}`,
      user_id,
      client_id: 'client-0',
      tab_count: i,
      worker_count: 9,
    })
    // In a window that is another user's.
    if (i % 4 === 1)
      await contexts.report({
        context_id: `guest-${i}`,
        user_id: USERS[i - 1] as string,
        client_id: 'client-0',
        client_type: 'web',
        status: 'idle',
        ownership: 'worker',
        window_id: `window-${i}`,
      })
    if (i === 10) await browserWindows.close(`window-${i}`)
    for (let n = 0; n <= i % 3; n++) {
      const site_id = `site-${i}-${n}`
      await sites.put({
        site_id,
        owner: user_id,
        mode: n ? 'observe' : 'cooperative',
        title: `${i} ü`,
        event_names: [],
      })
      const event = { name: 'changed', site_id, published_at: toTimestamp(clock.now()), data: { n } }
      for (let e = 0; e < i % 4; e++) await bus.publish(siteStream(user_id, site_id), { ...event, event_id: `e-${e}` })
      const connector = n === 2 ? null : { user_id, client_id: `client-${2 * n}` }
      const { session_id } = await sessions.open({
        site_id,
        owner: user_id,
        connector,
        ...(n ? { ttl_ms: 60_000 } : {}),
      })
      if (i % 2) await sessions.activate(session_id)
      watched.push([session_id, site_id])
      for (let s = 0; s < i % 3; s++) {
        const expires_at = s ? toTimestamp(clock.now() + 80_000 + 1_000 * i) : null
        await sessions.share(session_id, { user_id: `guest-${s}`, rights: ['view'], expires_at })
      }
      if (i % 6 === 5) await sessions.unshare(session_id, 'guest-0')
      if (i === 9) await sessions.close(session_id, 'done')
      if (i === 8) await sites.delete(site_id)
    }
  }
  // Some have timed out by now, and no script has recorded that.
  clock.advance(84_000)
  await connections.connect({
    user_id: 'late',
    client_id: 'c',
    instance_id: 'i',
    client_type: 'web',
    actions: ['open'],
  })
  for (const [i, [session_id, site_id]] of watched.entries())
    for (let n = 0; n < i % 4; n++)
      subscriptions.add({
        subscription_id: `subscription-${i}-${n}`,
        session_id,
        site_id,
        user_id: USERS[(i + n) % USERS.length] as string,
        opened_at: toTimestamp(clock.now()),
        state: () => ({
          pending: (7 * i + n) % 5,
          dropped: i % 3,
          last_position: n ? `epoch:${i}` : null,
          last_taken_at: n ? toTimestamp(clock.now()) : null,
        }),
      })
  const all = watched.reduce((sum, _, i) => sum + (i % 4), 0)
  // In a store they are reported a little later.
  await soon(async () => {
    const listed = await walk((page) => subscriptions.inspector.listSubscriptions({}, page, ASK))
    if (listed.length < all) throw new Error('not all are reported so far')
  })
}
