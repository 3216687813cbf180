/** Subscriptions: open viewer streams and how far behind each is. */
import * as z from 'zod'
import { answerOf } from './answer.js'
import type { Family } from './family.js'
import { filterBy, Id, idField, Timestamp } from './ids.js'
import { count, custom, defineOptions, type Input, inputObject, parseInput, textOrNull } from './options.js'
import type { Awaitable, InspectionContext, Page, PageQuery, Pingable, Versioned } from './page.js'

/** One open viewer stream. Changing fields are as of the last report of its node, at most some seconds old. */
export const SubscriptionRow = z
  .object({
    subscription_id: idField('subscription_id'),
    session_id: idField('session_id'),
    site_id: idField('site_id'),
    user_id: z.string().describe("The viewer's user id."),
    node_id: z.string().nullable().describe('The node that holds the stream; `null` in a single-node deployment.'),
    opened_at: Timestamp.describe('When it was opened.'),
    pending: z.int().min(0).describe('Events that wait for its reader.'),
    dropped: z
      .int()
      .min(0)
      .describe('Events dropped from the stream, as far as known, including those missed while it was disconnected.'),
    last_position: z
      .string()
      .nullable()
      .describe('Position after the last event sent to it, `<epoch>:<seq>`; `null` until known.'),
    last_taken_at: Timestamp.nullable().describe(
      'When its reader last read from it, heartbeats included; `null` if it never did.',
    ),
  })
  .describe('One open viewer stream. Changing fields are as of the last report of its node, at most some seconds old.')
export type SubscriptionRow = z.infer<typeof SubscriptionRow>

/** `SubscriptionRow` as routes answer it. */
export const SubscriptionRowAnswer = answerOf(SubscriptionRow, ['subscription_id', 'session_id', 'user_id'])
export type SubscriptionRowAnswer = z.output<typeof SubscriptionRowAnswer>
/** `SubscriptionRow` as an inspector returns it: a field that is absent is not known. */
export type SubscriptionRowInput = z.input<typeof SubscriptionRowAnswer>

/** Filters of `/subscriptions`. */
export const SubscriptionFilter = z.object({
  session_id: filterBy('session_id'),
  site_id: filterBy('site_id'),
  user_id: filterBy('user_id'),
  node_id: filterBy('node_id'),
})
export type SubscriptionFilter = z.infer<typeof SubscriptionFilter>

/** Reads the open viewer streams of a deployment. */
export interface SubscriptionInspector extends Pingable, Versioned {
  /** Lists event streams of viewers under `filter`, one page at a time. */
  listSubscriptions(
    filter: SubscriptionFilter,
    page: PageQuery,
    ctx: InspectionContext,
  ): Awaitable<Page<SubscriptionRowInput>>
  /** Returns the number of open streams of each session (at most 500); in their order, `null` for unknown. */
  countViewers?(sessionIds: readonly string[], ctx: InspectionContext): Awaitable<readonly (number | null)[]>
}

/** The changing fields of a stream. */
export type StreamState = Pick<SubscriptionRow, 'pending' | 'dropped' | 'last_position' | 'last_taken_at'>

/** A viewer stream as reported by the relay router. */
export interface ViewerStream
  extends Readonly<Pick<SubscriptionRow, 'subscription_id' | 'session_id' | 'site_id' | 'user_id' | 'opened_at'>> {
  /** Returns its current state, synchronously. Must not throw. */
  state(): StreamState
}

/** The same, as a registry checks it. */
export const ViewerStreamInput = inputObject({
  /** Id of the stream. */
  subscription_id: Id,
  /** Id of the session. */
  session_id: Id,
  /** Id of the site. */
  site_id: Id,
  /** Id of the viewer. */
  user_id: Id,
  /** When it was opened, in ISO 8601. */
  opened_at: Timestamp,
  /** Returns the current state of the stream, synchronously. */
  state: custom<() => StreamState>('must be a function', (value) => typeof value === 'function'),
})

/** Throws `invalid_input` unless `stream` can be added to a registry. */
export const checkStream = (stream: ViewerStream): void => void parseInput(ViewerStreamInput, stream)

/** Receives the viewer streams of one process. */
export interface SubscriptionRegistry {
  /**
   * Shows the stream from now on. @returns a function that ends that; calling it twice is fine. @throws Refusal
   * `invalid_input`.
   */
  add(stream: ViewerStream): () => void
}

/** What both registries of subscriptions take. */
export const SubscriptionOptions = defineOptions({
  /** The node that holds the streams; omit it for a single process. @default null; over a store random */
  nodeId: textOrNull().optional(),
})
export interface SubscriptionOptions extends Input<typeof SubscriptionOptions> {}

/** Additional options of the registry over a shared store. */
export const ReportedOptions = defineOptions({
  // Some megabytes of a shared store.
  /** Maximum streams of this node that are reported; with more, viewers of sessions are not counted. @default 10000 */
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
  components: { SubscriptionRow: SubscriptionRowAnswer } as Family['components'],
} as const satisfies Family<SubscriptionInspector>
