/** The face of `relayscope/mcp`: what a diagnostics router answers, as an agent asks for it. */
export type { HttpReply } from '../http/respond.js'
export { createMcp, type Mcp } from './mcp.js'
export type { McpOptions } from './options.js'
export type { McpRouter } from './source.js'
