/** Hooks of a host: how their own errors are handled, and where errors go without an error hook. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { guardErrorHook, guardHook } from '../../src/internal/async/hook.js'
import { badHooks, flushPromises } from '../bad-hooks.js'

const error = new Error('secret')

/** What is written to the console meanwhile. */
function listen() {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => log.mockRestore())
  return log.mock.calls
}

describe('a hook', () => {
  it.each(badHooks)('that %s breaks no caller, and its error is reported', async (_, hook) => {
    const told: unknown[] = []
    guardHook(hook, (thrown) => told.push(thrown))()
    await flushPromises()
    expect(told).toEqual([new Error('secret of the hook')])
  })
})

describe('the hook for errors', () => {
  it('logs to the console by default, with the place and the stack', () => {
    const written = listen()
    guardErrorHook<[place: object]>(undefined)(error, { route: '/users' })
    expect(written).toEqual([['relayscope:', { route: '/users' }, error]])
  })

  it('logs at most ten errors a second by default, and then how many it suppressed', () => {
    const written = listen()
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1_500)
    onTestFinished(() => clock.mockRestore())
    const tell = guardErrorHook(undefined)
    for (let n = 0; n < 1_000; n++) tell(error)
    expect(written).toHaveLength(10)
    clock.mockReturnValue(2_000)
    tell(error)
    expect(written.slice(10)).toEqual([['relayscope: 990 more errors within a second'], ['relayscope:', error]])
  })

  it('is disabled when a host passes null', () => {
    const written = listen()
    guardErrorHook(null)(error)
    expect(written).toEqual([])
  })

  it('calls the host’s own', () => {
    const told: unknown[] = []
    const written = listen()
    guardErrorHook((...args: [unknown, string]) => told.push(...args))(error, 'place')
    expect(told).toEqual([error, 'place'])
    expect(written).toEqual([])
  })
})
