/** The list of admission scopes under a scope, whether or not the inspector finds one by its id. */
import { expect, it } from 'vitest'
import type { Page } from '../../src/internal/contract/page.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { type Answered, createSubject, get } from './subject.js'
import { createWorld } from './world.js'

it.each([true, false])('shows the one that was asked for (found by its id: %s)', async (isFound) => {
  const { delivery } = createFakeInspectors(createWorld())
  if (!delivery) throw new Error('the world has no delivery')
  if (!isFound) delivery.getTenant = undefined
  const router = createSubject({ inspectors: { delivery } })
  const itemsOf = async (query: string) => {
    const items: unknown[] = []
    for (let next: string | null = ''; next !== null; ) {
      const { status, body }: Answered<Pick<Page<unknown>, 'items' | 'next_cursor'>> = await get(
        router,
        `/delivery/tenants?${query}${next && `&cursor=${next}`}`,
      )
      expect(status).toBe(200)
      items.push(...body.items)
      next = body.next_cursor
    }
    return items
  }
  expect(await itemsOf('limit=1&scope_id=scope-2')).toMatchObject([{ scope_id: 'scope-2', reserved_commands: 2 }])
  expect(await itemsOf('limit=1&scope_id=missing')).toEqual([])
  expect(await itemsOf('limit=1')).toHaveLength(3)
})

it('finds one next to an invalid record', async () => {
  const { delivery } = createFakeInspectors(createWorld())
  if (!delivery) throw new Error('the world has no delivery')
  const { listTenants } = delivery
  delivery.getTenant = undefined
  delivery.listTenants = async (page, ask) => {
    const listed = await listTenants(page, ask)
    return { ...listed, items: [null as never, ...listed.items] }
  }
  const { status, body } = await get(createSubject({ inspectors: { delivery } }), '/delivery/tenants?scope_id=scope-2')
  expect(status).toBe(200)
  expect(body).toMatchObject({ items: [{ scope_id: 'scope-2' }] })
})
