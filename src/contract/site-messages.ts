/** What a publisher sends about a site, and what became of it. */
import * as z from 'zod'
import { MessageKind, StreamName } from './history.js'
import { given, named, SegmentId } from './ids.js'
import { FirstTaken } from './ingest.js'
import { JsonValue } from './json.js'
import { userStream } from './streams.js'

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
    message_id: given('message_id'),
    kind: MessageKind.describe('What kind of message it is.'),
    stream: StreamName.describe('Always a suffix under the authenticated host: `sites/{site_id}/events` for an event.'),
    client_id: given('client_id'),
    instance_id: given('instance_id'),
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
    first: FirstTaken.nullable()
      .optional()
      .describe('Of a duplicate: by whom and when it was first taken in; `null` where that is not known.'),
    message_id: named('message_id'),
    stream: z.string().describe('The canonical stream that retains it.'),
    published: z
      .boolean()
      .nullable()
      .describe('Whether it went onto the event bus, never whether anybody saw it; `null` where nobody can tell.'),
    not_published_reason: NotPublishedReason.nullable().describe('Why it did not; `null` where it did.'),
  })
  .describe('What became of a message.')
export type SiteMessageAnswer = z.infer<typeof SiteMessageAnswer>
