/** How far lists without an index of users are read for a page of users, and for a search. */
import { expect, it } from 'vitest'
import type { DeliveryInspector } from '../../src/internal/contract/delivery.js'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/kits.js'
import { command } from './finding-worlds.js'
import { createSubject, get } from './subject.js'
import { connection } from './world.js'

const COMMANDS = 2_500
const statuses = Array.from({ length: COMMANDS }, (_, i) => command({ command_id: `cmd-${i}`, user_id: `user-${i}` }))
const connections = [connection({ user_id: 'ada' })]

/** What a router answers, and how many commands it read for that. */
async function ask(path: string): Promise<{ body: Record<string, never>; read: number }> {
  const inspectors = createFakeInspectors({ connections, delivery: { statuses } } as FakeWorld)
  const delivery = inspectors.delivery as DeliveryInspector
  let read = 0
  const listCommands: DeliveryInspector['listCommands'] = async (...given) => {
    const page = await delivery.listCommands?.(...given)
    read += page?.items.length ?? 0
    return page as NonNullable<typeof page>
  }
  const { status, body } = await get(
    createSubject({ inspectors: { ...inspectors, delivery: { ...delivery, listCommands } } }),
    path,
  )
  expect(status).toBe(200)
  return { body: body as never, read }
}

it('reads 1,000 commands for a page of users, says so, and still has the users of an index', async () => {
  const { body, read } = await ask('/users?limit=50')
  const { items, completeness } = body as never as {
    items: { user_id: string }[]
    completeness: { complete: boolean; truncated_sources: string[]; examined: Record<string, number> }
  }
  expect([read, completeness.complete, completeness.truncated_sources]).toEqual([1_000, false, ['delivery']])
  expect(items[0]?.user_id).toBe('ada')
  expect(items.length).toBe(50)
})

it('reads as many for a search, and names what was cut', async () => {
  const { body } = await ask('/search?q=user-1')
  expect((body as never as { cut: string[] }).cut).toContain('delivery')
})
