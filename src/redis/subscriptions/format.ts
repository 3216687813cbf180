/** How a viewer stream is stored, and read back: it is there as long as its node says so. */
import type * as z from 'zod'
import { SubscriptionRow } from '../../contract/subscriptions.js'
import type { TableReader } from '../table/rows.js'
import { Millis } from '../table/timestamp.js'

const StoredSubscription = SubscriptionRow.extend({ until_ms: Millis })

export const SUBSCRIPTIONS: TableReader<SubscriptionRow, z.infer<typeof StoredSubscription>> = {
  name: 'subscriptions',
  idOf: ({ subscription_id }) => subscription_id,
  schema: StoredSubscription,
  indexes: ['session_id', 'user_id', 'site_id'],
  read: ({ until_ms, ...row }, now) => (until_ms <= now ? undefined : row),
}

/** `subscriptions:beyond` of a shard: until when some node has more streams than it reports. */
export const BEYOND = 'beyond'
