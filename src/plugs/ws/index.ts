/** The face of `relayscope/ws`: what feeds the connections from a WebSocket server. */
export type { FollowedConnections } from '../follow/connections.js'
export type { Follower, FollowOptions, Identity, PlugErrorPlace } from '../follow/writer.js'
export {
  type FollowedWebSocket,
  type FollowedWebSocketServer,
  type FollowWebSocketsOptions,
  followWebSockets,
} from './follow.js'
