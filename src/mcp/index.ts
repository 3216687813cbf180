/** The public interface of `relayscope/mcp`: a diagnostics router for agents. */
export type { HttpReply } from '../internal/http/respond.js'
export { createMcp, type Mcp } from './mcp.js'
export type { McpOptions } from './options.js'
export type { McpRouter } from './source.js'
