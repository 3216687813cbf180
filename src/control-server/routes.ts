/** The routes of the control server: declare a site, take it back, publish one event. */
import * as z from 'zod'
import { Id } from '../contract/ids.js'
import { JsonValue } from '../contract/json.js'
import { SiteMessageAnswer } from '../contract/site-messages.js'
import { EventName, refuseGenericActionNames, Site, SiteDefinition, type SiteRegistry } from '../contract/sites.js'
import { parseBody, readJson } from '../http/body.js'
import { encode } from '../http/encode.js'
import type { Route } from '../http/engine.js'
import { ProblemError } from '../http/problem.js'
import { emptyReply, type HttpReply, jsonReply } from '../http/respond.js'
import type { CooperativeSitePublisher } from '../publisher/publisher.js'
import { RelayError } from '../publisher/relay-error.js'

/** Where sites are declared and events are published. */
export interface ControlTargets {
  sites: SiteRegistry
  publisher: CooperativeSitePublisher
  owner: string
}

/** One request that has come to its route. */
interface ControlRequest {
  targets: ControlTargets
  request: Request
  signal: AbortSignal
  /** The parameters of the path, checked. */
  params: Record<string, string>
}

const EventBody = z.strictObject({ name: EventName, data: JsonValue.optional(), message_id: Id.optional() })
const EventAnswer = SiteMessageAnswer.omit({ duplicate: true })

type ControlHandler = (matched: ControlRequest) => Promise<HttpReply>

const putSite: ControlHandler = async ({ params, request, targets: { sites, owner } }) => {
  const body = await readJson(request)
  refuseGenericActionNames(body)
  const definition = parseBody(SiteDefinition, body)
  const { created, site } = await sites.put({ ...definition, site_id: params.site_id as string, owner })
  return jsonReply(created ? 201 : 200, encode(Site, site))
}

const deleteSite: ControlHandler = async ({ params, targets: { sites, owner } }) => {
  if (!(await sites.delete(params.site_id as string, { owner }))) throw new ProblemError('not_found')
  return emptyReply(204)
}

const publishEvent: ControlHandler = async ({ params, request, signal, targets: { sites, publisher } }) => {
  const siteId = params.site_id as string
  const site = await sites.get(siteId)
  if (site === null) throw new ProblemError('not_found')
  const { name, data, message_id: messageId } = parseBody(EventBody, await readJson(request))
  if (site.event_names.length > 0 && !site.event_names.includes(name)) throw new ProblemError('event_name_not_allowed')
  try {
    const answer = await publisher.publish(siteId, name, data, { messageId, signal })
    return jsonReply(202, encode(EventAnswer, answer))
  } catch (cause) {
    // A publisher of the host's own need not speak our errors.
    throw cause instanceof RelayError ? cause : new ProblemError('relay_refused', {}, { cause })
  }
}

/** All of them. */
export const CONTROL_ROUTES: readonly Route<ControlHandler>[] = [
  { path: '/sites/{site_id}', methods: { PUT: putSite, DELETE: deleteSite } },
  { path: '/sites/{site_id}/events', methods: { POST: publishEvent } },
]
