/**
 * The property of callers limited to some users, over all routes: nothing of any other user, and everything of theirs.
 */
import { describe, expect, it } from 'vitest'
import type { Deployment, Inspectors } from '../../src/internal/contract/families.js'
import { createDiagnosticsRouter, type DiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { listIdentity, toCursor } from '../../src/internal/http/cursor.js'
import { REQUESTS } from './scoped-requests.js'
import { ANN, BEN, CYD, type Mark, userOf } from './scoped-world.js'
import { withQuery } from './subject.js'

interface Composition {
  inspectors: Inspectors
  deployment: Deployment
}

/** The same users in several worlds: with other users, and alone. */
export interface Worlds {
  full: Composition
  /** A world of those in the scope alone. */
  alone: Record<keyof typeof SCOPES, Composition>
  now(): number
}

/** The users that each caller may see; `root` sees all. */
export const SCOPES = { none: [], ann: [ANN], team: [CYD, ANN] } as const satisfies Record<string, readonly Mark[]>
type Who = keyof typeof SCOPES
const WHO = Object.keys(SCOPES) as Who[]

// One twice, and in a team one who is not there.
const usersOf = (who: Who) => [...SCOPES[who], ...SCOPES[who], ...(who === 'team' ? ['absent'] : [])].map(userOf)

interface Answered {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: a body is read by the assertions, field by field
  body: any
  text: string
}

function createRouters({ full, alone, now }: Worlds) {
  const routerOver = (composition: Composition) =>
    createDiagnosticsRouter({
      ...composition,
      deployment: { id: 'here', mode: 'direct' },
      auth: { authenticate: ({ headers }) => ({ name: headers.get('x-who') ?? 'none' }) },
      authorize: ({ principal: { name } }) => name === 'root' || { user_ids: usersOf(name as Who) },
      now,
      deadlineMs: 60_000,
      onError: null,
    })
  const alones = Object.entries(alone).map(([who, composition]) => [who, routerOver(composition)])
  return { full: routerOver(full), alone: Object.fromEntries(alones) as Record<Who, DiagnosticsRouter> }
}

async function get(router: DiagnosticsRouter, who: string, target: string): Promise<Answered> {
  const response = await router(new Request(`http://localhost${target}`, { headers: { 'x-who': who } }))
  const text = await response.text()
  return { status: response.status, text, body: JSON.parse(text) }
}

const isPaged = (path: string) => REQUESTS.find((one) => one.path === path)?.route.page === 'paged'

/** All pages of a list, or the one answer. */
async function walk(router: DiagnosticsRouter, who: string, path: string, target: string, limit: number) {
  if (!isPaged(path)) return [await get(router, who, target)]
  const pages: Answered[] = []
  let cursor: string | null = null
  do {
    const page: Answered = await get(
      router,
      who,
      withQuery(target, `limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`),
    )
    pages.push(page)
    cursor = page.body.next_cursor ?? null
    expect(pages.length).toBeLessThan(500)
  } while (cursor !== null)
  return pages
}

const decoded = (cursor: unknown) => (typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString() : '')

/** An answer without what names places in a source rather than anything of its users. */
const shown = ({ status, body }: Answered) => ({
  status,
  body: { ...body, ...('next_cursor' in body ? { next_cursor: body.next_cursor !== null } : {}) },
})

/**
 * The part of an answer that is the same for a caller without limits in a world of these users alone: no order across
 * users, no cost, and nothing about nodes, which only such a caller sees.
 */
function substance(pages: readonly Answered[], isOfSeveral: boolean) {
  const items = pages.flatMap(({ body }) => body.items ?? [])
  const bare = items.map((item) => {
    if (!isOfSeveral || !('parameters_schema' in item)) return JSON.stringify(item)
    return JSON.stringify({ ...item, description: null, parameters_schema: null })
  })
  const { items: _, next_cursor: __, has_more: ___, completeness, observed_at: ____, ...rest } = pages[0]?.body ?? {}
  if ('of_silent_nodes' in rest) delete rest.of_silent_nodes
  // A store in which nothing was ever reported does not know how many there are; a limited caller has none.
  if (rest.total === null || rest.total === 0)
    for (const name of Object.keys(rest)) if (/^(total|by_)/.test(name)) rest[name] = 'none'
  return { status: pages[0]?.status, items: bare.sort(), rest, complete: completeness?.complete }
}

/** Holds a composition to the property. */
export function describeScope(name: string, worlds: () => Worlds, limits: readonly number[]): void {
  let made: ReturnType<typeof createRouters> | undefined
  const routers = () => (made ??= createRouters(worlds()))

  describe(`a caller limited to some users, ${name}`, () => {
    describe.each(REQUESTS)('$path', ({ path, route, targets }) => {
      it.each(WHO)('gets the same answers as if no other users existed (%s)', async (who) => {
        const { full, alone } = routers()
        for (const target of targets)
          for (const limit of isPaged(path) ? limits : [0]) {
            const [seen, expected] = [
              await walk(full, who, path, target, limit),
              await walk(alone[who], who, path, target, limit),
            ]
            expect([target, seen.map(shown)]).toEqual([target, expected.map(shown)])
            const said = seen.map(({ text, body }) => text + decoded(body.next_cursor)).join()
            // A request may be echoed to its caller.
            if (!target.includes(BEN)) expect(said).not.toContain(BEN)
            if (who === 'none' && !target.includes(ANN)) expect(said).not.toContain(ANN)
          }
      })

      if (route.scopable && route.requires.length > 0)
        it.each(WHO)('is shown all that there is of its own (%s)', async (who) => {
          const { full, alone } = routers()
          for (const target of targets) {
            const isOfSeveral = who === 'team' && !target.includes('user_id=')
            const [seen, expected] = [
              await walk(full, who, path, target, 500),
              await walk(alone[who], 'root', path, target, 500),
            ]
            expect([target, substance(seen, isOfSeveral)]).toEqual([target, substance(expected, isOfSeveral)])
          }
        })

      if (!route.scopable)
        it('is refused, whatever there is', async () => {
          for (const who of WHO)
            for (const target of targets) {
              const { status, body } = await get(routers().full, who, target)
              expect([status, body.code]).toEqual([403, 'not_narrowable'])
            }
        })

      it('is requested with values that exist', async () => {
        const all = await Promise.all(targets.map((target) => get(routers().full, 'root', target)))
        if (route.requires.length > 0) expect(all.map(({ status }) => status)).toContain(200)
        const said = all.map(({ text }) => text).join()
        // A summary of findings shows one of them.
        if (path !== '/findings/summary') expect(said.includes(ANN)).toBe(said.includes(BEN))
      })

      if (isPaged(path))
        it('continues only with cursors of the same users', async () => {
          const { full } = routers()
          for (const target of targets.slice(0, 3)) {
            const cursors = new Map<string, string>()
            for (const who of ['root', 'ann', 'team'] as const) {
              const { body } = await get(full, who, withQuery(target, 'limit=1'))
              if (typeof body.next_cursor === 'string') cursors.set(who, body.next_cursor)
            }
            for (const [of, cursor] of cursors)
              for (const who of ['root', 'ann', 'team'] as const) {
                const { status, body } = await get(full, who, withQuery(target, `limit=1&cursor=${cursor}`))
                const isClosed = who !== 'root' && !route.scopable
                const expected = isClosed
                  ? [403, 'not_narrowable']
                  : of === who
                    ? [200, undefined]
                    : [422, 'invalid_cursor']
                expect([of, who, status, body.code]).toEqual([of, who, ...expected])
              }
          }
        })

      if (isPaged(path) && route.scopable && !path.includes('{'))
        it('shows nothing of others by a cursor that was made up', async () => {
          const { full } = routers()
          const tokenIn = (cursor: string) => decoded(cursor).slice(17)
          const bare = targets.find((target) => !target.includes('?')) ?? (targets[0] as string)
          if (bare.includes('?')) return
          const users = [userOf(ANN)]
          const identity = listIdentity({
            route: path,
            params: {},
            filters: {},
            deployment: { id: 'here', mode: 'direct' },
            users,
          })
          const own = await get(full, 'ann', '/contexts?limit=1')
          const prefix = tokenIn(own.body.next_cursor).split('.').slice(0, 2).join('.')
          const whole = (await walk(full, 'root', path, bare, 1)).filter(({ body }) => body.next_cursor !== null)
          // Some of many, from the first to the last.
          const step = Math.ceil(whole.length / 6)
          for (const { body } of whole.filter((_, i) => i % step === 0 || i === whole.length - 1)) {
            const token = tokenIn(body.next_cursor)
            for (const made of [token, `${prefix}.${token}`, `${prefix.replace(/0$/, '1')}.${token}`, `0.${token}`]) {
              const answer = await get(full, 'ann', `${bare}?limit=500&cursor=${toCursor(identity, made)}`)
              expect([200, 422]).toContain(answer.status)
              expect(answer.text).not.toContain(BEN)
              expect(answer.text).not.toContain(CYD)
            }
          }
        })
    })
  })
}
