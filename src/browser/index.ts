/** The face of `relayscope/browser`. */
export type { GapReason, SiteEvent } from '../internal/contract/event-bus.js'
export type { Invocation, InvocationError } from '../internal/contract/invocations.js'
export type { Json, JsonObject } from '../internal/contract/json.js'
export type { ClientHeaders, FieldError, HeaderFields } from '../internal/relay-client/wire.js'
export type { EndFrame, GapFrame, ReadyFrame, Subscriber } from './client.js'
export { type CooperativeSiteClient, type CooperativeSiteClientOptions, createCooperativeSiteClient } from './client.js'
export type { InvokeOptions } from './invoke.js'
export { CooperativeSiteError } from './invoke.js'
