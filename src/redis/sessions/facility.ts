/** The sessions of a deployment, for relays on several nodes. */

import { guardHook } from '../../async/hook.js'
import { toReason } from '../../contract/ids.js'
import { parseInput } from '../../contract/input.js'
import type { Inspected } from '../../contract/inspectors.js'
import { readParts } from '../../contract/options.js'
import {
  OpenSessionInput,
  requireOneOwner,
  SESSION_MOVES,
  type Session,
  type SessionInspector,
  SessionOptions,
  type SessionRegistry,
  SessionShare,
} from '../../contract/sessions.js'
import { shardOf } from '../store/keys.js'
import { listen as listenOn } from '../store/listener.js'
import type { StoreReply } from '../store/reply.js'
import { runScript, toUnavailable } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { BadRow, readIndex } from '../table/rows.js'
import { createSessionInspector, encodeShare, readSession, readShare, SESSION_FIELDS } from './inspector.js'
import { MOVE_SESSION, OPEN_SESSION, SHARE_SESSION, UNSHARE_SESSION } from './scripts.js'

// Who on this node wants to know when a session changes, wherever that happens.

interface SessionWatchers {
  /** Tells whoever watches the session here. */
  notify(sessionId: string): void
  /** @returns a function that ends it. */
  watch(sessionId: string, changed: () => void): () => void
  close(): Promise<void>
}

/** @param node What this node signs its changes with: it has told its own watchers before word of them comes back. */
function createSessionWatchers(store: Store, node: string): SessionWatchers {
  const watchers = new Map<string, Set<() => void>>()
  /** Sessions of which changes made elsewhere are heard. */
  const heard = new Set<string>()
  // Nobody knows what was missed: whoever watches reads again.
  const listening = listenOn(store, (isUp) => {
    if (isUp) for (const sessionId of [...watchers.keys()]) notify(sessionId)
  })

  function notify(sessionId: string) {
    for (const notify of [...(watchers.get(sessionId) ?? [])]) notify()
  }

  /** Brings the subscription in line with whether anybody watches now. */
  async function listen(sessionId: string): Promise<void> {
    const shard = shardOf(sessionId, await store.claimShards())
    const channel = store.key(shard, 'sessions', 'wake-ups', sessionId)
    if (!watchers.has(sessionId)) {
      heard.delete(sessionId)
      return listening.unsubscribe(channel)
    }
    await listening.subscribe(shard, channel, (changedBy) => {
      if (changedBy !== node) notify(sessionId)
    })
    // What was changed before was missed. Where it was heard already nothing was: whoever stops and begins anew with
    // each word would have no rest.
    if (heard.has(sessionId) || !watchers.has(sessionId)) return
    heard.add(sessionId)
    notify(sessionId)
  }

  return {
    notify,
    watch(sessionId, changed) {
      // One entry per call, so that the same function can watch twice and end once. What it throws is no business of
      // those who watch beside it, nor of whoever made the change.
      const own = guardHook(changed, store.onError)
      const known = watchers.get(sessionId)
      watchers.set(sessionId, (known ?? new Set()).add(own))
      if (!known) listen(sessionId).catch((error) => store.onError(error))
      return () => {
        const others = watchers.get(sessionId)
        if (!others?.delete(own) || others.size > 0) return
        watchers.delete(sessionId)
        listen(sessionId).catch((error) => store.onError(error))
      }
    },
    async close() {
      watchers.clear()
      heard.clear()
      await listening.close()
    },
  }
}

export type RedisSessionRegistryOptions = StoreOptions & SessionOptions

/** A registry of sessions, with `watch`. `disconnect()` ends its part in the connection that watchers hear by. */
export type RedisSessionRegistry = Inspected<Required<SessionRegistry>, SessionInspector> & {
  disconnect(): Promise<void>
}

/**
 * A registry of sessions in Redis. A watcher hears of changes made on any node, and once more when its link to the store
 * was lost in between.
 *
 * @throws RangeError for a bound that is not a whole number from 1.
 *
 * @example
 * const sessions = createRedisSessionRegistry({ client, deploymentId: 'prod', sites })
 */
