/** Notices that a client has gone while calls to it wait: an application that was killed never answers. */
import { sleep } from '../../internal/async/timer.js'
import type { ClientOfUser, ConnectionRegistry } from '../../internal/contract/connections.js'
import { clientKey } from '../../internal/contract/ids.js'

// One read of the registry per called client, however many calls wait.
const LOOK_MS = 1_000
const LOOK_AGAIN_MS = 250
// Enough for an application that reconnects, or starts again.
const GONE_MS = 2_000

interface Watched {
  calls: Set<() => void>
  goneSince: number | undefined
  over: AbortController
}

/** Returns a function that calls `onGone` when `client` has had no connection for 2 s, and returns how to stop that. */
export function createClientWatch(connections: Pick<ConnectionRegistry, 'currentInstance'>) {
  const watched = new Map<string, Watched>()

  async function follow(client: ClientOfUser, one: Watched): Promise<void> {
    for (;;) {
      await sleep(one.goneSince === undefined ? LOOK_MS : LOOK_AGAIN_MS, one.over.signal)
      if (one.over.signal.aborted) return
      // A registry that does not answer says nothing about the client.
      const instance = await (async () => connections.currentInstance(client))().catch(() => undefined)
      if (instance !== null) one.goneSince = undefined
      else {
        one.goneSince ??= performance.now()
        if (performance.now() - one.goneSince >= GONE_MS) for (const end of [...one.calls]) end()
      }
    }
  }

  return (client: ClientOfUser, onGone: () => void): (() => void) => {
    const key = clientKey(client)
    let one = watched.get(key)
    if (one === undefined) {
      one = { calls: new Set(), goneSince: undefined, over: new AbortController() }
      watched.set(key, one)
      void follow(client, one)
    }
    const { calls, over } = one
    // A caller has just seen it connected.
    one.goneSince = undefined
    const end = () => onGone()
    calls.add(end)
    return () => {
      calls.delete(end)
      if (calls.size > 0) return
      over.abort()
      if (watched.get(key)?.calls === calls) watched.delete(key)
    }
  }
}
