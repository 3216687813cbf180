/** The relay's HTTP API as an OpenAPI document, built from its routes. */

import {
  ApplicationBody,
  ApplicationEndFrame,
  ApplicationEndReason,
  ApplicationReadyFrame,
  CancelFrame,
  CommandFrame,
  CommandReplyAnswer,
  CommandReplyBody,
} from '../internal/contract/applications.js'
import { ClientType } from '../internal/contract/connections.js'
import { EndFrame, EndReason, GapFrame, GapReason, ReadyFrame, SiteEvent } from '../internal/contract/event-bus.js'
import { MessageKind } from '../internal/contract/history.js'
import { FirstAccepted, NotPublishedReason, SiteMessage, SiteMessageAnswer } from '../internal/contract/ingest.js'
import { Invocation, InvocationError, InvokeBody } from '../internal/contract/invocations.js'
import type { JsonObject } from '../internal/contract/json.js'
import { defineOptions, type Input, readOptions, text } from '../internal/contract/options.js'
import { Site, SiteDefinition, SiteMode } from '../internal/contract/sites.js'
import { operationsDocument } from '../internal/http/operations-document.js'
import { RELAY_PROBLEMS, RELAY_ROUTES } from './relay-routes.js'

/** Options of `cooperativeSiteOpenApi`. */
export const CooperativeSiteOpenApiOptions = defineOptions({
  /** Public path of the router. @default '' */
  prefix: text().default(''),
})
export interface CooperativeSiteOpenApiOptions extends Input<typeof CooperativeSiteOpenApiOptions> {}

/**
 * Returns the OpenAPI 3.1 document of the relay router. Its two security schemes are the host's own: `host` is checked
 * by `authenticateHost`, `viewer` by `authenticateViewer`; both are shown as bearer tokens.
 *
 * @throws TypeError for an invalid prefix.
 * @example
 * const document = cooperativeSiteOpenApi({ prefix: '/relay' })
 */
export function cooperativeSiteOpenApi(options: CooperativeSiteOpenApiOptions = {}): JsonObject {
  const { prefix } = readOptions(CooperativeSiteOpenApiOptions, options)
  return operationsDocument({
    info: {
      title: 'relayscope cooperative sites',
      summary: 'Local applications publish events to their viewers and handle actions that viewers invoke.',
      description:
        'Hosts hand in messages, declare sites and connect applications; viewers watch sessions and invoke actions.',
    },
    prefix,
    routes: RELAY_ROUTES,
    taken: {
      ApplicationBody,
      ClientType,
      CommandReplyBody,
      InvocationError,
      InvokeBody,
      MessageKind,
      SiteDefinition,
      SiteMessage,
      SiteMode,
    },
    answered: {
      ApplicationEndFrame,
      ApplicationEndReason,
      ApplicationReadyFrame,
      CancelFrame,
      CommandFrame,
      CommandReplyAnswer,
      EndFrame,
      EndReason,
      FirstAccepted,
      GapFrame,
      GapReason,
      Invocation,
      InvocationError,
      NotPublishedReason,
      ReadyFrame,
      Site,
      SiteEvent,
      SiteMessageAnswer,
      SiteMode,
    },
    always: RELAY_PROBLEMS,
    securitySchemes: {
      host: {
        type: 'http',
        scheme: 'bearer',
        description: 'The host that publishes and declares sites, as your authentication returns it.',
      },
      viewer: {
        type: 'http',
        scheme: 'bearer',
        description: 'The viewer that watches and invokes, as your authentication returns it.',
      },
    },
    securityOf: ({ who }) => who,
  })
}
