/** A world of users who bear a mark in every field that can hold one, told with some of them left out. */
import type { SiteEventBus } from '../../src/internal/contract/event-bus.js'
import { toTimestamp } from '../../src/internal/contract/ids.js'
import { siteStream } from '../../src/internal/contract/ingest.js'
import type { ViewerStream } from '../../src/internal/contract/subscriptions.js'
import type { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { ASK, type Clock, FIRST } from '../contract/clock.js'
import { soon } from '../redis/wait-for.js'

/** The facilities that the world is written to, in memory or in a shared store. */
export type Facilities = Pick<
  ReturnType<typeof createMemoryFacilities>,
  'connections' | 'contexts' | 'browserWindows' | 'ingest' | 'sites' | 'sessions' | 'subscriptions'
> & {
  rpc: Pick<ReturnType<typeof createMemoryFacilities>['rpc'], 'open' | 'settle'>
  dispatcher: Pick<ReturnType<typeof createMemoryFacilities>['dispatcher'], 'dispatch'>
  bus: Pick<SiteEventBus, 'publish'>
}

/** In the order of their ids and of their coming. Ben is the one who is never in sight; all he does may meet the others. */
export const MARKS = ['qqannqq', 'qqbenqq', 'qqcydqq'] as const
export type Mark = (typeof MARKS)[number]
export const [ANN, BEN, CYD] = MARKS

/** Needs encoding wherever it stands. */
export const userOf = (mark: string) => `user/${mark} ü`

const TYPES = ['browser', 'console', 'mobile', 'web'] as const

/** Generates ids for the user that is being written, independent of which other users exist. */
export class Ids {
  #told = ''
  readonly #last = new Map<string, number>()

  of(mark: Mark): void {
    this.#told = mark
  }

  readonly next = (): string => {
    const last = (this.#last.get(this.#told) ?? 0) + 1
    this.#last.set(this.#told, last)
    return `id-${this.#told}-${last}`
  }
}

/** Writes the world of `users`; what happens to each user, and when, does not depend on the others. */
export async function tell(facilities: Facilities, clock: Clock, ids: Ids, users: readonly Mark[]): Promise<void> {
  const { connections, contexts, browserWindows, ingest, rpc, dispatcher, sites, sessions, subscriptions, bus } =
    facilities
  const streams: ViewerStream[] = []
  const each = async (act: (mark: Mark, i: number) => Promise<void>) => {
    for (const [i, mark] of MARKS.entries()) {
      clock.advance(1_000)
      ids.of(mark)
      if (users.includes(mark)) await act(mark, i)
    }
  }
  const connect = (mark: Mark, client_id: string, i: number) =>
    connections.connect({
      user_id: userOf(mark),
      client_id,
      instance_id: `instance-${mark}-${client_id}`,
      client_type: TYPES[i % 4] ?? 'web',
      actions: [
        `own-${mark}`,
        { name: 'shared', description: `by ${mark}`, parameters_schema: { title: mark } },
        { name: `described-${mark}`, description: `of ${mark}`, parameters_schema: null },
      ],
      metadata: { by: mark, [mark]: [mark] },
    })

  // One connection of each user goes silent, and this is not recorded.
  await each(async (mark, i) => void (await connect(mark, 'silent', i)))
  clock.advance(80_000)
  await each(async (mark, i) => {
    const user_id = userOf(mark)
    for (const client_id of [`client-${mark}`, 'shared'])
      for (const kind of ['left', 'stays']) {
        const { connection_id, instance_id } = await connect(mark, `${client_id}-${kind}`, i + kind.length)
        const client = { user_id, client_id: `${client_id}-${kind}`, instance_id }
        for (const stream of ['log', `notes-${mark}`])
          for (const message_id of ['m-shared', `m-${mark}`, 'm-shared'])
            await ingest({ ...client, message_id, stream, kind: 'event', payload: { by: mark, client_id } })
        await rpc.open({ action: `call-${mark}`, ...client, timeout_ms: 600_000 })
        await rpc.open({ action: 'shared', ...client, timeout_ms: 600_000 })
        const correlation_id = `ended-${mark}-${client_id}-${kind}`
        await rpc.open({ action: `call-${mark}`, ...client, correlation_id })
        await rpc.settle(correlation_id, { ok: kind === 'left', result: mark, error: mark })
        if (kind === 'left') await connections.disconnect(connection_id, `left_${mark}`)
      }
    await browserWindows.report({
      window_id: `window-${mark}`,
      user_id,
      client_id: 'shared-stays',
      tab_count: 3,
      worker_count: 9,
    })
    // Ben's are in the windows of others too, as he says.
    const within = mark === BEN ? [`window-${mark}`, `window-${ANN}`, `window-${CYD}`, null] : [`window-${mark}`, null]
    for (const [n, window_id] of within.entries())
      for (const ownership of ['worker', 'user-owned'] as const) {
        const context_id = `context-${mark}-${n}-${ownership}`
        await contexts.report({
          context_id,
          user_id,
          client_id: 'shared-stays',
          instance_id: `instance-${mark}-shared-stays`,
          client_type: 'browser',
          status: n % 2 ? 'active' : 'idle',
          ownership,
          window_id,
        })
        if (n % 2 && ownership === 'worker')
          await contexts.assignTask(context_id, mark === BEN ? 'task-shared' : `task-${mark}`)
      }
    await contexts.report({
      context_id: `shared-task-${mark}`,
      user_id,
      client_id: 'shared-stays',
      client_type: 'web',
      status: 'idle',
      ownership: 'worker',
    })
    await contexts.assignTask(`shared-task-${mark}`, 'task-shared')
    for (const command_id of [`command-${mark}`, 'command-shared'])
      await dispatcher.dispatch({
        user_id,
        client_id: 'shared-stays',
        command_id,
        action: `act-${mark}`,
        payload: { by: mark },
        scope_id: `scope-${mark}`,
        deadline_ms: 3_600_000,
      })
    for (const kind of ['first', 'second']) {
      const site_id = `site-${mark}-${kind}`
      await sites.put({
        site_id,
        owner: user_id,
        mode: kind === 'first' ? 'cooperative' : 'observe',
        title: `of ${mark}`,
      })
      const published_at = toTimestamp(clock.now())
      const event = { event_id: `e-${mark}`, name: 'changed', site_id, published_at, data: { by: mark } }
      if (kind === 'first') await bus.publish(siteStream(user_id, site_id), event)
      const connector = { user_id, client_id: `client-${mark}-stays` }
      const { session_id } = await sessions.open({ site_id, owner: user_id, connector })
      await sessions.activate(session_id)
      await sessions.share(session_id, { user_id: 'guest', rights: ['view'] })
      // Ben watches what is Ann's, too.
      for (const session of mark === BEN ? [session_id, `id-${ANN}-${session_id.split('-').at(-1)}`] : [session_id])
        streams.push({
          subscription_id: `watch-${mark}-${session}`,
          session_id: session,
          site_id,
          user_id,
          opened_at: published_at,
          state: () => ({ pending: 2, dropped: 1, last_position: `of-${mark}:1`, last_taken_at: published_at }),
        })
      if (kind === 'second') await sessions.close(session_id, `closed_${mark}`)
    }
  })
  clock.advance(15_000)
  // Their node would have renewed the streams in this time.
  for (const stream of streams) subscriptions.add(stream)
  // A shared store receives them a little later, stamped with that time.
  await soon(async () => {
    const { items } = await subscriptions.inspector.listSubscriptions({}, FIRST, ASK)
    if (items.length < users.length * 2 + (users.includes(BEN) ? 2 : 0)) throw new Error('not all streams are stored')
  })
}
