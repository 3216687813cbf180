/** Serves a fetch-style handler with a Node HTTP server. */
import { checkOptions, type Shape } from '../contract/checks.js'
import type { FetchHandler } from './handler.js'
import { toNodeHandler } from './node-handler.js'
import { LISTEN_OPTIONS, listen } from './node-listen.js'
import { type Listening, type ListenOptions, MOUNT_OPTIONS, type MountOptions } from './options.js'

/** Options of `startNodeServer`. */
export interface NodeServerOptions extends ListenOptions, MountOptions {}

/** A server that is listening. */
export type NodeServer = Listening

const OPTIONS: Shape<NodeServerOptions> = { ...LISTEN_OPTIONS, ...MOUNT_OPTIONS }

/**
 * Serves `handler`, bounded in every direction: slow senders, readers that take nothing, requests that pile up on a
 * connection, and connections themselves.
 *
 * @throws Error naming the port that is in use; TypeError and RangeError for unusable options.
 * @example
 * ```ts
 * import { startNodeServer } from 'relayscope/node'
 *
 * const server = await startNodeServer(() => new Response('hello'), { allowedHosts: ['loopback'] })
 * console.log(server.url)
 * await server.close()
 * ```
 */
export async function startNodeServer(handler: FetchHandler, options: NodeServerOptions = {}): Promise<NodeServer> {
  checkOptions(options, OPTIONS)
  const { allowedHosts, onError, ...rest } = options
  return listen(toNodeHandler(handler, { allowedHosts, onError }), rest)
}
