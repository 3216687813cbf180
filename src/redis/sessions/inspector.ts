/** Reads the sessions of a shared store. */

import { toTimestamp } from '../../contract/ids.js'
import type { InspectionContext } from '../../contract/page.js'
import {
  FINAL_KEPT_MS,
  Session,
  type SessionInspector,
  type SessionRow,
  SessionShare,
} from '../../contract/sessions.js'
import type { SiteKey } from '../../contract/sites.js'
import { shardOf } from '../store/keys.js'
import { count, listOf, type StoreReply, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { defineListing, type Listed, readListed, reportBadRecord } from '../table/listed.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { FOREIGN, Millis, readIndex } from '../table/rows.js'
import { allShards, readShards } from '../table/shards.js'
import { scripts } from './sessions.lua'

// Formats of a stored session and its shares.

/** Fields of the hash, in the order in which they are read. Times are epoch ms; the connector is JSON. */
export const SESSION_FIELDS = [
  'session_id',
  'site_id',
  'owner',
  'connector',
  'state',
  'opened_at',
  'expires_at',
  'updated_at',
  'close_reason',
] as const

/** Returns the session as of `now`: `null` if it does not exist (any more), `undefined` if it is invalid. */
export function readSession(sessionId: string, reply: StoreReply, now: number): Session | null | undefined {
  const values = Array.isArray(reply) ? reply : []
  if (values.every((value) => value === null)) return null
  const text = (field: (typeof SESSION_FIELDS)[number]) => {
    const value = values[SESSION_FIELDS.indexOf(field)]
    return typeof value === 'string' ? value : null
  }
  try {
    const expiresAt = text('expires_at')
    const expires_at = expiresAt === null ? null : toTimestamp(Number(expiresAt))
    const isExpired = text('state') !== 'closed' && expiresAt !== null && Number(expiresAt) <= now
    const read = Session.safeParse({
      session_id: text('session_id'),
      site_id: text('site_id'),
      owner: text('owner'),
      state: isExpired ? 'expired' : text('state'),
      connector: JSON.parse(text('connector') ?? 'null'),
      opened_at: toTimestamp(Number(text('opened_at'))),
      expires_at,
      updated_at: isExpired ? expires_at : toTimestamp(Number(text('updated_at'))),
      close_reason: text('close_reason'),
    })
    if (!read.success || read.data.session_id !== sessionId) return undefined
    const { state, updated_at } = read.data
    const isFinal = state === 'closed' || state === 'expired'
    return isFinal && Date.parse(updated_at) + FINAL_KEPT_MS <= now ? null : Object.freeze(read.data)
  } catch {
    return undefined
  }
}

/** Returns when a share ends and what it allows: one field of the hash of shares. */
export function encodeShare({ rights, expires_at }: SessionShare): [ends: string, rights: string] {
  return [expires_at === null ? '' : String(Date.parse(expires_at)), rights.join(',')]
}

/** Returns a stored share as of `now`: `null` if it has expired, `undefined` if it is invalid. */
export function readShare(userId: string, stored: string, now: number): SessionShare | null | undefined {
  const [ends = '', rights = ''] = stored.split(' ')
  if (!/^\d*$/.test(ends)) return undefined
  if (ends !== '' && Number(ends) <= now) return null
  try {
    const expires_at = ends === '' ? null : toTimestamp(Number(ends))
    const read = SessionShare.safeParse({ user_id: userId, rights: rights.split(','), expires_at })
    return read.success ? Object.freeze(read.data) : undefined
  } catch {
    return undefined
  }
}

/**
 * The data of a row of `/sessions`: the session, the number of its valid shares at `now`, and when the first of them
 * ends.
 */
export interface FoundSession {
  /** Values of `SESSION_FIELDS`. */
  values: StoreReply
  shares: StoreReply
  /** A score, or `null`. */
  nextEnd: StoreReply
}

/** Returns the row as of `now`: `null` if there is no session (any more), `undefined` if it is invalid. */
function readSessionRow(
  sessionId: string,
  { values, shares, nextEnd }: FoundSession,
  now: number,
): SessionRow | null | undefined {
  const session = readSession(sessionId, values, now)
  if (!session) return session
  const end = nextEnd === null ? undefined : Millis.safeParse(Number(nextEnd)).data
  return {
    ...session,
    connector_connected: null,
    shares: count(shares),
    next_share_expires_at: end === undefined ? null : toTimestamp(end),
    viewers: null,
  }
}

/** Sessions in the order in which they were opened. */
const SESSIONS: Listed<SessionRow> = {
  name: 'sessions',
  kind: 'session',
  indexes: ['site_id', 'owner'],
  script: defineListing(scripts.list, { SESSION_FIELDS, FIELDS: SESSION_FIELDS.length, FOREIGN }),
  read(id, found, now) {
    const [values = null, shares = null, nextEnd = null] = listOf(found)
    return readSessionRow(id, { values, shares, nextEnd }, now)
  },
}

// `sites` alternates owner and site.
const OPEN_AT = defineReadScript(
  { args: ['at'], rest: 'sites', answer: ([counts]) => listOf(counts).map(count) },
  scripts.open_at,
)

/**
 * Counts sessions with one read per shard, whatever the number of sites: sessions are in the shards of their own ids.
 */
async function countSessions(
  store: Store,
  sites: readonly SiteKey[],
  ctx: InspectionContext,
): Promise<(number | null)[]> {
  const at = await store.time(ctx)
  const keys = sites.flatMap(({ owner, site_id }) => [owner, site_id])
  const { answers, truncated } = await readShards(await allShards(store, ctx), ctx, (shard) =>
    readShard(store, OPEN_AT, shard, { at, sites: keys }, ctx),
  )
  // A shard that is down may hold sessions of any site.
  return sites.map((_, i) => (truncated ? null : answers.reduce((sum, counts) => sum + (counts[i] ?? 0), 0)))
}

export function createSessionInspector(store: Store): SessionInspector {
  return {
    listSessions: (filter, page, ctx) => readListed(store, SESSIONS, filter, page, ctx),
    async getSession(sessionId, ctx) {
      const [shards, now] = await Promise.all([store.shards(ctx), store.time(ctx)])
      const shard = shardOf(sessionId, shards)
      const key = store.key(shard, SESSIONS.name, SESSIONS.kind, sessionId)
      const ends = store.key(shard, SESSIONS.name, 'share-ends', sessionId)
      const [values, shares, next] = await Promise.all([
        readIndex(store, ['HMGET', key, ...SESSION_FIELDS], ctx),
        readIndex(store, ['ZCOUNT', ends, `(${now}`, '+inf'], ctx),
        readIndex(store, ['ZRANGE', ends, `(${now}`, '(+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES'], ctx),
      ])
      const row = readSessionRow(sessionId, { values, shares, nextEnd: scored(next)[0]?.score ?? null }, now)
      if (row === undefined) reportBadRecord(store, key, sessionId, ctx)
      return row ?? null
    },
    countSessions: (sites, ctx) => countSessions(store, sites, ctx),
  }
}
