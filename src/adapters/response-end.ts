/** When the client can get nothing more of a response: its own end, or that of its connection. */

/** The used part of a socket. */
export interface NodeSocket {
  readonly remoteAddress?: string | undefined
  readonly localPort?: number | undefined
  /** The server that has accepted it. */
  readonly server?: object | null | undefined
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
 * Calls `act` once the response has ended or its connection has closed. Node does not notify a response that is queued
 * behind another one of its connection.
 *
 * @returns a function that removes the listener.
 */
export function onResponseEnd({ req, res }: Exchange, act: () => void): () => void {
  const listeners = listenersOf(req.socket)
  const forget = () => {
    listeners.delete(ended)
    res.off('close', ended)
  }
  const ended = () => {
    forget()
    act()
  }
  listeners.add(ended)
  res.on('close', ended)
  return forget
}

/** Whether nothing more of `res` can reach the client. */
export const hasResponseEnded = ({ req, res }: Exchange): boolean => res.destroyed || req.socket.destroyed
