/** Contract suite of the inspector of viewer streams. */
import { SubscriptionFilter, type SubscriptionInspector, SubscriptionRow } from '../contract/subscriptions.js'
import {
  CONTEXT,
  type ContractCase,
  checkEnds,
  checkEqual,
  FAKE_TIME,
  fakePage,
  fill,
  type Make,
  notTested,
  type Partly,
  toCases,
} from './expect.js'
import { listCases, type MakeInspector, UNKNOWN_ID, walk } from './lists.js'

/** Returns the contract suite of an inspector of viewer streams. `make` creates one with the same streams each time. */
export function subscriptionContract(make: MakeInspector<SubscriptionInspector>): ContractCase[] {
  return toCases([
    ...listCases<SubscriptionInspector, SubscriptionRow>(make, {
      name: 'listSubscriptions',
      list: (subscriptions, filter) => (page, ctx) =>
        subscriptions.listSubscriptions(filter as SubscriptionFilter, page, ctx),
      item: SubscriptionRow,
      id: 'subscription_id',
      filters: SubscriptionFilter.keyof().options,
    }),
    { name: 'countViewers counts the streams of each session', run: () => checkViewers(make) },
  ])
}

async function checkViewers(make: MakeInspector<SubscriptionInspector>): Promise<void> {
  const subscriptions = await make()
  if (!subscriptions?.countViewers) return notTested('countViewers is not implemented')
  const rows = await walk<SubscriptionRow>(
    (page, ctx) => subscriptions.listSubscriptions({}, page, ctx),
    100,
    'listSubscriptions',
  )
  const sessions = [...new Set(rows.map(({ session_id }) => session_id)).values()].slice(0, 100).concat(UNKNOWN_ID)
  const counts = await subscriptions.countViewers(sessions, CONTEXT)
  checkEqual(counts.length, sessions.length, 'countViewers must return a count for each requested session')
  for (const [i, session_id] of sessions.entries()) {
    const viewers = rows.filter((row) => row.session_id === session_id).length
    if (counts[i] !== null) checkEqual(counts[i], viewers, `countViewers of ${session_id}`)
  }
  await checkEnds((ctx) => subscriptions.countViewers?.(sessions, ctx), 'countViewers')
}

/** Data of the fake inspector of viewer streams. */
export interface SubscriptionWorld {
  /** Viewer streams. */
  subscriptions?: Partly<SubscriptionRow>[]
}

const toSubscription: Make<SubscriptionRow> = (given, place) =>
  fill(
    {
      subscription_id: `subscription-${place}`,
      session_id: 'session-1',
      site_id: 'site-1',
      user_id: 'user-1',
      node_id: null,
      opened_at: FAKE_TIME,
      pending: 0,
      dropped: 0,
      last_position: null,
      last_taken_at: null,
    },
    given,
  )

export function fakeSubscriptions(world: SubscriptionWorld): SubscriptionInspector | undefined {
  if (!world.subscriptions) return undefined
  return { listSubscriptions: (filter, page) => fakePage(toSubscription, world.subscriptions, filter, page) }
}
