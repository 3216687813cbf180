/** The small relayscope that `docs/architecture.md` begins with. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, vi } from 'vitest'

const FILE = fileURLToPath(new URL('../../examples/mini-relayscope.mjs', import.meta.url))
const { createCommands, createRouter, ROUTES } = await import(FILE)

const NOW = Date.parse('2026-01-15T09:41:00.000Z')

function createWorld(options: object = {}) {
  const clock = { now: NOW }
  const commands = createCommands({ now: () => clock.now, maxCommands: 3, leaseMs: 1_000, ...options })
  const onError = vi.fn()
  const router = createRouter({ inspectors: { commands: commands.inspector }, key: 'k', prefix: '/ops', onError })
  const ask = async (path: string, { key = 'k', method = 'GET', via = router } = {}) => {
    const response = await via(new Request(`http://host${path}`, { method, headers: { 'x-admin-key': key } }))
    return { status: response.status, ...(await response.json()) }
  }
  return { clock, commands, ask, onError }
}

describe('the small relayscope', () => {
  it('has at most 150 lines', () => {
    expect(readFileSync(FILE, 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(150)
  })

  it('shows what is known about a command', async () => {
    const { commands, ask, clock } = createWorld()
    const deliver = vi.fn()
    commands.attach('laptop', deliver)
    await commands.dispatch('c-1', 'laptop')
    await commands.dispatch('c-1', 'laptop')
    expect(deliver).toHaveBeenCalledExactlyOnceWith('c-1')
    await commands.dispatch('c-2', 'phone')
    expect(commands.acknowledge('c-1', 'phone')).toBe(false)
    expect(commands.acknowledge('c-1', 'laptop')).toBe(true)
    expect(commands.acknowledge('c-1', 'laptop')).toBe(false)
    const at = new Date(NOW).toISOString()
    const command = { dispatched_at: at, delivered_at: null, acknowledged_at: null }
    expect(await ask('/ops/commands')).toEqual({
      status: 200,
      items: [
        {
          ...command,
          command_id: 'c-1',
          client_id: 'laptop',
          state: 'acknowledged',
          delivered_at: at,
          acknowledged_at: at,
        },
        { ...command, command_id: 'c-2', client_id: 'phone', state: 'waiting' },
      ],
      next_cursor: null,
      examined: 2,
      complete: true,
    })
    clock.now += 1_000
    expect((await ask('/ops/commands?client_id=phone')).items).toMatchObject([{ command_id: 'c-2', state: 'expired' }])
    expect(commands.acknowledge('c-2', 'phone')).toBe(false)
  })

  it('pages, and says when it stopped reading', async () => {
    const { commands, ask } = createWorld()
    for (const id of ['c-3', 'c-1', 'c-2']) await commands.dispatch(id, 'laptop')
    const first = await ask('/ops/commands?limit=2')
    expect(first).toMatchObject({ items: [{ command_id: 'c-1' }, { command_id: 'c-2' }], next_cursor: 'c-2' })
    expect(await ask(`/ops/commands?cursor=${first.next_cursor}`)).toMatchObject({
      items: [{ command_id: 'c-3' }],
      next_cursor: null,
    })
    const via = createRouter({ inspectors: { commands: commands.inspector }, key: 'k', budget: 1 })
    expect(await ask('/commands?client_id=phone', { via })).toMatchObject({ items: [], examined: 1, complete: false })
  })

  it('refuses a command beyond its limit until one has ended', async () => {
    const { commands, clock } = createWorld()
    for (const id of ['c-1', 'c-2', 'c-3']) await commands.dispatch(id, 'laptop')
    await expect(commands.dispatch('c-4', 'laptop')).rejects.toMatchObject({ code: 'capacity_exceeded' })
    clock.now += 1_000
    await commands.dispatch('c-4', 'laptop')
  })

  it.each([
    ['without the key', '/ops/nothing', { key: 'x' }, 403, 'forbidden'],
    ['for an unknown path', '/ops/nothing', {}, 404, 'not_found'],
    ['for another method', '/ops/commands', { method: 'POST' }, 405, 'method_not_allowed'],
    ['for an unknown parameter', '/ops/commands?client=a', {}, 422, 'invalid_query'],
    ['for a limit out of bounds', '/ops/commands?limit=101', {}, 422, 'invalid_query'],
  ])('refuses a request %s', async (_what, path, request, status, code) => {
    expect(await createWorld().ask(path, request)).toEqual({ status, code })
  })

  it('answers 501 for a family that is not deployed, and hides what is thrown', async () => {
    const { ask, onError } = createWorld()
    expect(await ask('/commands', { via: createRouter({ inspectors: {}, key: 'k' }) })).toMatchObject({ status: 501 })
    const failing = {
      list: () => {
        throw new Error('a secret')
      },
    }
    const via = createRouter({ inspectors: { commands: failing }, key: 'k', onError })
    expect(await ask('/commands', { via })).toEqual({ status: 500, code: 'internal' })
    expect(onError).toHaveBeenCalledExactlyOnceWith(new Error('a secret'))
    expect(ROUTES).toHaveLength(1)
  })
})
