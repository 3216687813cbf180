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
import { idField, idInput, SegmentId, Timestamp } from './ids.js'
import { parseInput } from './input.js'
import { JsonValue } from './json.js'
import { defineOptions, having, type Input, readParts } from './options.js'

// Names of history streams: every id one percent-encoded segment, everything under the user who sent it.

/** The stream name of these segments below the user. @example userStream('a/b', 'sites', 'x', 'events') */
export function userStream(userId: string, ...segments: string[]): string {
  return ['users', userId, ...segments].map(encodeURIComponent).join('/')
}

/**
 * The canonical name of a stream that `userId` supplied: always a suffix below the user. One that begins `users/` is
 * nested like any other, because a supplied name is never trusted.
 */
export function canonicalStream(userId: string, suffix: string): string {
  return `${userStream(userId)}/${suffix}`
}

/** `stream` where it is the user's own already; any other name is nested below the user. */
export function ownStream(userId: string, stream: string): string {
  // With its slash: the name of one user may begin another's.
  return stream.startsWith(`${userStream(userId)}/`) ? stream : canonicalStream(userId, stream)
}

/** Where the relay records the commands for a client and their results. */
export function commandStream(userId: string, clientId: string): string {
  return userStream(userId, 'clients', clientId, 'commands')
}

const RESERVED = /^users\/[^/]+\/clients\/[^/]+\/commands$/

/** Whether a canonical stream is written by the relay alone: what stands in it is evidence, and no client's word. */
export const isReservedStream = (stream: string): boolean => RESERVED.test(stream)

/** Who sent a message the first time, and when it was retained. */
export const FirstAccepted = z
  .object({ client_id: idField('client_id'), at: Timestamp.describe('When it was retained.') })
  .describe('Who sent a message the first time.')
export type FirstAccepted = z.infer<typeof FirstAccepted>

/** What became of a message. A refused one throws, so `accepted` is always true: the history holds it, once. */
export interface IngestAnswer {
  accepted: boolean
  /** The message had been retained before; it is retained once. */
  duplicate: boolean
  /** Of a duplicate: the message that is retained. `null` where that is not known. */
  first?: FirstAccepted | null
}

/** Takes in one message of an authenticated user. */
export type Ingest = (message: AppendInput) => Promise<IngestAnswer>

export const IngestOptions = defineOptions({
  connections: having<Pick<ConnectionRegistry, 'isCurrentInstance'>>('isCurrentInstance'),
  deduplicator: having<Deduplicator>('claim', 'release'),
  history: having<MessageHistory>('append'),
})
export interface IngestOptions extends Input<typeof IngestOptions> {}

/** What tells one message from another: a canonical stream begins with the name of its user. */
const identityOf = ({ stream, message_id }: AppendInput) => JSON.stringify([stream, message_id])

/** The message under its canonical stream. @throws Refusal `invalid_input`, `forbidden` */
function readMessage(idInput: AppendInput): AppendInput {
  const message = parseInput(AppendInput, idInput)
  const stream = parseInput(StreamName, ownStream(message.user_id, message.stream))
  if (isReservedStream(stream)) throw new Refusal('forbidden', 'the relay alone writes into this stream')
  return { ...message, stream }
}

/**
 * The ordinary ingest over whatever retains a message once. Of equal messages that are under way in this process the
 * first alone is tried, and its end is the end of all: none is a duplicate of what was never retained.
 */
export function createIngestOver(
  connections: IngestOptions['connections'],
  retain: (message: AppendInput) => Promise<Retained>,
): Ingest {
  const inFlight = new Map<string, Promise<Retained>>()

  /** Whether the message was retained before, and what is retained. */
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
    if (!(await connections.isCurrentInstance(message))) throw new Refusal('stale_instance')
    const { message: retained, isNew } = await take(message)
    if (isNew) return { accepted: true, duplicate: false }
    return { accepted: true, duplicate: true, first: firstOf(retained) }
  }
}

/** What a history of the host's own answers need not be a message. */
function firstOf(retained: HistoryMessage | undefined): FirstAccepted | null {
  const first = FirstAccepted.safeParse({ client_id: retained?.client_id, at: retained?.recorded_at })
  return first.success ? first.data : null
}

/**
 * The ordinary ingest over three facilities: fence, claim, retain. A stream outside the user's own is nested below it.
 * What has been claimed is looked for in the history and appended if it is not there, so that a claim alone never
 * passes for a message; a failed append gives its claim back all the same.
 *
 * @returns a function that rejects with `Refusal` `stale_instance`, `invalid_input`, `forbidden` (a stream that the relay
 * alone writes), `payload_too_large`, `capacity_exceeded`, `unavailable`.
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
      // One that cannot be given back does no harm: whoever sends again is looked for in the history.
      if (isFirst) await Promise.resolve(deduplicator.release(claim)).catch(() => {})
      throw error
    }
  })
}

// What a publisher sends about a site, and what became of it.

/** The canonical stream of a site's events, which is its topic on the event bus too. */
export function siteStream(owner: string, siteId: string): string {
  return userStream(owner, 'sites', siteId, 'events')
}

const SITE_STREAM = /^sites\/([^/]+)\/events$/

/** The site whose stream `suffix` is, to the letter; any other spelling of it is another stream and answers `null`. */
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
export const SiteMessage = z
  .object({
    message_id: idInput('message_id'),
    kind: MessageKind.describe('What kind of message it is.'),
    stream: StreamName.describe('Always a suffix under the authenticated host: `sites/{site_id}/events` for an event.'),
    client_id: idInput('client_id'),
    instance_id: idInput('instance_id'),
    payload: JsonValue.optional().describe('Any JSON value; of an event of a site `{ name, data? }`.'),
  })
  .describe('An ordinary message.')
export type SiteMessage = z.input<typeof SiteMessage>

/**
 * Why a retained message was not projected onto the event bus; the first that holds. `unknown`: the bus was handed the
 * event and did not say what became of it.
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
    'Why a retained message was not projected onto the event bus: the first that holds. `unknown`: the bus was handed the event and did not say what became of it.',
  )
export type NotPublishedReason = z.infer<typeof NotPublishedReason>

/**
 * The answer to a message. `published` speaks of the projection only, never of anybody having seen it; `null` where
 * nobody can tell. A duplicate says by whom and when the message was first taken in, `null` where that is not known.
 */
export const SiteMessageAnswer = z
  .object({
    accepted: z.boolean().describe('Whether the relay holds it.'),
    duplicate: z.boolean().describe('Whether it had held it before; it holds it once.'),
    first: FirstAccepted.nullable()
      .optional()
      .describe('Of a duplicate: by whom and when it was first taken in; `null` where that is not known.'),
    message_id: idField('message_id'),
    stream: z.string().describe('The canonical stream that retains it.'),
    published: z
      .boolean()
      .nullable()
      .describe('Whether it went onto the event bus, never whether anybody saw it; `null` if unknown.'),
    not_published_reason: NotPublishedReason.nullable().describe('Why it did not; `null` where it did.'),
  })
  .describe('What became of a message.')
export type SiteMessageAnswer = z.infer<typeof SiteMessageAnswer>
