/** The face of `relayscope/follow`: what feeds connections from responses that stay open, and calls of MCP sessions. */
export {
  type EventStreamFollower,
  type FollowEventStreamOptions,
  type FollowedResponse,
  followEventStream,
  followEventStreams,
} from './event-stream/follow.js'
export type { FollowedCalls } from './follow/call-records.js'
export type { FollowConnectionsOptions, FollowedConnections } from './follow/connections.js'
export type { Follower, FollowOptions, Identity, PlugErrorPlace } from './follow/writer.js'
export {
  type FollowedMcpTransport,
  type FollowMcpOptions,
  followMcp,
  followMcpSessions,
  type McpFollower,
} from './mcp/follow.js'
