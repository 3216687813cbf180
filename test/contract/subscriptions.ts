/** What every registry of viewer streams promises. */
import { describe, expect, it } from 'vitest'
import type { Inspected } from '../../src/internal/contract/families.js'
import type {
  StreamState,
  SubscriptionFilter,
  SubscriptionInspector,
  SubscriptionRegistry,
  ViewerStream,
} from '../../src/internal/contract/subscriptions.js'
import { soon } from '../redis/wait-for.js'
import { ASK, at, walk } from './clock.js'

export interface SubscriptionsUnderTest {
  subscriptions: Inspected<SubscriptionRegistry, SubscriptionInspector>
  close(): Promise<void>
}

const AT_REST: StreamState = { pending: 0, dropped: 0, last_position: null, last_taken_at: null }

/** A stream of `user_id` in `session_id` at the site `notes`. */
export const stream = (subscription_id: string, over: Partial<ViewerStream> = {}): ViewerStream => ({
  subscription_id,
  session_id: 's1',
  site_id: 'notes',
  user_id: 'bob',
  opened_at: at(),
  state: () => AT_REST,
  ...over,
})

export const listIn = ({ inspector }: SubscriptionsUnderTest['subscriptions'], filter: SubscriptionFilter = {}) =>
  walk((page) => inspector.listSubscriptions(filter, page, ASK), 2)

const idsIn = async (of: SubscriptionsUnderTest['subscriptions'], filter: SubscriptionFilter = {}) =>
  (await listIn(of, filter)).map(({ subscription_id }) => subscription_id).sort()

export function subscriptionRegistryBattery(
  name: string,
  make: (options: { nodeId: string }) => Promise<SubscriptionsUnderTest>,
): void {
  const using = async (work: (under: SubscriptionsUnderTest['subscriptions']) => Promise<void>) => {
    const under = await make({ nodeId: 'a' })
    try {
      await work(under.subscriptions)
    } finally {
      await under.close()
    }
  }

  describe(`the registry of viewer streams over ${name}`, () => {
    it('shows a stream as it stands, until it ends', () =>
      using(async (subscriptions) => {
        const state = { pending: 7, dropped: 3, last_position: 'e:9', last_taken_at: at(5) }
        const end = subscriptions.add(stream('one', { state: () => state }))
        const { state: _, ...given } = stream('one')
        await soon(async () => expect(await listIn(subscriptions)).toEqual([{ ...given, ...state, node_id: 'a' }]))
        end()
        end()
        await soon(async () => expect(await listIn(subscriptions)).toEqual([]))
      }))

    it('lists streams by session, site, viewer and node, and counts those of a session', () =>
      using(async (subscriptions) => {
        for (let n = 0; n < 3; n++) subscriptions.add(stream(`bob-${n}`))
        for (let n = 0; n < 3; n++) subscriptions.add(stream(`eve-${n}`, { user_id: 'eve', session_id: `s${n}` }))
        const end = subscriptions.add(stream('last', { site_id: 'board', session_id: 's2', user_id: 'a/b' }))
        await soon(async () => expect(await idsIn(subscriptions)).toHaveLength(7))
        expect(await idsIn(subscriptions, { user_id: 'eve' })).toEqual(['eve-0', 'eve-1', 'eve-2'])
        expect(await idsIn(subscriptions, { session_id: 's2' })).toEqual(['eve-2', 'last'])
        expect(await idsIn(subscriptions, { site_id: 'board' })).toEqual(['last'])
        expect(await idsIn(subscriptions, { session_id: 's1', user_id: 'eve' })).toEqual(['eve-1'])
        expect(await idsIn(subscriptions, { node_id: 'a' })).toHaveLength(7)
        expect(await idsIn(subscriptions, { node_id: 'b' })).toEqual([])
        const viewers = () => subscriptions.inspector.countViewers?.(['s1', 'none', 's2', 's0'], ASK)
        expect(await viewers()).toEqual([4, 0, 2, 1])
        end()
        await soon(async () => expect(await viewers()).toEqual([4, 0, 1, 1]))
      }))

    it('tells how a stream stands now, and again later', () =>
      using(async (subscriptions) => {
        let pending = 1
        subscriptions.add(stream('one', { state: () => ({ ...AT_REST, pending }) }))
        await soon(async () => expect(await listIn(subscriptions)).toMatchObject([{ pending: 1 }]))
        pending = 90
        await soon(async () => expect(await listIn(subscriptions)).toMatchObject([{ pending: 90 }]))
      }))
  })
}
