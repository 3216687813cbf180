/** The sessions of a deployment, for relays on several nodes. */
import { guardHook } from '../../async/hook.js'
import type { Inspected } from '../../contract/families.js'
import { toReason } from '../../contract/ids.js'
import { parseInput, readParts } from '../../contract/options.js'
import {
  FINAL_KEPT_MS,
  OpenSessionInput,
  requireOneOwner,
  SESSION_MOVES,
  type Session,
  type SessionInspector,
  SessionOptions,
  type SessionRegistry,
  SessionShare,
  SHARES_MAX,
  viewerId,
} from '../../contract/sessions.js'
import { shardOf } from '../store/keys.js'
import { listen as listenOn } from '../store/listener.js'
import { ignoreReply, listOf, parseFlag, type StoreReply } from '../store/reply.js'
import { defineScript, runScript, toUnavailable } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { BadRow, readIndex } from '../table/rows.js'
import { createSessionInspector, encodeShare, readSession, readShare, SESSION_FIELDS } from './inspector.js'
import { scripts } from './sessions.lua'

// The scripts of the session registry: each transition is checked against the current state.

const CONSTANTS = { SESSION_FIELDS, FINAL_KEPT_MS }

/** Returns the time, and the fields of the session. */
const readShown = (reply: StoreReply) => {
  const [now, values = null] = listOf(reply)
  return { now: Number(now), values }
}

/** Opens a session. The limits count sessions that have not ended. `ttl` may be ''; `fields`: names and values. */
const OPEN_SESSION = defineScript(
  'sessions.open',
  {
    args: ['attempt', 'id', 'owner', 'site', 'max_per_owner', 'max_sessions', 'ttl'],
    rest: 'fields',
    constants: CONSTANTS,
    answer: readShown,
  },
  scripts.open,
)

/** Changes the state to `to`. `from`: the states that allow it, each between commas. `reason` may be ''. */
const MOVE_SESSION = defineScript(
  'sessions.move',
  { args: ['attempt', 'id', 'node', 'to', 'from', 'reason'], constants: CONSTANTS, answer: readShown },
  scripts.move,
)

/** Shares a session with a user. `until_ms` may be ''. */
const SHARE_SESSION = defineScript(
  'sessions.share',
  {
    args: ['attempt', 'id', 'node', 'user', 'until_ms', 'rights'],
    constants: { ...CONSTANTS, SHARES_MAX },
    answer: ignoreReply,
  },
  scripts.share,
)

/** Returns whether there was a share that had not expired. */
const UNSHARE_SESSION = defineScript(
  'sessions.unshare',
  { args: ['attempt', 'id', 'node', 'user'], constants: CONSTANTS, answer: parseFlag },
  scripts.unshare,
)

/**
 * Ends expired sessions, and deletes those that ended an hour ago, for the loop of a node. Returns whether there are
 * more.
 */
export const SWEEP_SESSIONS = defineScript(
  'sessions.sweep',
  { args: ['max_sessions'], constants: CONSTANTS, answer: parseFlag, freesMemory: true },
  scripts.sweep,
)

// Watchers on this node that are notified of changes of a session, wherever they are made.

interface SessionWatchers {
  /** Notifies this node's watchers of the session. */
  notify(sessionId: string): void
  /** Adds a watcher. @returns a function that removes it. */
  watch(sessionId: string, changed: () => void): () => void
  close(): Promise<void>
}

/** @param node Id with which this node signs its changes: its own watchers are notified before the message arrives. */
function createSessionWatchers(store: Store, node: string): SessionWatchers {
  const watchers = new Map<string, Set<() => void>>()
  /** Sessions for which changes on other nodes are received. */
  const heard = new Set<string>()
  // It is unknown what was missed: all watchers read again.
  const listening = listenOn(store, (isUp) => {
    if (isUp) for (const sessionId of [...watchers.keys()]) notify(sessionId)
  })

  function notify(sessionId: string) {
    for (const notify of [...(watchers.get(sessionId) ?? [])]) notify()
  }

  /** Subscribes or unsubscribes, depending on whether there are watchers now. */
  async function listen(sessionId: string): Promise<void> {
    const shard = shardOf(sessionId, await store.claimShards())
    const channel = store.key(shard, 'sessions', 'signals', sessionId)
    if (!watchers.has(sessionId)) {
      heard.delete(sessionId)
      return listening.unsubscribe(channel)
    }
    await listening.subscribe(shard, channel, (changedBy) => {
      if (changedBy !== node) notify(sessionId)
    })
    // Changes before the subscription were missed, unless the session was already subscribed: otherwise a watcher that
    // restarts with each notification would loop.
    if (heard.has(sessionId) || !watchers.has(sessionId)) return
    heard.add(sessionId)
    notify(sessionId)
  }

  return {
    notify,
    watch(sessionId, changed) {
      // One entry per call, so that the same function can be added twice and removed once. An exception in it must not
      // affect other watchers, nor the author of the change.
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

/** Options of `createRedisSessionRegistry`. */
export type RedisSessionRegistryOptions = StoreOptions & SessionOptions

/** A session registry with `watch`. `disconnect()` releases its part of the subscriber connection. */
export type RedisSessionRegistry = Inspected<Required<SessionRegistry>, SessionInspector> & {
  disconnect(): Promise<void>
}

/**
 * Creates a session registry in Redis. Watchers are notified of changes on any node, and once more after a reconnect to
 * the store.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
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
  // Reads of the registry have the store's timeout, so only a signal is needed here.
  const UNBOUNDED = { signal: new AbortController().signal }

  function toSession(sessionId: string, { now, values }: { now: number; values: StoreReply }): Session {
    const session = readSession(sessionId, values, now)
    if (!session) throw toUnavailable(store, new BadRow(`invalid reply for the session ${sessionId}`))
    return session
  }

  /** Common arguments of every write of a session. The attempt id makes a second arrival harmless. */
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
    if (session === undefined) store.onError(new BadRow(`${key} does not hold a valid session`))
    return session ?? null
  }

  return {
    inspector: createSessionInspector(store),
    get,
    async open(given) {
      const { ttl_ms, ...input } = parseInput(OpenSessionInput, given)
      await requireOneOwner(input, sites)
      const session_id = newId()
      const { site_id, owner, connector } = input
      const shown = await runScript(store, OPEN_SESSION, await shardFor(session_id), {
        ...writeOf(session_id),
        owner,
        max_per_owner: maxSessionsPerUser,
        max_sessions: maxSessions,
        ttl: ttl_ms ?? '',
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
      const user = viewerId(viewer)
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
      if (share === undefined) store.onError(new BadRow(`${key} holds an invalid share`))
      return share ?? null
    },
    watch: watchers.watch,
    disconnect: () => watchers.close(),
  }
}
