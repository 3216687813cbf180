/** The face of `relayscope/node`. */

export type { ConnectionInfo, FetchHandler, HttpReply } from './handler.js'
export { type NodeHandler, toNodeHandler } from './node-handler.js'
export type { NodeRequest, NodeResponse } from './node-request.js'
export { type NodeServer, type NodeServerOptions, startNodeServer } from './node-server.js'
export type { HandlerErrorPlace, Listening, MountOptions } from './options.js'
export type { NodeSocket } from './response-end.js'
