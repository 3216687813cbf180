/** The event bus of sites: live fan-out without replay; subscribers are notified about lost events. */
import * as z from 'zod'
import { idField, randomUuid, Timestamp, Traceparent } from './ids.js'
import { JsonValue } from './json.js'
import { count, defineOptions, func, type Input, inputObject, Signal } from './options.js'

/** Events that wait for one subscriber before its oldest are dropped. */
const QUEUE_SIZE = 100

/** An event as viewers see it: an invalidation or notification, never an authoritative state transfer. */
export const SiteEvent = z
  .object({
    event_id: z.string().describe('The event, by the id of its message.'),
    name: z.string().describe('What happened, as the application calls it.'),
    site_id: idField('site_id'),
    seq: z.int().min(1).describe('Position in its topic, from 1 in each epoch, without repeats.'),
    published_at: Timestamp.describe('When it was published.'),
    data: JsonValue.describe('Any JSON value; `null` for none.'),
    trace: Traceparent.optional().describe('The W3C `traceparent` of the message; absent without one.'),
  })
  .describe('`site_event`: an invalidation or notification, never an authoritative state transfer.')
export type SiteEvent = z.infer<typeof SiteEvent>

/** An event before the bus has given it its position. A bus refuses anything else: one bad event must not end a stream. */
export const PublishedEvent = inputObject({ ...SiteEvent.omit({ seq: true }).shape })
export type PublishedEvent = z.infer<typeof PublishedEvent>

/** Why events are missing: the subscriber was slow, it was away, or the node lost its link to the shared store. */
export const GapReason = z
  .enum(['overflow', 'resume', 'link_lost'])
  .describe('The subscriber was slow, it was away, or the node lost its link to the shared store.')
export type GapReason = z.infer<typeof GapReason>

/** Marks lost events. The numbers are exact, or `null` if unknown. */
export interface EventGap {
  /** Discriminator. */
  type: 'gap'
  /** Why events are missing. */
  reason: GapReason
  /** Number of missing events; `null` if unknown. */
  dropped: number | null
  /** Sequence number of the first missing event; `null` if unknown. */
  first_seq: number | null
  /** Sequence number of the last missing event; `null` if unknown. */
  last_seq: number | null
}

/** An item received by iterating a subscription. */
export type BusItem = { type: 'event'; event: SiteEvent } | EventGap

/** Neighbouring events, oldest first. Subscribers that are level share the very same array, so an encoding can be kept by it. */
export interface EventRun {
  /** Discriminator. */
  type: 'run'
  /** Events without a gap, in order. */
  events: readonly SiteEvent[]
}

/**
 * Returns how many of `events`, from index `from`, a reader takes now; the others stay pending. Called once,
 * synchronously. All readers of a topic get the same array, whatever their position, so that an encoding can be cached
 * by it.
 */
export type TakeEvents = (events: readonly SiteEvent[], from: number) => number

/** A point between two events of a topic: everything up to `seq` of `epoch` lies before it. */
export interface StreamPosition {
  /** Identifies a sequence of numbers: a restarted bus begins another one. */
  epoch: string
  /** Sequence number within the epoch. */
  seq: number
}

/** How a position is written wherever it is shown: in the `id` of a frame, and in diagnostics. */
export const positionText = ({ epoch, seq }: StreamPosition): string => `${epoch}:${seq}`

/** The newest event of a topic, as it is remembered longer than its place. `at` is its `published_at`. */
export interface LastEvent {
  /** When it was published, in ISO 8601. */
  at: string
  /** Its position in the topic. */
  position: StreamPosition
}

/** Returns the newest event of a topic; `null` if none is remembered. */
export interface LastEvents {
  /** Returns the last event of a topic, or `null` if unknown. */
  lastEvent(topic: string): LastEvent | null
  /** Changes whenever the result of `lastEvent` changes. Absent: changes cannot be detected. */
  version?(): string
}

/**
 * One subscriber's position in a topic. Iterate it, or call `take()` when `wake` is called. It starts at the present;
 * earlier events are never received. Per subscription of one process, published = received + `pending` + `dropped`.
 */
export interface Subscription extends AsyncIterableIterator<BusItem> {
  /**
   * Returns the next gap or run, or `undefined` if nothing is pending; then `wake` is armed. `portion` limits how much
   * of the run is taken; a bus without support for it returns the whole run.
   */
  take(portion?: TakeEvents): EventGap | EventRun | undefined
  /** The point behind everything received. */
  readonly position: StreamPosition
  /** Events that wait to be received, at most `queueSize`. */
  readonly pending: number
  /** Events lost by overflow or a lost connection so far, as far as known. */
  readonly dropped: number
  /** Whether it has ended, by whichever side. */
  readonly closed: boolean
  /** Ends it: a waiting `next()` is done, nothing more is received. Calling it twice is fine. */
  close(): void
}

