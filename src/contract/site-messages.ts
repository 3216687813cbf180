/** What a publisher sends about a site, and what became of it. */
import * as z from 'zod'
import { MessageKind, STREAM_LENGTH } from './history.js'
import { Id } from './ids.js'
import { JsonValue } from './json.js'

/** The stream, below the host's own, that carries the events of a site. */
export function siteStreamSuffix(siteId: string): string {
  return `sites/${encodeURIComponent(siteId)}/events`
}

/** An ordinary message as `POST /messages` takes it. An event of a site has the payload `{ name, data? }`. */
export const SiteMessage = z.strictObject({
  message_id: Id,
  kind: MessageKind,
  /** Always a suffix under the authenticated host. */
  stream: z.string().min(1).max(STREAM_LENGTH),
  client_id: Id,
  instance_id: Id,
  payload: JsonValue.optional(),
})
export type SiteMessage = z.input<typeof SiteMessage>

/** Why a retained message was not projected onto the event bus; the first that holds. */
export const NotPublishedReason = z.enum([
  'duplicate',
  'not_an_event',
  'not_site_stream',
  'unknown_site',
  'owner_mismatch',
  'invalid_event_name',
  'event_not_allowed',
  'bus_unavailable',
])
export type NotPublishedReason = z.infer<typeof NotPublishedReason>

/** The answer to a message. `published` speaks of the projection only, never of anybody having seen it. */
export const SiteMessageAnswer = z.object({
  accepted: z.boolean(),
  duplicate: z.boolean(),
  message_id: z.string(),
  /** The canonical stream that retains it. */
  stream: z.string(),
  published: z.boolean(),
  not_published_reason: NotPublishedReason.nullable(),
})
export type SiteMessageAnswer = z.infer<typeof SiteMessageAnswer>
