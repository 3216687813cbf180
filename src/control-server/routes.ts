/** The three routes of the control server: declare a site, take it back, publish one event. */
import * as z from 'zod'
import { checkId, checkSegment, Id } from '../contract/ids.js'
import { JsonValue } from '../contract/json.js'
import { SiteMessageAnswer } from '../contract/site-messages.js'
import { EventName, refuseGenericActionNames, Site, SiteDefinition, type SiteRegistry } from '../contract/sites.js'
import { parseBody, readJson } from '../http/body.js'
import { encode } from '../http/encode.js'
import { ProblemError } from '../http/problem.js'
import { parseQuery } from '../http/query.js'
import { emptyReply, jsonReply, type Reply } from '../http/respond.js'
import { parsePrefix } from '../http/target.js'
import type { CooperativeSitePublisher } from '../publisher/publisher.js'
import { RelayError } from '../publisher/relay-error.js'

/** Where sites are declared and events are published. */
export interface ControlTargets {
  sites: SiteRegistry
  publisher: CooperativeSitePublisher
  owner: string
}

/** One authenticated request. `target` is the raw one: a URL would have resolved `/sites/..` to another route. */
export interface ControlRequest {
  target: string
  request: Request
  signal: AbortSignal
}

const EventBody = z.strictObject({ name: EventName, data: JsonValue.optional(), message_id: Id.optional() })
const EventAnswer = SiteMessageAnswer.omit({ duplicate: true })
const NoQuery = z.object({})

type Handler = (siteId: string, asked: ControlRequest, targets: ControlTargets) => Promise<Reply>

const putSite: Handler = async (site_id, { request }, { sites, owner }) => {
  const body = await readJson(request)
  refuseGenericActionNames(body)
  const { created, site } = await sites.put({ ...parseBody(SiteDefinition, body), site_id, owner })
  return jsonReply(created ? 201 : 200, encode(Site, site))
}

const deleteSite: Handler = async (siteId, _asked, { sites, owner }) => {
  if (!(await sites.delete(siteId, { owner }))) throw new ProblemError('not_found')
  return emptyReply(204)
}

const publishEvent: Handler = async (siteId, { request, signal }, { sites, publisher }) => {
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

const SITE: Record<string, Handler> = { PUT: putSite, DELETE: deleteSite }
const EVENTS: Record<string, Handler> = { POST: publishEvent }
const ROOT = parsePrefix('')

/** The methods of a path, and the site that it names: `null` where that is not well-formed percent-encoding. */
function match(pathname: string): { handlers: Record<string, Handler>; siteId: string | null } | undefined {
  const [sites, siteId, events, ...more] = ROOT.strip(pathname) ?? []
  if (sites !== 'sites' || siteId === undefined || siteId === '' || more.length > 0) return undefined
  if (events === undefined) return { handlers: SITE, siteId }
  return events === 'events' ? { handlers: EVENTS, siteId } : undefined
}

/**
 * Answers a request that came through the door.
 *
 * @throws ProblemError, Refusal, RelayError, or what the registry and the publisher throw.
 */
export async function answer(asked: ControlRequest, targets: ControlTargets): Promise<Reply> {
  const [pathname = '', ...search] = asked.target.split('?')
  const matched = match(pathname)
  if (matched === undefined) throw new ProblemError('route_not_found')
  const { handlers, siteId } = matched
  const { method } = asked.request
  const handler = Object.hasOwn(handlers, method) ? handlers[method] : undefined
  if (handler === undefined)
    throw new ProblemError('method_not_allowed', { headers: { allow: Object.keys(handlers).join(', ') } })
  parseQuery(NoQuery, search.join('?'))
  const reason = siteId === null ? 'is not valid percent-encoded UTF-8' : (checkId(siteId) ?? checkSegment(siteId))
  if (reason !== undefined)
    throw new ProblemError('invalid_path', { errors: [{ in: 'path', name: 'site_id', reason }] })
  return handler(siteId as string, asked, targets)
}
