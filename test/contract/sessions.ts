/** What every registry of sessions promises. */
import { describe, expect, it } from 'vitest'
import type { Inspected } from '../../src/internal/contract/families.js'
import type {
  Session,
  SessionFilter,
  SessionInspector,
  SessionRegistry,
  SessionState,
} from '../../src/internal/contract/sessions.js'
import type { SiteRegistry } from '../../src/internal/contract/sites.js'
import { ASK, walk } from './clock.js'
import { notes } from './sites.js'

interface SessionsUnderTest {
  sites: SiteRegistry
  sessions: Inspected<SessionRegistry, SessionInspector>
  /** Moves the clock of both. */
  advance(ms: number): void
  close(): Promise<void>
}

const connector = { user_id: 'alice', client_id: 'laptop' }

interface SessionBounds {
  maxSessions?: number
  maxSessionsPerUser?: number
  newId?: () => string
}

type Make = (bounds?: SessionBounds) => Promise<SessionsUnderTest>

export function sessionRegistryBattery(name: string, make: Make): void {
  const using = async (work: (under: SessionsUnderTest) => Promise<void>, bounds?: SessionBounds) => {
    const under = await make(bounds)
    try {
      await under.sites.put(notes)
      await work(under)
    } finally {
      await under.close()
    }
  }

  /** A session brought into `state`. */
  async function sessionIn({ sessions, advance }: SessionsUnderTest, state: SessionState): Promise<Session> {
    const ttl_ms = state === 'expired' ? { ttl_ms: 10 } : {}
    const { session_id } = await sessions.open({ site_id: 'notes', owner: 'alice', connector, ...ttl_ms })
    if (state !== 'pending') await sessions.activate(session_id)
    if (state === 'suspended') await sessions.suspend(session_id)
    if (state === 'closed') await sessions.close(session_id, 'done')
    if (state === 'expired') advance(10)
    return (await sessions.get(session_id)) as Session
  }

  describe(`the registry of sessions over ${name}`, () => {
    it('opens a session as pending, for the owner of the site', () =>
      using(async ({ sessions }) => {
        const session = await sessions.open({ site_id: 'notes', owner: 'alice', connector, ttl_ms: 1_000 })
        expect(session).toEqual({
          session_id: expect.stringMatching(/^.{16,}$/),
          site_id: 'notes',
          owner: 'alice',
          state: 'pending',
          connector,
          opened_at: expect.any(String),
          expires_at: new Date(Date.parse(session.opened_at) + 1_000).toISOString(),
          updated_at: session.opened_at,
          close_reason: null,
        })
        expect(await sessions.get(session.session_id)).toEqual(session)
        expect(await sessions.get('guessed')).toBeNull()
      }))

    const openFor = async ({ sites, sessions }: SessionsUnderTest, owner: string, ttl_ms?: number) => {
      await sites.put({ ...notes, site_id: `of-${owner}`, owner })
      return sessions.open({ site_id: `of-${owner}`, owner, ...(ttl_ms ? { ttl_ms } : {}) })
    }

    it('refuses an owner at its limit, and no other owner, until one of its sessions ends or expires', () =>
      using(
        async (under) => {
          const { sessions, advance } = under
          const first = await openFor(under, 'mallory')
          await openFor(under, 'mallory', 10)
          await openFor(under, 'mallory')
          await expect(openFor(under, 'mallory')).rejects.toMatchObject({ code: 'capacity_exceeded' })
          await openFor(under, 'alice')
          await sessions.close(first.session_id)
          await openFor(under, 'mallory')
          await expect(openFor(under, 'mallory')).rejects.toMatchObject({ code: 'capacity_exceeded' })
          advance(10)
          await openFor(under, 'mallory')
        },
        { maxSessions: 5, maxSessionsPerUser: 3 },
      ))

    it('limits one owner to a tenth of the capacity by default', () =>
      using(
        async (under) => {
          for (let n = 0; n < 3; n++) await openFor(under, 'mallory')
          await expect(openFor(under, 'mallory')).rejects.toMatchObject({ code: 'capacity_exceeded' })
          await openFor(under, 'alice')
        },
        { maxSessions: 30 },
      ))

    it('forgets ended sessions of the owner with the most, not those of others', () =>
      using(
        async (under) => {
          const { sessions, advance } = under
          const end = async (owner: string) => {
            const { session_id } = await openFor(under, owner)
            await sessions.close(session_id)
            advance(1)
            return session_id
          }
          const alices = await end('alice')
          const mallorys: string[] = []
          for (let n = 0; n < 6; n++) mallorys.push(await end('mallory'))
          await openFor(under, 'alice')
          expect((await sessions.get(alices))?.state).toBe('closed')
          const left = await Promise.all(mallorys.map((id) => sessions.get(id)))
          expect(left.map((session) => session?.state ?? null)).toEqual([null, null, null, null, 'closed', 'closed'])
        },
        { maxSessions: 3 },
      ))

    it.each([Number.NaN, 0, -1, 1.5, Number.POSITIVE_INFINITY])('is not made with a bound of %d', async (bound) => {
      await expect(make({ maxSessions: bound })).rejects.toThrow(RangeError)
      await expect(make({ maxSessionsPerUser: bound })).rejects.toThrow(RangeError)
    })

    const listIn = ({ sessions }: SessionsUnderTest, filter: SessionFilter = {}) =>
      walk((page) => sessions.inspector.listSessions(filter, page, ASK), 2)
    const countIn = ({ sessions }: SessionsUnderTest, ...sites: [owner: string, site_id: string][]) =>
      sessions.inspector.countSessions?.(
        sites.map(([owner, site_id]) => ({ owner, site_id })),
        ASK,
      )

    it('lists sessions by owner, site and state as they read now, and no longer than they are known', () =>
      using(async (under) => {
        const { sessions, advance } = under
        const alices = await openFor(under, 'alice')
        const brief = await openFor(under, 'alice', 1_000)
        const bobs = await openFor(under, 'bob')
        await sessions.activate(bobs.session_id)
        const ids = async (filter?: SessionFilter) =>
          (await listIn(under, filter)).map(({ session_id }) => session_id).sort()
        const sorted = (...of: Session[]) => of.map(({ session_id }) => session_id).sort()
        expect(await ids()).toEqual(sorted(alices, brief, bobs))
        advance(1_000)
        // It has expired, but its end is not recorded.
        expect(await ids({ owner: 'alice' })).toEqual(sorted(alices, brief))
        expect(await ids({ state: 'expired' })).toEqual(sorted(brief))
        expect(await ids({ state: 'pending', owner: 'alice' })).toEqual(sorted(alices))
        expect(await ids({ site_id: 'of-bob' })).toEqual(sorted(bobs))
        expect(await ids({ site_id: 'of-bob', owner: 'alice' })).toEqual([])
        await sessions.close(alices.session_id)
        const row = await sessions.inspector.getSession(alices.session_id, ASK)
        const unknown = { connector_connected: null, shares: 0, next_share_expires_at: null, viewers: null }
        expect(row).toEqual({ ...(await sessions.get(alices.session_id)), ...unknown })
        expect(await listIn(under, { state: 'closed' })).toEqual([row])
        advance(3_600_000 - 1)
        expect((await sessions.get(alices.session_id))?.state).toBe('closed')
        advance(1)
        expect(await sessions.get(alices.session_id)).toBeNull()
        expect(await ids()).toEqual(sorted(bobs))
        for (const id of [alices.session_id, '__proto__'])
          expect(await sessions.inspector.getSession(id, ASK)).toBeNull()
      }))

    it('does not return an expired session, though its end is not recorded', () =>
      using(async (under) => {
        const { sessions, advance } = under
        const first = await openFor(under, 'alice', 1_000)
        const second = await openFor(under, 'alice', 1_000)
        advance(1_000 + 3_600_000)
        expect(await sessions.get(first.session_id)).toBeNull()
        await expect(sessions.share(second.session_id, { user_id: 'bob', rights: ['view'] })).rejects.toMatchObject({
          code: 'session_not_found',
        })
        expect(await sessions.getShare(second.session_id, 'bob')).toBeNull()
        expect(await listIn(under)).toEqual([])
      }))

    it('knows nothing of a session whose hour is over, though one that ended later was written down before', () =>
      using(async (under) => {
        const { sessions, advance } = under
        const brief = await openFor(under, 'alice', 1_000)
        const longer = await openFor(under, 'alice')
        advance(3_000_000)
        await sessions.close(longer.session_id)
        expect(await sessions.get(brief.session_id)).toMatchObject({ state: 'expired' })
        advance(601_000)
        expect(await sessions.get(brief.session_id)).toBeNull()
        await expect(sessions.activate(brief.session_id)).rejects.toMatchObject({ code: 'session_not_found' })
        expect(await sessions.get(longer.session_id)).toMatchObject({ state: 'closed' })
      }))

    it('counts what has not ended of a site, and nothing of another owner at the same site', () =>
      using(async (under) => {
        const { sessions, advance } = under
        await openFor(under, 'alice')
        const over = await openFor(under, 'alice')
        await openFor(under, 'alice', 1_000)
        await openFor(under, 'bob')
        const asked: [string, string][] = [
          ['alice', 'of-alice'],
          ['bob', 'of-alice'],
          ['bob', 'of-bob'],
          ['alice', 'none'],
        ]
        expect(await countIn(under, ...asked)).toEqual([3, 0, 1, 0])
        await sessions.close(over.session_id)
        advance(1_000)
        expect(await countIn(under, ...asked)).toEqual([1, 0, 1, 0])
        expect(await countIn(under)).toEqual([])
      }))

    it('shows the current shares and when the first of them expires', () =>
      using(async (under) => {
        const { sessions, advance } = under
        const { session_id, opened_at } = await openFor(under, 'alice')
        const until = (ms: number) => new Date(Date.parse(opened_at) + ms).toISOString()
        const shares = async () => {
          const [row] = await listIn(under)
          expect(await sessions.inspector.getSession(session_id, ASK)).toEqual(row)
          return [row?.shares, row?.next_share_expires_at]
        }
        const share = (user_id: string, expires_at: string | null = null) =>
          sessions.share(session_id, { user_id, rights: ['view'], expires_at })
        await share('bob')
        expect(await shares()).toEqual([1, null])
        await share('cyd', until(2_000))
        await share('dan', until(1_000))
        expect(await shares()).toEqual([3, until(1_000)])
        advance(1_000)
        expect(await shares()).toEqual([2, until(2_000)])
        await share('cyd', until(9_000))
        expect(await shares()).toEqual([2, until(9_000)])
        await sessions.unshare(session_id, 'cyd')
        expect(await shares()).toEqual([1, null])
      }))

    it('refuses a session whose site, owner and connector are not of one user', () =>
      using(async ({ sessions }) => {
        const open = (change: object) => sessions.open({ site_id: 'notes', owner: 'alice', ...change })
        await expect(open({ site_id: 'nope' })).rejects.toMatchObject({ code: 'unknown_site' })
        await expect(open({ owner: 'mallory' })).rejects.toMatchObject({ code: 'owner_mismatch' })
        await expect(open({ connector: { user_id: 'mallory', client_id: 'x' } })).rejects.toMatchObject({
          code: 'owner_mismatch',
        })
        await expect(open({ ttl_ms: 0 })).rejects.toMatchObject({ code: 'invalid_input' })
        await expect(open({ ttl: 5 })).rejects.toMatchObject({
          code: 'invalid_input',
          detail: expect.stringMatching(/^Unknown field "ttl"\. /),
        })
        await expect(open({ connector: { user_id: 'alice', client_id: 'a/b' } })).rejects.toMatchObject({
          code: 'invalid_input',
        })
      }))

    const moves = {
      activate: { to: 'active', from: ['pending', 'suspended'] },
      suspend: { to: 'suspended', from: ['active'] },
      close: { to: 'closed', from: ['pending', 'active', 'suspended'] },
    } as const
    const states: SessionState[] = ['pending', 'active', 'suspended', 'closed', 'expired']
    const table = states.flatMap((state) =>
      (Object.keys(moves) as (keyof typeof moves)[]).map((move) => {
        const allowed = (moves[move].from as readonly string[]).includes(state)
        return [allowed ? 'lets' : 'refuses to', move, state] as const
      }),
    )
    it.each(table)('%s %s a session that is %s', (verdict, move, state) =>
      using(async (under) => {
        const before = await sessionIn(under, state)
        expect(before.state).toBe(state)
        const moved = under.sessions[move](before.session_id)
        if (verdict === 'lets') {
          expect((await moved).state).toBe(moves[move].to)
          expect((await under.sessions.get(before.session_id))?.state).toBe(moves[move].to)
        } else {
          await expect(moved).rejects.toMatchObject({ code: 'invalid_transition' })
          expect(await under.sessions.get(before.session_id)).toEqual(before)
        }
      }))

    it('says why a session was closed, in a low-cardinality name', () =>
      using(async ({ sessions }) => {
        const open = () => sessions.open({ site_id: 'notes', owner: 'alice' })
        expect(await sessions.close((await open()).session_id, 'owner_left')).toMatchObject({
          close_reason: 'owner_left',
        })
        expect(await sessions.close((await open()).session_id)).toMatchObject({ close_reason: null })
        expect(await sessions.close((await open()).session_id, 'Alice said: no!')).toMatchObject({
          close_reason: 'other',
        })
        await expect(sessions.close('guessed')).rejects.toMatchObject({ code: 'session_not_found' })
      }))

    it('shares with rights that can be replaced and revoked, and that expire', () =>
      using(async ({ sessions, advance }) => {
        const { session_id, opened_at } = await sessions.open({ site_id: 'notes', owner: 'alice' })
        expect(await sessions.getShare(session_id, 'bob')).toBeNull()
        await sessions.share(session_id, { user_id: 'bob', rights: ['view'] })
        expect(await sessions.getShare(session_id, 'bob')).toEqual({
          user_id: 'bob',
          rights: ['view'],
          expires_at: null,
        })
        const expires_at = new Date(Date.parse(opened_at) + 50).toISOString()
        await sessions.share(session_id, { user_id: 'bob', rights: ['view', 'invoke'], expires_at })
        expect((await sessions.getShare(session_id, 'bob'))?.rights).toEqual(['view', 'invoke'])
        await sessions.share(session_id, { user_id: 'dan', rights: ['view'], expires_at })
        advance(50)
        expect(await sessions.getShare(session_id, 'bob')).toBeNull()
        // Whether or not the expired share was swept.
        expect(await sessions.unshare(session_id, 'bob')).toBe(false)
        await sessions.share(session_id, { user_id: 'carol', rights: ['view'] })
        expect(await sessions.unshare(session_id, 'dan')).toBe(false)
        expect(await sessions.unshare(session_id, { user_id: 'carol' })).toBe(true)
        expect(await sessions.unshare(session_id, { user_id: 'carol' })).toBe(false)
        expect(await sessions.getShare(session_id, 'carol')).toBeNull()
        await sessions.close(session_id)
        await expect(sessions.share(session_id, { user_id: 'bob', rights: ['view'] })).rejects.toMatchObject({
          code: 'invalid_transition',
        })
        await expect(sessions.share('guessed', { user_id: 'bob', rights: ['view'] })).rejects.toMatchObject({
          code: 'session_not_found',
        })
        await expect(sessions.share(session_id, { user_id: 'bob', rights: [] })).rejects.toMatchObject({
          code: 'invalid_input',
        })
        const share = { user_id: 'bob', rights: ['view'], expires: '2030-01-01T00:00:00.000Z' } as never
        await expect(sessions.share(session_id, share)).rejects.toMatchObject({
          code: 'invalid_input',
          detail: 'Unknown field "expires". Did you mean "expires_at"?',
        })
      }))

    it('is shared with at most the maximum number of users, not counting expired shares', () =>
      using(async (under) => {
        const { sessions, advance } = under
        const { session_id, opened_at } = await openFor(under, 'alice')
        const until = new Date(Date.parse(opened_at) + 50).toISOString()
        const share = (n: number, expires_at: string | null = null) =>
          sessions.share(session_id, { user_id: `u${n}`, rights: ['view'], expires_at })
        await Promise.all(Array.from({ length: 500 }, (_, n) => share(n, until)))
        await Promise.all(Array.from({ length: 500 }, (_, n) => share(500 + n)))
        await expect(share(1_000)).rejects.toMatchObject({ code: 'capacity_exceeded' })
        await share(999)
        advance(50)
        await share(1_000)
        expect(await sessions.getShare(session_id, 'u1')).toBeNull()
      }))

    it('is not shared once it has expired, whether or not that was recorded', () =>
      using(async ({ sessions, advance }) => {
        const { session_id } = await sessions.open({ site_id: 'notes', owner: 'alice', ttl_ms: 60_000 })
        advance(60_001)
        await expect(sessions.share(session_id, { user_id: 'bob', rights: ['view'] })).rejects.toMatchObject({
          code: 'invalid_transition',
        })
        expect(await sessions.getShare(session_id, 'bob')).toBeNull()
      }))

    it('grants no access from shares of an earlier session with the same id', () =>
      using(
        async (under) => {
          const { sessions, advance } = under
          for (const end of [
            async () => {},
            () => sessions.close('again'),
            async () => advance(1_000),
            async () => advance(4_000_000),
          ]) {
            await openFor(under, 'alice', 1_000)
            await sessions.share('again', { user_id: 'mallory', rights: ['view', 'invoke'] })
            await end()
            await openFor(under, 'bob')
            expect(await sessions.getShare('again', 'mallory')).toBeNull()
            expect(await sessions.unshare('again', 'mallory')).toBe(false)
            const row = await sessions.inspector.getSession('again', ASK)
            expect(row).toMatchObject({ owner: 'bob', shares: 0, next_share_expires_at: null })
          }
        },
        { newId: () => 'again' },
      ))

    it('tells a watcher of moves and of shares, until it stops', () =>
      using(async ({ sessions }) => {
        const { session_id } = await sessions.open({ site_id: 'notes', owner: 'alice' })
        let told = 0
        const unwatch = sessions.watch?.(session_id, () => told++)
        if (unwatch === undefined) return
        await sessions.activate(session_id)
        await sessions.share(session_id, { user_id: 'bob', rights: ['view'] })
        await sessions.unshare(session_id, { user_id: 'bob' })
        // At least: a shared store notifies again after each reconnect, because changes may have been missed.
        expect(told).toBeGreaterThanOrEqual(3)
        unwatch()
        const heard = told
        await sessions.close(session_id)
        expect(told).toBe(heard)
      }))
  })
}
