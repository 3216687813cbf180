/** The viewer streams of one process, looked through at as they stand. */
import type { Inspected } from '../../contract/inspectors.js'
import { checkOptions } from '../../contract/options.js'
import { examinable } from '../../contract/page.js'
import {
  SUBSCRIPTION_OPTIONS,
  type SubscriptionInspector,
  type SubscriptionOptions,
  type SubscriptionRegistry,
  type SubscriptionRow,
  type ViewerStream,
} from '../../contract/subscriptions.js'
import { createListing } from '../table/listing.js'

/** A stream and its place in the order in which streams were opened. */
interface Entry {
  readonly sequence: number
  readonly stream: ViewerStream
}

/**
 * A registry of viewer streams in memory, for the relay router. It holds what the router has open, and nothing longer.
 *
 * @example
 * const subscriptions = createSubscriptionRegistry()
 * const relay = createCooperativeSiteRouter({ ...ports, subscriptions })
 */
export function createSubscriptionRegistry(
  options: SubscriptionOptions = {},
): Inspected<SubscriptionRegistry, SubscriptionInspector> {
  checkOptions(options, SUBSCRIPTION_OPTIONS)
  const { nodeId: node_id = null } = options
  const listing = createListing<Entry>({
    session_id: ({ stream }) => stream.session_id,
    site_id: ({ stream }) => stream.site_id,
    user_id: ({ stream }) => stream.user_id,
  })

  function rowOf({ stream }: Entry): SubscriptionRow {
    const { subscription_id, session_id, site_id, user_id, opened_at } = stream
    return { subscription_id, session_id, site_id, user_id, node_id, opened_at, ...stream.state() }
  }

  return {
    inspector: {
      listSubscriptions: (filter, page, ask) => listing.list(filter, page, rowOf, examinable(ask)),
      countViewers: (sessionIds) => sessionIds.map((id) => listing.sizeOf('session_id', id)),
    },
    add(stream) {
      const entry = { sequence: listing.arrive(), stream }
      listing.add(entry)
      let isThere = true
      return () => {
        if (isThere) listing.remove(entry)
        isThere = false
      }
    },
  }
}