/** How to subscribe. */
export interface SubscribeOptions {
  /** Ends the subscription like `close()`. */
  signal?: AbortSignal | undefined
  /**
   * Called at most once after a `take()` that returned nothing, when an item is available or the bus was closed; bursts
   * within one tick cause one call. It must not throw.
   */
  wake?: (() => void) | undefined
}

/** The same, as a topic reads it. */
export const SubscribeInput = inputObject({
  /** Ends the subscription like `close()`. @default none */
  signal: Signal.optional(),
  /** Called at most once after a `take()` that returned nothing, when an item is available or the bus was closed. @default none */
  wake: z.custom<() => void>((value) => typeof value === 'function', 'must be a function').optional(),
})

/** Live fan-out of events by topic; for sites the topic is the canonical stream. It retains nothing for later. */
export interface SiteEventBus {
  /** Events that wait for one subscriber before its oldest are dropped. */
  readonly queueSize: number
  /**
   * Sends the event to the subscriptions of a topic.
   *
   * @returns the number of subscriptions of this process that the event reaches.
   * @throws Refusal when the event was not published and never will be, unless its `outcome` is `unknown`; any other
   * error leaves the outcome open. `invalid_input` for an event with a missing or invalid field.
   */
  publish(topic: string, event: PublishedEvent): Promise<number>
  /**
   * Publishes the event unless any node has recently published one with this `event_id`; then resolves to `null`. For a
   * bus shared by several nodes; for a bus without this method each process remembers its own events.
   */
  publishOnce?(topic: string, event: PublishedEvent): Promise<number | null>
  /**
   * Subscribes to the events of a topic, from now on.
   *
   * @throws Refusal `invalid_input` for an invalid signal or `wake`, `closed`.
   */
  subscribe(topic: string, options?: SubscribeOptions): Subscription
  /**
   * Resolves when a new subscription would know its position, after everything published before the call on any node.
   * Absent if that is always so. @throws Refusal `unavailable`, `closed`.
   */
  prepare?(topic: string): Promise<void>
  /** Ends every subscription immediately, without waiting for readers or the store. */
  close(): Promise<void>
}

/** What both buses take. */
export const EventBusOptions = defineOptions({
  /** Events that wait for one subscriber. @default 100 */
  queueSize: count(QUEUE_SIZE),
  /** Makes the epochs of topics: no two alike. @default crypto.randomUUID */
  newId: func<() => string>().default(() => randomUuid),
})
export interface EventBusOptions extends Input<typeof EventBusOptions> {}

// The control frames of a session's event stream.

const Count = z.int().min(0)

/** `ready`, the first frame. */
export const ReadyFrame = z
  .object({
    subscription_id: z.string().describe('This stream, for logs.'),
    session_id: idField('session_id'),
    site_id: idField('site_id'),
    queue_limit: Count.describe('Events that wait for this subscriber before its oldest are dropped.'),
    replay: z.literal(false).describe('Nothing from before is replayed: refetch what you show.'),
    heartbeat_ms: Count.describe('Silence after which a comment is written, in ms.'),
  })
  .describe('`ready`: the stream is open.')
export type ReadyFrame = z.infer<typeof ReadyFrame>

/** The `gap` frame, which marks lost events. */
export const GapFrame = z
  .object({
    reason: GapReason.describe('Why they are missing.'),
    dropped: Count.nullable().describe('How many are missing here; `null` if unknown.'),
    dropped_total: Count.nullable().describe('How many this stream has missed so far; `null` if unknown.'),
    first_seq: Count.nullable().describe('The first lost event; `null` if unknown.'),
    last_seq: Count.nullable().describe('The last lost event; `null` if unknown.'),
  })
  .describe('`gap`: events were lost. Refetch what you show.')
export type GapFrame = z.infer<typeof GapFrame>

/** Why a stream ends. */
export const EndReason = z
  .enum(['session_closed', 'session_expired', 'policy_revoked', 'shutdown'])
  .describe('Why a stream ends. After `shutdown`, reconnect.')
export type EndReason = z.infer<typeof EndReason>

/** `end`, the last frame. */
export const EndFrame = z.object({ reason: EndReason.describe('Why it ends.') }).describe('`end`: nothing follows.')