export function createRedisSessionRegistry(options: RedisSessionRegistryOptions): RedisSessionRegistry {
  return sessionRegistryOn(createStore(options, inStore(SessionOptions)), options)
}

export function sessionRegistryOn(store: Store, options: SessionOptions): RedisSessionRegistry {
  const { sites, newId, maxSessions, maxSessionsPerUser } = readParts(SessionOptions, options)
  const node = crypto.randomUUID()
  const watchers = createSessionWatchers(store, node)
  const shardFor = async (sessionId: string) => shardOf(sessionId, await store.claimShards())
  // Only an abort signal is asked of it, and reads of the registry are bounded by the store.
  const UNBOUNDED = { signal: new AbortController().signal }

  function toSession(sessionId: string, { now, values }: { now: number; values: StoreReply }): Session {
    const session = readSession(sessionId, values, now)
    if (!session)
      throw toUnavailable(store, new BadRow(`the store should have answered the session ${sessionId}, and did not`))
    return session
  }

  /** What a write of one session begins with. Its attempt makes a second arrival of it harmless. */
  const writeOf = (id: string) => ({ id, node, attempt: crypto.randomUUID() })

  async function move(sessionId: string, state: keyof typeof SESSION_MOVES, reason: string | null): Promise<Session> {
    const from = `,${SESSION_MOVES[state].join(',')},`
    const given = { ...writeOf(sessionId), to: state, from, reason: reason ?? '' }
    const shown = await runScript(store, MOVE_SESSION, await shardFor(sessionId), given)
    watchers.notify(sessionId)
    return toSession(sessionId, shown)
  }

  async function get(sessionId: string): Promise<Session | null> {
    const key = store.key(await shardFor(sessionId), 'sessions', 'session', sessionId)
    const [now, values] = await Promise.all([
      store.time(),
      readIndex(store, ['HMGET', key, ...SESSION_FIELDS], UNBOUNDED),
    ])
    const session = readSession(sessionId, values, now)
    if (session === undefined) store.onError(new BadRow(`${key} should hold a session, and holds something else`))
    return session ?? null
  }

  return {
    inspector: createSessionInspector(store),
    get,
    async open(given) {
      const { ttlMs, ...input } = parseInput(OpenSessionInput, given)
      await requireOneOwner(input, sites)
      const session_id = newId()
      const { site_id, owner, connector } = input
      const shown = await runScript(store, OPEN_SESSION, await shardFor(session_id), {
        ...writeOf(session_id),
        owner,
        max_per_owner: maxSessionsPerUser,
        max_sessions: maxSessions,
        ttl: ttlMs ?? '',
        site: site_id,
        fields: ['connector', JSON.stringify(connector)],
      })
      return toSession(session_id, shown)
    },
    activate: (sessionId) => move(sessionId, 'active', null),
    suspend: (sessionId) => move(sessionId, 'suspended', null),
    close: (sessionId, reason) => move(sessionId, 'closed', toReason(reason)),
    async share(sessionId, given) {
      const share = Object.freeze(parseInput(SessionShare, given))
      const [until_ms, rights] = encodeShare(share)
      const field = { user: share.user_id, until_ms, rights }
      await runScript(store, SHARE_SESSION, await shardFor(sessionId), { ...writeOf(sessionId), ...field })
      watchers.notify(sessionId)
      return share
    },
    async unshare(sessionId, viewer) {
      const user = typeof viewer === 'string' ? viewer : viewer.user_id
      const given = { ...writeOf(sessionId), user }
      const had = await runScript(store, UNSHARE_SESSION, await shardFor(sessionId), given)
      if (had) watchers.notify(sessionId)
      return had
    },
    async getShare(sessionId, userId) {
      const shard = await shardFor(sessionId)
      const key = store.key(shard, 'sessions', 'shares', sessionId)
      const [session, now, stored] = await Promise.all([
        get(sessionId),
        store.time(),
        readIndex(store, ['HGET', key, userId], UNBOUNDED),
      ])
      if (session === null || typeof stored !== 'string') return null
      const share = readShare(userId, stored, now)
      if (share === undefined)
        store.onError(new BadRow(`${key} should hold shares, and holds something else for one user`))
      return share ?? null
    },
    watch: watchers.watch,
    disconnect: () => watchers.close(),
  }
}
