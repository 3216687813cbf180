/** What a publisher sends about a site, and what became of it. */
import * as z from 'zod'
import { MessageKind, StreamName } from './history.js'
import { Id, SegmentId } from './ids.js'
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
export const SiteMessage = z.object({
  message_id: Id,
  kind: MessageKind,
  /** Always a suffix under the authenticated host. */
  stream: StreamName,
  client_id: Id,
  instance_id: Id,
  payload: JsonValue.optional(),
})
export type SiteMessage = z.input<typeof SiteMessage>

/**
 * Why a retained message was not projected onto the event bus; the first that holds. `unknown`: the bus was handed the
 * event and did not say what became of it.
 */
export const NotPublishedReason = z.enum([
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
export type NotPublishedReason = z.infer<typeof NotPublishedReason>

/**
 * The answer to a message. `published` speaks of the projection only, never of anybody having seen it; `null` where
 * nobody can tell. A duplicate says by whom and when the message was first taken in, `null` where that is not known.
 */
export const SiteMessageAnswer = z.object({
  accepted: z.boolean(),
  duplicate: z.boolean(),
  first: FirstTaken.nullable().optional(),
  message_id: z.string(),
  /** The canonical stream that retains it. */
  stream: z.string(),
  published: z.boolean().nullable(),
  not_published_reason: NotPublishedReason.nullable(),
})
export type SiteMessageAnswer = z.infer<typeof SiteMessageAnswer>
