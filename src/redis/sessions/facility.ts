/** The sessions of a deployment, for relays on several nodes. */
import { guardHook } from '../../internal/async/hook.js'
import type { Inspected } from '../../internal/contract/families.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { readParts } from '../../internal/contract/options.js'
import {
  FINAL_KEPT_MS,
  type SessionInspector,
  SessionOptions,
  type SessionRegistry,
  SHARES_MAX,
} from '../../internal/contract/sessions.js'
import { isFinal, type SessionRecords, sessionRules } from '../../internal/rules/sessions.js'
import { shardOf } from '../store/keys.js'
import { listen as listenOn } from '../store/listener.js'
import { ignoreReply, parseFlag } from '../store/reply.js'
import { defineScript, runScript } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { changedMeanwhile, parseContent, readContent, TRIES } from '../table/records.js'
import { BadRow, readIndex } from '../table/rows.js'
import { createSessionInspector, encodeShare, readShare, SESSIONS } from './inspector.js'
import { scripts } from './sessions.lua'

// The scripts of the session registry.

/** Adds a session. The limits count sessions that have not ended. `expires`: epoch ms, or '+inf'. */
const OPEN_SESSION = defineScript(
  'sessions.open',
  {
    args: ['attempt', 'id', 'owner', 'site', 'max_per_owner', 'max_sessions', 'expires', 'content'],
    constants: { FINAL_KEPT_MS },
    answer: ignoreReply,
  },
  scripts.open,
)

/**
 * Writes the content of a session or, if that is '', the share of a user ('' deletes it). Returns whether it was written:
 * it is not if the session or that share has changed since it was read.
 */
const CHANGE_SESSION = defineScript(
  'sessions.change',
  {
    args: ['attempt', 'id', 'node', 'expected', 'expected_share', 'content', 'isFinal', 'user', 'share'],
    constants: { FINAL_KEPT_MS, SHARES_MAX },
    answer: parseFlag,
  },
  scripts.change,
)

/**
 * Ends expired sessions, and deletes those that ended an hour ago, for the loop of a node. Returns whether there are
 * more.
 */
export const SWEEP_SESSIONS = defineScript(
  'sessions.sweep',
  { args: ['max_sessions'], constants: { FINAL_KEPT_MS }, answer: parseFlag, freesMemory: true },
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
  const { maxSessions, maxSessionsPerUser, ...rest } = readParts(SessionOptions, options)
  const node = crypto.randomUUID()
  const watchers = createSessionWatchers(store, node)
  const shardFor = async (sessionId: string) => shardOf(sessionId, await store.claimShards())
  // Reads of the registry have the store's timeout, so only a signal is needed here.
  const UNBOUNDED = { signal: new AbortController().signal }

  /** Reads a session and the share of a user, as they are stored and as of now. */
  async function read(shard: number, sessionId: string, userId: string) {
    const sharesKey = store.key(shard, 'sessions', 'shares', sessionId)
    const [content, stored, now] = await Promise.all([
      readContent(store, SESSIONS, shard, sessionId),
      userId === '' ? null : readIndex(store, ['HGET', sharesKey, userId], UNBOUNDED),
      store.time(),
    ])
    const row = parseContent(store, SESSIONS, sessionId, content)
    const session = row && SESSIONS.read(row, now)
    const expected_share = typeof stored === 'string' ? stored : ''
    const share = expected_share === '' ? null : readShare(userId, expected_share, now)
    if (share === undefined) store.onError(new BadRow(`${sharesKey} holds an invalid share`))
    return { known: session && { session, share: share ?? null }, now, expected: content, expected_share }
  }

  const records: SessionRecords = {
    async add(make) {
      const session = make(await store.time())
      const { session_id: id, owner, site_id: site, expires_at } = session
      await runScript(store, OPEN_SESSION, await shardFor(id), {
        attempt: crypto.randomUUID(),
        id,
        owner,
        site,
        max_per_owner: maxSessionsPerUser,
        max_sessions: maxSessions,
        expires: expires_at === null ? '+inf' : Date.parse(expires_at),
        content: JSON.stringify(session),
      })
      return session
    },
    async change(sessionId, step, userId = '') {
      const shard = await shardFor(sessionId)
      for (let tries = 0; tries < TRIES; tries++) {
        const { known, now, ...asRead } = await read(shard, sessionId, userId)
        const { session, share, answer } = step(known, toTimestamp(now))
        if (session === undefined && share === undefined) return answer
        const isWritten = await runScript(store, CHANGE_SESSION, shard, {
          attempt: crypto.randomUUID(),
          id: sessionId,
          node,
          ...asRead,
          content: session ? JSON.stringify(session) : '',
          isFinal: session && isFinal(session) ? '1' : '',
          user: userId,
          share: share ? encodeShare(share) : '',
        })
        if (!isWritten) continue
        watchers.notify(sessionId)
        return answer
      }
      throw changedMeanwhile()
    },
  }

  return {
    inspector: createSessionInspector(store),
    ...sessionRules(records, rest),
    watch: watchers.watch,
    disconnect: () => watchers.close(),
  }
}
