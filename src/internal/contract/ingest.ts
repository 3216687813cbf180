/** The ordinary ingest: how any message of a client enters, exactly once, and is retained. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import type { ConnectionRegistry } from './connections.js'
import type { Deduplicator } from './deduplicator.js'
import {
  AppendInput,
  type HistoryMessage,
  type MessageHistory,
  MessageKind,
  type Retained,
  StreamName,
} from './history.js'
import { idField, idInput, SegmentId, Timestamp, Traceparent } from './ids.js'
import { JsonValue } from './json.js'
import { defineOptions, type Input, inputObject, parseInput, readParts, withMethods } from './options.js'

// Names of history streams: every id one percent-encoded segment, everything under the user who sent it.

/** Returns the stream name with these segments below the user. @example userStream('a/b', 'sites', 'x', 'events') */
export function userStream(userId: string, ...segments: string[]): string {
  return ['users', userId, ...segments].map(encodeURIComponent).join('/')
}

/**
 * Returns the canonical name of a stream supplied by `userId`: always below the user. A name that starts with `users/`
 * is nested too, because supplied names are never trusted.
 */
export function canonicalStream(userId: string, suffix: string): string {
  return `${userStream(userId)}/${suffix}`
}

/** Returns `stream` if it is already the user's own; any other name is nested below the user. */
export function ownStream(userId: string, stream: string): string {
  // With its slash: the name of one user may begin another's.
  return stream.startsWith(`${userStream(userId)}/`) ? stream : canonicalStream(userId, stream)
}

/** Where the relay records the commands for a client and their results. */
export function commandStream(userId: string, clientId: string): string {
  return userStream(userId, 'clients', clientId, 'commands')
}

const RESERVED = /^users\/[^/]+\/clients\/[^/]+\/commands$/

/** Whether only the relay writes to this canonical stream: its messages are evidence, not claims of a client. */
export const isReservedStream = (stream: string): boolean => RESERVED.test(stream)

/** Who sent a message the first time, and when it was retained. */
export const FirstAccepted = z
  .object({ client_id: idField('client_id'), at: Timestamp.describe('When it was retained.') })
  .describe('The first sender of a message.')
export type FirstAccepted = z.infer<typeof FirstAccepted>

/** The result of an ingested message. A refused one throws, so `accepted` is always true: the history holds it once. */
export interface IngestAnswer {
  /** Whether the message was accepted. */
  accepted: boolean
  /** The message had been retained before; it is retained once. */
  duplicate: boolean
  /** For a duplicate: the retained message; `null` if not known. */
  first?: FirstAccepted | null
}

/** Takes in one message of an authenticated user. */
export type Ingest = (message: AppendInput) => Promise<IngestAnswer>

/** Options of `createIngest`. */
export const IngestOptions = defineOptions({
  /** Registry that tells whether the sending instance is current. */
  connections: withMethods<Pick<ConnectionRegistry, 'isCurrentInstance'>>('isCurrentInstance'),
  /** Deduplicator that claims each message id. */
  deduplicator: withMethods<Deduplicator>('claim', 'release'),
  /** History that retains accepted messages. */
  history: withMethods<MessageHistory>('append'),
})
export interface IngestOptions extends Input<typeof IngestOptions> {}

/** Identifies a message: a canonical stream starts with its user's name. */
const identityOf = ({ stream, message_id }: AppendInput) => JSON.stringify([stream, message_id])

/** The message under its canonical stream. @throws Refusal `invalid_input`, `forbidden` */
function readMessage(idInput: AppendInput): AppendInput {
  const message = parseInput(AppendInput, idInput)
  const stream = parseInput(StreamName, ownStream(message.user_id, message.stream))
  if (isReservedStream(stream)) throw new Refusal('forbidden', 'the relay alone writes into this stream')
  return { ...message, stream }
}

/**
 * The ordinary ingest over a store that retains a message once. Concurrent equal messages in this process share the
 * first attempt and its result: none is a duplicate of a message that was never retained.
 */
export function createIngestOver(
  connections: IngestOptions['connections'],
  retain: (message: AppendInput) => Promise<Retained>,
): Ingest {
  const inFlight = new Map<string, Promise<Retained>>()

  /** Returns whether the message was retained before, and the retained one. */
  async function take(message: AppendInput): Promise<Retained> {
    const identity = identityOf(message)
    const first = inFlight.get(identity)
    if (first) return { ...(await first), isNew: false }
    const taking = retain(message)
    inFlight.set(identity, taking)
    try {
      return await taking
    } finally {
      inFlight.delete(identity)
    }
  }

  return async (idInput) => {
    const message = readMessage(idInput)
    const { user_id, client_id, instance_id } = message
    if (!(await connections.isCurrentInstance({ user_id, client_id, instance_id }))) throw new Refusal('stale_instance')
    const { message: retained, isNew } = await take(message)
    if (isNew) return { accepted: true, duplicate: false }
    return { accepted: true, duplicate: true, first: firstOf(retained) }
  }
}

