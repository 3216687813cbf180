/** When the client can get nothing more of a response: its own end, or that of its connection. */

/** What is used of a socket. */
export interface NodeSocket {
  readonly remoteAddress?: string | undefined
  readonly localPort?: number | undefined
  /** The server that has accepted it. */
  readonly server?: { readonly maxHeadersCount?: number | null } | undefined
  readonly encrypted?: boolean | undefined
  readonly destroyed: boolean
  on(event: string, listener: () => void): unknown
}

interface Exchange {
  req: { readonly socket: NodeSocket }
  res: {
    readonly destroyed: boolean
    on(event: string, listener: () => void): unknown
    off(event: string, listener: () => void): unknown
  }
}

// One listener a socket, however many requests are pipelined on it.
const ofSockets = new WeakMap<NodeSocket, Set<() => void>>()

function listenersOf(socket: NodeSocket): Set<() => void> {
  const known = ofSockets.get(socket)
  if (known) return known
  const listeners = new Set<() => void>()
  ofSockets.set(socket, listeners)
  socket.on('close', () => {
    for (const listener of listeners) listener()
  })
  return listeners
}

/**
 * Calls `act` once, when `res` has ended or its connection has: a response that waits behind another one of its
 * connection is told nothing of that by Node.
 *
 * @returns a function that takes the listener back.
 */
export function onGone({ req, res }: Exchange, act: () => void): () => void {
  const listeners = listenersOf(req.socket)
  const forget = () => {
    listeners.delete(gone)
    res.off('close', gone)
  }
  const gone = () => {
    forget()
    act()
  }
  listeners.add(gone)
  res.on('close', gone)
  return forget
}

/** Whether nothing more of `res` can reach the client. */
export const isGone = ({ req, res }: Exchange): boolean => res.destroyed || req.socket.destroyed
