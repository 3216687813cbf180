/** Commands that wait for their turn at a store that says nothing. */
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { createCommands } from '../../src/redis/store/commands.js'

afterEach(() => vi.useRealTimers())

it('sends nothing whose time is up, though those who gave up at the same instant have made room', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const sent: string[] = []
  const command = createCommands({
    ready: () => undefined,
    // As node-redis does with what it has not written yet: given up, it is out of the client's hands.
    send: ([name = ''], _key, signal) =>
      new Promise((_resolve, reject) => {
        sent.push(name)
        signal().addEventListener('abort', () => reject(signal().reason))
      }),
  })
  const outcomes = (count: number, name: string) =>
    Promise.all(Array.from({ length: count }, () => command([name], 'x', undefined, 100).catch((e) => e.outcome)))
  const [first, waiting] = [outcomes(1_000, 'GET'), outcomes(50, 'SET')]
  await vi.advanceTimersByTimeAsync(100)
  expect(new Set(await first)).toEqual(new Set(['unknown']))
  expect(new Set(await waiting)).toEqual(new Set(['not_run']))
  expect(new Set(sent)).toEqual(new Set(['GET']))
})

it.each([
  ['answered', () => Promise.resolve(null)],
  ['refused', () => Promise.reject(new Error('cut'))],
])('is given up where its caller leaves while it is sent, and is %s to nobody', async (_, reply) => {
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  onTestFinished(() => void process.off('unhandledRejection', unhandled))
  const caller = new AbortController()
  const command = createCommands({
    ready: () => undefined,
    send: () => {
      caller.abort('gone')
      return reply()
    },
  })
  await expect(command(['GET'], 'x', { signal: caller.signal }, 100)).rejects.toBe('gone')
  await new Promise(setImmediate)
  expect(unhandled).not.toHaveBeenCalled()
})
