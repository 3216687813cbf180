/** The face of `relayscope`: the diagnostics router, authentication, and all types. Schemas: `relayscope/schemas`. */
export { createIngest, siteStream } from './contract/ingest.js'
export type { AccessQuestion, Authorize } from './diagnostics/authorization.js'
export type { AccessRecord, ErrorPlace, Hooks } from './diagnostics/hooks.js'
export { type OpenApiOptions, openApiDocument } from './diagnostics/openapi.js'
export type { DiagnosticsRouterOptions } from './diagnostics/options.js'
export { createDiagnosticsRouter, type DiagnosticsRouter } from './diagnostics/router.js'
export type { NamedKeys } from './http/auth.js'
export {
  type AdminAuth,
  AdminKeyRequiredError,
  type AdminPrincipal,
  apiKeyAuth,
  bearerAuth,
  noopAuth,
  type RequestSource,
  type ResolveAdminAuthOptions,
  resolveAdminAuth,
} from './http/auth.js'
export type { Mountable } from './http/engine.js'
export type { Chunks, HttpReply, TextReply } from './http/respond.js'
export { Refusal, type RefusalCode, type RefusalOptions, type WriteOutcome, wasNotRun } from './refusal.js'
export type * from './schemas.js'
export { scopeInspectors } from './views/scope/inspectors.js'
export type { UserScope } from './views/scope/seen.js'
