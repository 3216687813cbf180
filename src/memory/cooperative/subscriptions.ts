/** The viewer streams of one process. */
import type { Inspected } from '../../internal/contract/families.js'
import { readOptions } from '../../internal/contract/options.js'
import { scanLimit } from '../../internal/contract/page.js'
import {
  checkStream,
  type SubscriptionInspector,
  SubscriptionOptions,
  type SubscriptionRegistry,
  type SubscriptionRow,
  type ViewerStream,
} from '../../internal/contract/subscriptions.js'
import { createListing } from '../table/listing.js'
import { createVersion } from '../table/version.js'

/** Maximum number of streams whose state is part of the version; with more of them there is no version. */
const STATES_MAX = 100

/** A stream and its position in the order in which streams were opened. */
interface Entry {
  readonly sequence: number
  readonly stream: ViewerStream
}

/**
 * Creates a registry of viewer streams in memory, for the relay router. It only has streams that are open.
 *
 * @example
 * const subscriptions = createSubscriptionRegistry()
 * const relay = createCooperativeSiteRouter({ ...ports, subscriptions })
 */
export function createSubscriptionRegistry(
  options: SubscriptionOptions = {},
): Inspected<SubscriptionRegistry, SubscriptionInspector> {
  const { nodeId: node_id = null } = readOptions(SubscriptionOptions, options)
  const listing = createListing<Entry>({
    session_id: ({ stream }) => stream.session_id,
    site_id: ({ stream }) => stream.site_id,
    user_id: ({ stream }) => stream.user_id,
  })

  const open = new Set<ViewerStream>()
  const version = createVersion()

  function rowOf({ stream }: Entry): SubscriptionRow {
    const { subscription_id, session_id, site_id, user_id, opened_at } = stream
    return { subscription_id, session_id, site_id, user_id, node_id, opened_at, ...stream.state() }
  }

  return {
    inspector: {
      version() {
        if (open.size > STATES_MAX) return null
        const states = Array.from(open, ({ state }) => Object.values(state()).join())
        return `${version.text()}.${states.join(';')}`
      },
      listSubscriptions: (filter, page, ctx) => listing.list(filter, page, rowOf, scanLimit(ctx)),
      countViewers: (sessionIds) => sessionIds.map((id) => listing.sizeOf('session_id', id)),
    },
    add(stream) {
      checkStream(stream)
      const entry = { sequence: listing.arrive(), stream }
      listing.add(entry)
      open.add(stream)
      version.raise()
      let isThere = true
      return () => {
        if (!isThere) return
        isThere = false
        listing.remove(entry)
        open.delete(stream)
        version.raise()
      }
    },
  }
}
