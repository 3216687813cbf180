/** The face of `relayscope/ws`: what feeds the connections from a WebSocket server. */
export type { CallId, FollowedCalls } from '../follow/call-records.js'
export type { FollowCallsOptions } from '../follow/calls.js'
export type { FollowConnectionsOptions, FollowedConnections } from '../follow/connections.js'
export { type CallMessage, type CallProtocol, jsonRpc } from '../follow/messages.js'
export type { Follower, FollowOptions, Identity, PlugErrorPlace } from '../follow/writer.js'
export {
  type FollowedWebSocket,
  type FollowedWebSocketServer,
  type FollowWebSocketsOptions,
  followWebSockets,
  type WebSocketFollower,
} from './follow.js'
