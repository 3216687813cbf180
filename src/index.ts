/** The face of `relayscope`: the diagnostics router, authentication, and all types. Schemas: `relayscope/schemas`. */
export { createIngest, siteStream } from './internal/contract/ingest.js'
export type { AccessQuestion, Authorize } from './internal/diagnostics/authorization.js'
export type { AccessRecord, ErrorPlace, Hooks } from './internal/diagnostics/hooks.js'
export type { PastAnswers, PastComposition } from './internal/diagnostics/instants.js'
export { type OpenApiOptions, openApiDocument } from './internal/diagnostics/openapi.js'
export type { DiagnosticsRouterOptions } from './internal/diagnostics/options.js'
export { createDiagnosticsRouter, type DiagnosticsRouter } from './internal/diagnostics/router.js'
export type { NamedKeys } from './internal/http/auth.js'
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
} from './internal/http/auth.js'
export type { Mountable } from './internal/http/engine.js'
export type { Chunks, HttpReply, TextReply } from './internal/http/respond.js'
export { Refusal, type RefusalCode, type RefusalOptions, type WriteOutcome, wasNotRun } from './internal/refusal.js'
export { scopeInspectors } from './internal/views/scope/inspectors.js'
export type { UserScope } from './internal/views/scope/seen.js'
export type * from './schemas.js'
