/** The subscriptions family: the viewer streams that are open, how far behind each is, and who is told of them. */
import * as z from 'zod'
import type { Family } from './family.js'
import { filterBy, idField, Timestamp } from './ids.js'
import { count, defineOptions, type Input, textOrNull } from './options.js'
import type { Awaitable, InspectionContext, Page, PageQuery, Pingable, Versioned } from './page.js'

/** One viewer stream that is open. What changes is as of when its node last looked, some seconds ago at most. */
export const SubscriptionRow = z
  .object({
    subscription_id: idField('subscription_id'),
    session_id: idField('session_id'),
    site_id: idField('site_id'),
    user_id: z.string().describe('The viewer.'),
    node_id: z
      .string()
      .nullable()
      .describe('The node that holds the stream; `null` where there is nothing to tell apart.'),
    opened_at: Timestamp.describe('When it was opened.'),
    pending: z.int().min(0).describe('Events that wait for its reader.'),
    dropped: z
      .int()
      .min(0)
      .describe(
        'Events that it was not sent, as far as their number is known; those missed while it was away are among them.',
      ),
    last_position: z
      .string()
      .nullable()
      .describe('The position behind everything that it was sent, `<epoch>:<seq>`; `null` before that is known.'),
    last_taken_at: Timestamp.nullable().describe(
      'When its reader last took anything, heartbeats included; `null` for never.',
    ),
  })
  .describe(
    'One viewer stream that is open. What changes is as of when its node last looked, some seconds ago at most.',
  )
export type SubscriptionRow = z.infer<typeof SubscriptionRow>

/** Filters of `/subscriptions`. */
export const SubscriptionFilter = z.object({
  session_id: filterBy('session_id'),
  site_id: filterBy('site_id'),
  user_id: filterBy('user_id'),
  node_id: filterBy('node_id'),
})
export type SubscriptionFilter = z.infer<typeof SubscriptionFilter>

/** Reads the viewer streams of a deployment. */
export interface SubscriptionInspector extends Pingable, Versioned {
  listSubscriptions(
    filter: SubscriptionFilter,
    page: PageQuery,
    ctx: InspectionContext,
  ): Awaitable<Page<SubscriptionRow>>
  /** How many streams of each of these sessions (at most 500) are open; in their order, `null` for unknown. */
  countViewers?(sessionIds: readonly string[], ctx: InspectionContext): Awaitable<readonly (number | null)[]>
}

/** How a stream stands. */
export type StreamState = Pick<SubscriptionRow, 'pending' | 'dropped' | 'last_position' | 'last_taken_at'>

/** A viewer stream, as the relay router tells of it. */
export interface ViewerStream
  extends Readonly<Pick<SubscriptionRow, 'subscription_id' | 'session_id' | 'site_id' | 'user_id' | 'opened_at'>> {
  /** How it stands now. It answers at once, and does not throw. */
  state(): StreamState
}

/** Who is told of the viewer streams of one process. */
export interface SubscriptionRegistry {
  /** Shows the stream from now on. @returns a function that ends that; calling it twice is fine. */
  add(stream: ViewerStream): () => void
}

/** What both registries of subscriptions take. */
export const SubscriptionOptions = defineOptions({
  /** The node that holds the streams. In one process there is nothing to tell apart. @default null; over a store random */
  nodeId: textOrNull().optional(),
})
export interface SubscriptionOptions extends Input<typeof SubscriptionOptions> {}

/** What the registry over a shared store takes beside that. */
export const ReportedOptions = defineOptions({
  // Some megabytes of a shared store.
  /** Streams of this node that it reports at most; of others nobody knows, and viewers of sessions are not counted then. @default 10000 */
  maxReported: count(10_000),
})
export interface ReportedOptions extends Input<typeof ReportedOptions> {}

/** Subscriptions, for the table of families. */
export const SUBSCRIPTION_FAMILY = {
  facility: 'subscriptions',
  capability: 'subscriptions',
  isListed: true,
  methods: { listSubscriptions: true },
  operations: {},
  components: { SubscriptionRow },
} as const satisfies Family<SubscriptionInspector>
