/** Connections that misbehave when a command is handed to them. */
import { describe, expect, it } from 'vitest'
import { type CommandDispatcherOptions, createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { command, connection, eventually, first, key } from '../contract/delivery-commands.js'
import { createSubject } from '../contract/delivery-subject.js'

const { dispatcher, advance, status, node } = createSubject<CommandDispatcherOptions>(createCommandDispatcher)

describe('a dispatcher with misbehaving deliverers', () => {
  const deliverers: [string, () => unknown, string][] = [
    [
      'throws',
      () => {
        throw new Error('MARKER')
      },
      'rejected',
    ],
    ['returns a promise that rejects with nothing', () => Promise.reject(), 'rejected'],
    [
      'returns a thenable whose then throws',
      () =>
        Object.defineProperty({}, 'then', {
          get() {
            throw new Error('MARKER')
          },
        }),
      'rejected',
    ],
    ['returns a value other than a promise', () => 42, 'handed_over'],
  ]

  it.each(deliverers)('records one that %s and continues', async (_, deliver, outcome) => {
    await dispatcher.attach(first, deliver as () => void)
    await dispatcher.dispatch(command('c1'))
    await eventually(async () =>
      expect((await status('c1'))?.attempts).toMatchObject({ count: 1, last_outcome: outcome }),
    )
    expect(JSON.stringify(await status('c1'))).not.toContain('MARKER')
  })

  it('ignores one that resolves after the end or after its timeout', async () => {
    const resolvers: (() => void)[] = []
    const tab = connection(() => new Promise<void>((resolve) => resolvers.push(resolve)))
    await dispatcher.attach(first, tab.deliver)
    for (const id of ['c1', 'c2']) await dispatcher.dispatch(command(id))
    await tab.got(1)
    await dispatcher.cancel(key('c1'))
    await tab.got(2)
    await advance(5_000)
    const before = [await status('c1'), await status('c2')]
    for (const resolve of resolvers) resolve()
    await eventually(async () => expect((await node()).counters.other).toMatchObject({ late_outcome: 2 }))
    expect([await status('c1'), await status('c2')]).toEqual(before)
  })

  it('does not end a later attempt when an earlier one resolves', async () => {
    const resolvers: (() => void)[] = []
    const tab = connection(() => new Promise<void>((resolve) => resolvers.push(resolve)))
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1'))
    await tab.got(1)
    await advance(5_000)
    await advance(200)
    await tab.got(2)
    resolvers[0]?.()
    await eventually(async () => expect((await node()).counters.other).toMatchObject({ late_outcome: 1 }))
    expect((await status('c1'))?.attempts).toMatchObject({ count: 2, last_outcome: null })
  })

  it('refuses one that is not a function', async () => {
    await expect(dispatcher.attach(first, 'deliver' as never)).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('gives the next attempt the original command after one that changed it', async () => {
    const seen: unknown[] = []
    await dispatcher.attach(first, (given) => {
      seen.push(structuredClone(given.payload))
      ;(given.payload as { page: number }).page = 9
    })
    await dispatcher.dispatch(command('c1'))
    await eventually(() => expect(seen).toHaveLength(1))
    await advance(200)
    await eventually(() => expect(seen).toEqual([{ page: 1 }, { page: 1 }]))
  })

  it('accepts calls to the dispatcher from within deliver', async () => {
    await dispatcher.attach(first, async ({ command_id }) => {
      await dispatcher.acknowledge({ ...first, command_id })
      if (command_id === 'c1') await dispatcher.dispatch(command('c2'))
      await dispatcher.settle({ ...key(command_id), state: 'resulted', instance_id: 'i1' })
    })
    await dispatcher.dispatch(command('c1'))
    await eventually(async () => expect((await status('c2'))?.terminal?.state).toBe('resulted'))
    expect((await status('c1'))?.attempts.count).toBe(1)
  })

  it('records the outcome of a delivery that ends after its acknowledgement', async () => {
    let release = () => {}
    const tab = connection(() => new Promise<void>((resolve) => (release = resolve)))
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1'))
    await tab.got(1)
    await dispatcher.acknowledge({ ...first, command_id: 'c1' })
    expect((await status('c1'))?.attempts.last_outcome).toBeNull()
    release()
    await eventually(async () => expect((await status('c1'))?.attempts.last_outcome).toBe('handed_over'))
  })
})
