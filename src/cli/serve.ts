/** Serves a router, and the parts mounted next to it, on one port. */
import { type FetchHandler, type NodeServer, type NodeServerOptions, startNodeServer } from '../adapters/node.js'

/** The reason of a failure, in words that help the person who started the command. */
export function reasonOf(error: unknown): string {
  const causes = error instanceof AggregateError ? error.errors : [error]
  return causes
    .map((cause) =>
      cause instanceof Error ? cause.message || String((cause as { code?: string }).code) : String(cause),
    )
    .join(', ')
}

/** The address cannot be bound. */
export class PortError extends Error {
  override readonly name = 'PortError'
}

type Part = FetchHandler & Required<Pick<FetchHandler, 'owns' | 'reply'>>

/** `router` and `others` as one handler. The others come first: a router without a prefix would take their paths for its own. */
export function underOneRoof(router: Part, others: readonly Part[]): Part {
  const of = (pathname: string) => others.find((other) => other.owns(pathname)) ?? router
  const partOf = ({ url }: Request) => of(new URL(url).pathname)
  const handler: FetchHandler = (request, info) => partOf(request)(request, info)
  const reply: Part['reply'] = (request, info) => partOf(request).reply(request, info)
  return Object.assign(handler, { owns: (pathname: string) => of(pathname).owns(pathname), reply })
}

/** @throws PortError that names the host and the port. */
export async function serve(handler: FetchHandler, options: NodeServerOptions): Promise<NodeServer> {
  try {
    return await startNodeServer(handler, options)
  } catch (cause) {
    throw new PortError(`cannot listen on ${options.host} port ${options.port}: ${reasonOf(cause)}`, { cause })
  }
}
