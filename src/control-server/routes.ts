/** The routes of the control server: declare a site, take it back, publish one event. */
import * as z from 'zod'
import { Id, Traceparent } from '../internal/contract/ids.js'
import { FirstAccepted, NotPublishedReason, SiteMessageAnswer } from '../internal/contract/ingest.js'
import { type JsonObject, JsonValue } from '../internal/contract/json.js'
import {
  DEFINITION_EXAMPLE,
  EventName,
  refuseGenericActionNames,
  SITE_EXAMPLE,
  Site,
  SiteDefinition,
  SiteMode,
  type SiteRegistry,
} from '../internal/contract/sites.js'
import { parseBody, readJson } from '../internal/http/body.js'
import { encode } from '../internal/http/encode.js'
import type { Route } from '../internal/http/engine.js'
import {
  BODY_PROBLEMS,
  bodyOf,
  documentedResponse,
  type Operation,
  operationsDocument,
} from '../internal/http/operations-document.js'
import { type ProblemCode, ProblemError } from '../internal/http/problem.js'
import { emptyReply, type HttpReply, jsonReply } from '../internal/http/respond.js'
import { type CooperativeSitePublisher, RelayError } from '../publisher/publisher.js'

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

const EventBody = z
  .strictObject({
    name: EventName.describe('What happened, one of the names that the site declares.'),
    data: JsonValue.optional().describe('Any JSON value. Absent: `null`.'),
    message_id: Id.optional().describe('A message with an id that was sent before is stored once. Absent: a new id.'),
    trace: Traceparent.optional().describe('The W3C `traceparent` of the sender. Absent: none.'),
  })
  .describe('An event to publish.')
const EventAnswer = SiteMessageAnswer.omit({ duplicate: true }).describe('The result of publishing.')

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
  const { name, data, message_id: messageId, trace } = parseBody(EventBody, await readJson(request))
  if (site.event_names.length > 0 && !site.event_names.includes(name)) throw new ProblemError('event_name_not_allowed')
  try {
    const answer = await publisher.publish(siteId, name, data, { messageId, trace, signal })
    return jsonReply(202, encode(EventAnswer, answer))
  } catch (cause) {
    // A publisher of the host's own need not speak our errors.
    throw cause instanceof RelayError ? cause : new ProblemError('relay_refused', {}, { cause })
  }
}

const PUT_SITE: Operation<ControlHandler> = {
  operationId: 'putSite',
  summary: 'Declares a site, or replaces the whole declaration',
  body: bodyOf(SiteDefinition, DEFINITION_EXAMPLE),
  answers: {
    200: documentedResponse('The site, which was there', Site, SITE_EXAMPLE),
    201: documentedResponse('The site, which is new', Site, SITE_EXAMPLE),
  },
  problems: [...BODY_PROBLEMS, 'not_found', 'generic_action_name', 'owner_mismatch', 'share_exceeded'],
  handle: putSite,
}

const DELETE_SITE: Operation<ControlHandler> = {
  operationId: 'deleteSite',
  summary: 'Takes a site back',
  answers: { 204: { description: 'The site was deleted' } },
  problems: ['not_found'],
  handle: deleteSite,
}

const PUBLISH_EVENT: Operation<ControlHandler> = {
  operationId: 'publishEvent',
  summary: 'Publishes an event of a site',
  body: bodyOf(EventBody, { name: 'note_changed', data: { id: 7 }, message_id: 'm-41' }),
  answers: {
    202: documentedResponse(
      'The relay has retained the message; `published` says whether viewers can receive it',
      EventAnswer,
      {
        accepted: true,
        message_id: 'm-41',
        stream: 'users/ada/sites/notes/events',
        published: true,
        not_published_reason: null,
      },
    ),
  },
  problems: [...BODY_PROBLEMS, 'not_found', 'event_name_not_allowed', 'share_exceeded'],
  handle: publishEvent,
}

/** Problems that every route can return; those of the request guard first. */
const CONTROL_PROBLEMS = [
  'not_loopback',
  'forwarded_request',
  'bad_host',
  'bad_origin',
  'unauthenticated',
  'bad_request',
  'method_not_allowed',
  'uri_too_long',
  'invalid_query',
  'internal',
  'relay_refused',
  'unavailable',
  'relay_timeout',
] as const satisfies readonly ProblemCode[]

/** All routes of the control server. */
export const CONTROL_ROUTES: readonly Route<Operation<ControlHandler>>[] = [
  { path: '/sites/{site_id}', methods: { PUT: PUT_SITE, DELETE: DELETE_SITE } },
  { path: '/sites/{site_id}/events', methods: { POST: PUBLISH_EVENT } },
]

// Returns the control server's HTTP API as an OpenAPI document, built from its routes.

/**
 * The control server as OpenAPI 3.1, relative to where it listens.
 *
 * @example
 * const document = controlServerOpenApi()
 */
export function controlServerOpenApi(): JsonObject {
  return operationsDocument({
    info: {
      title: 'relayscope control server',
      summary: 'Programs of this machine declare a site and publish its events.',
      description: 'Listens on loopback. Requires its token, and refuses web pages.',
    },
    prefix: '',
    routes: CONTROL_ROUTES,
    taken: { EventBody, SiteDefinition, SiteMode },
    answered: { EventAnswer, FirstAccepted, NotPublishedReason, Site, SiteMode },
    always: CONTROL_PROBLEMS,
    securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'The `token` of its options.' } },
    securityOf: () => 'token',
  })
}
