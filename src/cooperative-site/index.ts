/** The face of `relayscope/cooperative-site`: a relay between local applications and their viewers. */

export type { IdempotencyClaim, IdempotencyState, IdempotencyStore } from '../contract/idempotency.js'
export type { ApprovalRequest, Approve } from './approval.js'
export type { ActionReply, DispatchConnector, DispatchConnectorOptions } from './dispatch-connector.js'
export { createDispatchConnector } from './dispatch-connector.js'
export type { CooperativeSiteEventBusOptions } from './event-bus.js'
export { createCooperativeSiteEventBus } from './event-bus.js'
export { ActionFailure } from './failure.js'
export type { ActionGate, ActionGateOptions, InvokeInput } from './gate.js'
export { createCooperativeActionGate } from './gate.js'
export type {
  ActionCall,
  ActionContext,
  ActionHandler,
  ActionHandlers,
  ActionOutcome,
  HandleOptions,
  ResultSink,
} from './handlers.js'
export { createActionHandlers } from './handlers.js'
export type { IdempotencyStoreOptions } from './idempotency-store.js'
export { createIdempotencyStore } from './idempotency-store.js'
export type { HostMessage, IngestSiteMessageDeps } from './ingest.js'
export { ingestCooperativeSiteMessage } from './ingest.js'
export type { PublishingBus } from './publish-once.js'
export type { Authenticate, CooperativeSiteRouter, CooperativeSiteRouterOptions } from './router.js'
export { createCooperativeSiteRouter } from './router.js'
export { createSessionPolicy } from './session-policy.js'
export type { SessionRegistryOptions } from './session-registry.js'
export { createSessionRegistry } from './session-registry.js'
export type { SiteRegistryOptions } from './site-registry.js'
export { createSiteRegistry } from './site-registry.js'
