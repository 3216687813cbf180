/** Reads the sessions of a shared store. */

import { toTimestamp } from '../../internal/contract/ids.js'
import { deepFreeze } from '../../internal/contract/json.js'
import { type InspectionContext, withItems } from '../../internal/contract/page.js'
import { Session, type SessionInspector, type SessionRow, SessionShare } from '../../internal/contract/sessions.js'
import type { SiteKey } from '../../internal/contract/sites.js'
import { hasPassed, sessionAt } from '../../internal/rules/sessions.js'
import { shardOf } from '../store/keys.js'
import { count, listOf } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { readPage } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { Millis, readRows, type TableReader } from '../table/rows.js'
import { allShards, readShards } from '../table/shards.js'
import { scripts } from './sessions.lua'

/** Sessions in the order in which they were opened. Their shares are stored by session, and read separately. */
export const SESSIONS: TableReader<Session, Session> = {
  name: 'sessions',
  idOf: ({ session_id }) => session_id,
  schema: Session,
  indexes: ['site_id', 'owner'],
  read: (row, now) => deepFreeze(sessionAt(row, now)),
}

/** Returns a share as it is stored: when it ends, and what it allows. */
export const encodeShare = ({ rights, expires_at }: SessionShare): string =>
  `${expires_at === null ? '' : Date.parse(expires_at)} ${rights.join(',')}`

/** Returns a stored share as of `now`: `null` if it has expired, `undefined` if it is invalid. */
export function readShare(userId: string, stored: string, now: number): SessionShare | null | undefined {
  const [ends = '', rights = ''] = stored.split(' ')
  if (!/^\d*$/.test(ends)) return undefined
  try {
    const expires_at = ends === '' ? null : toTimestamp(Number(ends))
    const read = SessionShare.safeParse({ user_id: userId, rights: rights.split(','), expires_at })
    if (!read.success) return undefined
    return hasPassed(expires_at, now) ? null : Object.freeze(read.data)
  } catch {
    return undefined
  }
}

type Shares = Pick<SessionRow, 'shares' | 'next_share_expires_at'>

/** Reads how many valid shares some sessions have, and when the first of them ends. */
const SHARES_OF = defineReadScript(
  {
    args: ['at'],
    rest: 'sessions',
    answer: ([found]) =>
      listOf(found).map((one): Shares => {
        const [shares = null, end = null] = listOf(one)
        const ends = end === null ? undefined : Millis.safeParse(Number(end)).data
        return { shares: count(shares), next_share_expires_at: ends === undefined ? null : toTimestamp(ends) }
      }),
  },
  scripts.shares_of,
)

/** Adds their shares to sessions, with one read per shard; `null` for those of a shard that is down. */
async function withShares(store: Store, sessions: readonly Session[], ctx: InspectionContext): Promise<SessionRow[]> {
  const [shards, at] = await Promise.all([store.shards(ctx), store.time(ctx)])
  const shardOfSession = ({ session_id }: Session) => shardOf(session_id, shards)
  const { answers } = await readShards([...new Set(sessions.map(shardOfSession))], ctx, async (shard) => {
    const ids = sessions.filter((session) => shardOfSession(session) === shard).map(({ session_id }) => session_id)
    const shares = await readShard(store, SHARES_OF, shard, { at, sessions: ids }, ctx)
    return ids.map((id, i) => [id, shares[i]] as const)
  })
  const found = new Map(answers.flat())
  const unknown: Shares = { shares: null, next_share_expires_at: null }
  return sessions.map((session) => {
    const shares = found.get(session.session_id) ?? unknown
    return { ...session, connector_connected: null, ...shares, viewers: null }
  })
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
    async listSessions(filter, page, ctx) {
      const listed = await readPage(store, SESSIONS, filter, page, ctx)
      return withItems(listed, await withShares(store, listed.items, ctx))
    },
    async getSession(sessionId, ctx) {
      const [shards, now] = await Promise.all([store.shards(ctx), store.time(ctx)])
      const [place] = await readRows(store, SESSIONS, shardOf(sessionId, shards), [sessionId], ctx)
      const session = place?.row && SESSIONS.read(place.row, now)
      return session ? ((await withShares(store, [session], ctx))[0] ?? null) : null
    },
    countSessions: (sites, ctx) => countSessions(store, sites, ctx),
  }
}
