/** The face of `relayscope/node`. */

export type { ConnectionInfo, FetchHandler, HttpReply } from './handler.js'
export { type NodeHandler, toNodeHandler } from './node-handler.js'
export { type NodeServer, type NodeServerOptions, startNodeServer } from './node-listen.js'
export { recordingDirectory } from './node-recording.js'
export type { NodeRequest, NodeResponse, NodeSocket } from './node-request.js'
export type { HandlerErrorPlace, Listening, MountOptions } from './options.js'
export type { RecordingDirectory, RecordingDirectoryOptions } from './recording-directory.js'
