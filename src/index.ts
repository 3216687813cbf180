/** The face of `relayscope`: the diagnostics router, authentication, and the words of the contract. */
export * from './contract/index.js'
export type { AccessQuestion, Authorize } from './diagnostics/authorization.js'
export { RawHistory } from './diagnostics/history.js'
export type { AccessRecord, ErrorPlace, Hooks } from './diagnostics/hooks.js'
export { type OpenApiOptions, openApiDocument } from './diagnostics/openapi.js'
export type { DiagnosticsRouterOptions } from './diagnostics/options.js'
export { RouteEntry, ServiceIndex } from './diagnostics/route.js'
export { createDiagnosticsRouter, type DiagnosticsRouter } from './diagnostics/router.js'
export { InstanceStatus } from './diagnostics/rpc.js'
export { SourceList, SourceRow } from './diagnostics/sources.js'
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
export { Problem, ProblemCode } from './http/problem.js'
export type { Chunks, HttpReply, TextReply } from './http/respond.js'
export { Refusal, type RefusalCode, type RefusalOptions, type WriteOutcome, wasNotRun } from './refusal.js'
export { ActionPage } from './views/actions.js'
export { BrowserWindowCount, ConnectionCount, ContextCount } from './views/counts.js'
export { Evidence, Finding, FindingKind, FindingPage } from './views/findings/finding.js'
export { scopeInspectors } from './views/scope/inspectors.js'
export type { UserScope } from './views/scope/seen.js'
export { UserObservation, UserSummary } from './views/user-observation.js'
export { UserPage } from './views/users.js'
export { WorkerCounts, Workers } from './views/workers.js'