/** A custom history may return something else than a message. */
function firstOf(retained: HistoryMessage | undefined): FirstAccepted | null {
  const first = FirstAccepted.safeParse({ client_id: retained?.client_id, at: retained?.recorded_at })
  return first.success ? first.data : null
}

/**
 * Creates the ordinary ingest over three facilities: fence, claim, retain. A stream outside the user's own is nested
 * below it. A claimed message is looked up in the history and appended if missing, so that a claim alone never passes
 * for a message; a failed append releases its claim.
 *
 * @returns a function that rejects with `Refusal` `stale_instance`, `invalid_input`, `forbidden` (a stream that only
 * the relay writes), `payload_too_large`, `capacity_exceeded`, `unavailable`.
 */
export function createIngest(options: IngestOptions): Ingest {
  const { connections, deduplicator, history } = readParts(IngestOptions, options)
  const append = async (message: AppendInput, isNew: boolean): Promise<Retained> =>
    history.retain ? history.retain(message) : { message: await history.append(message), isNew }

  return createIngestOver(connections, async (message) => {
    const { user_id, stream, message_id } = message
    const claim = { user_id, stream, message_id }
    const isFirst = await deduplicator.claim(claim)
    try {
      return await append(message, isFirst)
    } catch (error) {
      // A claim that cannot be released is harmless: a retry is looked up in the history.
      if (isFirst) await Promise.resolve(deduplicator.release(claim)).catch(() => {})
      throw error
    }
  })
}

// Messages of publishers about a site, and their results.

/** The canonical stream of a site's events, which is its topic on the event bus too. */
export function siteStream(owner: string, siteId: string): string {
  return userStream(owner, 'sites', siteId, 'events')
}

const SITE_STREAM = /^sites\/([^/]+)\/events$/

/** Returns the site of the stream `suffix`; any other spelling is another stream and returns `null`. */
export function siteIdOf(suffix: string): string | null {
  const segment = SITE_STREAM.exec(suffix)?.[1]
  if (segment === undefined) return null
  try {
    const siteId = decodeURIComponent(segment)
    return encodeURIComponent(siteId) === segment && SegmentId.safeParse(siteId).success ? siteId : null
  } catch {
    return null
  }
}

/** An ordinary message as `POST /messages` takes it. An event of a site has the payload `{ name, data? }`. */
export const SiteMessage = inputObject({
  message_id: idInput('message_id'),
  kind: MessageKind.describe('What kind of message it is.'),
  stream: StreamName.describe('Always a suffix under the authenticated host: `sites/{site_id}/events` for an event.'),
  client_id: idInput('client_id'),
  instance_id: idInput('instance_id'),
  payload: JsonValue.optional().describe('Any JSON value; of an event of a site `{ name, data? }`.'),
  trace: Traceparent.optional().describe(
    'The W3C `traceparent` of the sender: retained with the message, and part of its event. Absent: none.',
  ),
}).describe('An ordinary message.')
export type SiteMessage = z.input<typeof SiteMessage>

/**
 * Why a retained message was not published on the event bus; the first reason that applies. `unknown`: the bus got the
 * event and did not report the outcome.
 */
export const NotPublishedReason = z
  .enum([
    'duplicate',
    'not_an_event',
    'not_site_stream',
    'unknown_site',
    'owner_mismatch',
    'invalid_event_name',
    'event_not_allowed',
    'bus_unavailable',
    'unknown',
  ])
  .describe(
    'Why a retained message was not published on the event bus: the first reason that applies. `unknown`: the bus got the event and did not report the outcome.',
  )
export type NotPublishedReason = z.infer<typeof NotPublishedReason>

/**
 * The response to a message. `published` only says that the event is on the bus, never that a viewer has seen it;
 * `null` if unknown. A duplicate names the sender and time of the first message, `null` if not known.
 */
export const SiteMessageAnswer = z
  .object({
    accepted: z.boolean().describe('Whether the relay stored the message.'),
    duplicate: z.boolean().describe('Whether the relay had the message already; it keeps one copy.'),
    first: FirstAccepted.nullable()
      .optional()
      .describe('For a duplicate: sender and time of the first message; `null` if not known.'),
    message_id: idField('message_id'),
    stream: z.string().describe('The canonical stream that retains it.'),
    published: z
      .boolean()
      .nullable()
      .describe('Whether the event is on the bus, never whether a viewer has seen it; `null` if unknown.'),
    not_published_reason: NotPublishedReason.nullable().describe('Why it did not; `null` where it did.'),
  })
  .describe('The result of publishing a message.')
export type SiteMessageAnswer = z.infer<typeof SiteMessageAnswer>
