/** The control server’s HTTP API as an OpenAPI document, made of the routes that it answers from. */
import { FirstTaken } from '../contract/ingest.js'
import type { JsonObject } from '../contract/json.js'
import { NotPublishedReason } from '../contract/site-messages.js'
import { Site, SiteDefinition, SiteMode } from '../contract/sites.js'
import { operationsDocument } from '../http/operations-document.js'
import { CONTROL_PROBLEMS, CONTROL_ROUTES, EventAnswer, EventBody } from './routes.js'

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
      description: 'It listens on loopback and lets in whoever knows its token, and no web page.',
    },
    prefix: '',
    routes: CONTROL_ROUTES,
    taken: { EventBody, SiteDefinition, SiteMode },
    answered: { EventAnswer, FirstTaken, NotPublishedReason, Site, SiteMode },
    always: CONTROL_PROBLEMS,
    securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'The `token` of its options.' } },
    securityOf: () => 'token',
  })
}
