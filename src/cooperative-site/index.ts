/** The face of `relayscope/cooperative-site`: a relay between local applications and their viewers. */

export type { IdempotencyClaim, IdempotencyState, IdempotencyStore } from '../internal/contract/invocations.js'
export type { SubscriptionOptions } from '../internal/contract/subscriptions.js'
export type { Mountable } from '../internal/http/engine.js'
export type { CooperativeSiteEventBusOptions } from '../memory/cooperative/event-bus.js'
export { createCooperativeSiteEventBus } from '../memory/cooperative/event-bus.js'
export type { IdempotencyStoreOptions } from '../memory/cooperative/idempotency.js'
export { createIdempotencyStore } from '../memory/cooperative/idempotency.js'
export type { SessionRegistryOptions } from '../memory/cooperative/sessions.js'
export { createSessionRegistry } from '../memory/cooperative/sessions.js'
export type { SiteRegistryOptions } from '../memory/cooperative/sites.js'
export { createSiteRegistry } from '../memory/cooperative/sites.js'
export { createSubscriptionRegistry } from '../memory/cooperative/subscriptions.js'
export type { DispatchConnector, DispatchConnectorOptions } from './actions/dispatch-connector.js'
export { createDispatchConnector } from './actions/dispatch-connector.js'
export { ActionFailure } from './actions/failure.js'
export type { ActionGate, ActionGateOptions, ApprovalRequest, Approve, InvokeInput } from './actions/gate.js'
export { createCooperativeActionGate } from './actions/gate.js'
export type {
  ActionCall,
  ActionContext,
  ActionHandler,
  ActionHandlers,
  ActionHandlersOptions,
  ActionOutcome,
  ActionReply,
  ActionResult,
  HandleOptions,
  ReplyTarget,
  ResultSink,
} from './actions/handlers.js'
export { createActionHandlers } from './actions/handlers.js'
export type { ApplicationConnections } from './applications/applications.js'
export {
  type HostMessage,
  type IngestSiteMessageDeps,
  ingestCooperativeSiteMessage,
  type PublishingBus,
} from './events/ingest.js'
export { type CooperativeSiteOpenApiOptions, cooperativeSiteOpenApi } from './openapi.js'
export type { Authenticate, CooperativeSiteRouter, CooperativeSiteRouterOptions } from './router.js'
export { createCooperativeSiteRouter } from './router.js'
export { createSessionPolicy, type SessionPolicyOptions } from './sessions/grants.js'
