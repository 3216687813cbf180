/** The face of `relayscope/socket.io`: what feeds the connections from a Socket.IO server. */
export type { FollowedCalls } from '../follow/call-records.js'
export type { FollowCallsOptions } from '../follow/calls.js'
export type { FollowConnectionsOptions, FollowedConnections } from '../follow/connections.js'
export type { Follower, FollowOptions, Identity, PlugErrorPlace } from '../follow/writer.js'
export type { EnginePacket, FollowedLink, FollowedNamespace, FollowedSocket, FollowedSocketIoServer } from './follow.js'
export { type FollowSocketIoOptions, followSocketIo } from './follow.js'
