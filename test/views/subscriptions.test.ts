/** The slowest streams: of those that a request may look at, and on one page. */
import { expect, it } from 'vitest'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createFakeInspectors } from '../../src/testing/kits.js'

const pendings = Array.from({ length: 40 }, (_, n) => (n * 7) % 40)

async function ctx(path: string, examined = 10_000) {
  const inspectors = createFakeInspectors({
    subscriptions: pendings.map((pending, n) => ({ pending, user_id: n % 2 ? 'ada' : 'bob' })),
  })
  const router = createDiagnosticsRouter({ inspectors, auth: noopAuth(), limits: { examined }, onError: null })
  const response = await router(new Request(`http://relay${path}`))
  return { status: response.status, body: await response.json() }
}
const pendingOf = (items: { pending: number }[]) => items.map(({ pending }) => pending)

it('come first, whatever their place in the list, and the answer says that there are more', async () => {
  const { body } = await ctx('/subscriptions?order=slowest&limit=3')
  expect(pendingOf(body.items)).toEqual([39, 38, 37])
  expect(body).toMatchObject({ next_cursor: null, has_more: false, completeness: { complete: false } })
  expect((await ctx('/subscriptions?order=slowest&limit=40')).body.completeness).toMatchObject({ complete: true })
  const of = await ctx('/subscriptions?order=slowest&user_id=ada&limit=2')
  expect(pendingOf(of.body.items)).toEqual(
    pendings
      .filter((_, n) => n % 2)
      .sort((a, b) => b - a)
      .slice(0, 2),
  )
})

it('are those of what may be looked at, which the answer says', async () => {
  const { body } = await ctx('/subscriptions?order=slowest&limit=100', 10)
  expect(pendingOf(body.items)).toEqual(pendings.slice(0, 10).sort((a, b) => b - a))
  expect(body.completeness).toMatchObject({ complete: false, examined: { subscriptions: 10 } })
})

it('have no next page, and take no cursor of another order', async () => {
  const { body } = await ctx('/subscriptions?limit=2')
  expect(body).toMatchObject({ has_more: true, completeness: null })
  const { status, body: refused } = await ctx(`/subscriptions?order=slowest&cursor=${body.next_cursor}`)
  expect([status, refused.code]).toEqual([422, 'invalid_cursor'])
})
