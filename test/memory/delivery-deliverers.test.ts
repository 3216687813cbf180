/** Connections that misbehave when a command is handed to them. */
import { describe, expect, it } from 'vitest'
import { type CommandDispatcherOptions, createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { command, connection, eventually, first, key } from '../contract/delivery-commands.js'
import { createSubject } from '../contract/delivery-subject.js'

const { dispatcher, advance, status, node } = createSubject<CommandDispatcherOptions>(createCommandDispatcher)

describe('deliverers that misbehave', () => {
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
    ['answers without a promise', () => 42, 'handed_over'],
  ]

  it.each(deliverers)('one that %s is recorded and no more', async (_, deliver, outcome) => {
    await dispatcher.attach(first, deliver as () => void)
    await dispatcher.dispatch(command('c1'))
    await eventually(async () =>
      expect((await status('c1'))?.attempts).toMatchObject({ count: 1, last_outcome: outcome }),
    )
    expect(JSON.stringify(await status('c1'))).not.toContain('MARKER')
  })

  it('one that resolves after the end, or after its time, changes no record', async () => {
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

  it('one that resolves while a later attempt is out leaves that attempt open', async () => {
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

  it('one that is no function is refused', async () => {
    await expect(dispatcher.attach(first, 'deliver' as never)).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('one that changes what it was given changes nothing for the next attempt', async () => {
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

  it('one that speaks to the dispatcher while it is called is understood', async () => {
    await dispatcher.attach(first, async ({ command_id }) => {
      await dispatcher.acknowledge({ ...first, command_id })
      if (command_id === 'c1') await dispatcher.dispatch(command('c2'))
      await dispatcher.settle({ ...key(command_id), state: 'resulted', instance_id: 'i1' })
    })
    await dispatcher.dispatch(command('c1'))
    await eventually(async () => expect((await status('c2'))?.terminal?.state).toBe('resulted'))
    expect((await status('c1'))?.attempts.count).toBe(1)
  })

  it('keeps the outcome of a hand-over that ends after its acknowledgement', async () => {
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
