/** Waiting that ends when a signal aborts: once, with one listener, and leaving nothing behind. */
import { describe, expect, it, vi } from 'vitest'
import { onAbort, raceAbort } from '../../src/internal/async/abort.js'

const never = new Promise<never>(() => {})
const away = new Error('away')

/** A controller whose signal counts the listeners that it has. */
function counted() {
  const controller = new AbortController()
  const { signal } = controller
  const add = vi.spyOn(signal, 'addEventListener')
  const remove = vi.spyOn(signal, 'removeEventListener')
  return { controller, signal, listeners: () => add.mock.calls.length - remove.mock.calls.length, added: add }
}

describe('raceAbort', () => {
  it('returns the result of the work without an abort, and leaves no listener', async () => {
    const { signal, listeners } = counted()
    expect(await raceAbort(7, signal)).toBe(7)
    expect(await raceAbort(Promise.resolve(8), signal)).toBe(8)
    await expect(raceAbort(Promise.reject(new Error('its own')), signal)).rejects.toThrow('its own')
    await Promise.resolve()
    expect(listeners()).toBe(0)
  })

  it.each(['before', 'during'])('rejects with the reason of a signal that aborts %s', async (when) => {
    const { controller, signal } = counted()
    if (when === 'before') controller.abort(away)
    const waits = raceAbort(never, signal)
    controller.abort(away)
    await expect(waits).rejects.toBe(away)
  })

  it('ignores an abort after the work has settled', async () => {
    const { controller, signal } = counted()
    const worked = raceAbort(Promise.resolve('done'), signal)
    await worked
    controller.abort(away)
    expect(await worked).toBe('done')
  })

  it('handles a late rejection of the work', async () => {
    const { controller, signal } = counted()
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const fails: (() => void)[] = []
    const work = () => new Promise<never>((_, reject) => fails.push(() => reject(new Error('late'))))
    const waits = [work(), work()].map((working, i) => {
      if (i === 1) controller.abort(away)
      return raceAbort(working, signal).catch(() => {})
    })
    for (const fail of fails) fail()
    await Promise.all(waits)
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })
})

describe('an abort listener', () => {
  it('shares one event listener, which is removed with the last of them', () => {
    const { signal, listeners, added } = counted()
    const forgets = Array.from({ length: 20 }, () => onAbort(signal, () => {}))
    expect(added).toHaveBeenCalledTimes(1)
    for (const forget of forgets) forget()
    for (const forget of forgets) forget()
    expect(listeners()).toBe(0)
  })

  it('is called once, also when it is added after all others were removed', () => {
    const { controller, signal } = counted()
    const act = vi.fn()
    onAbort(signal, act)()
    onAbort(signal, act)
    controller.abort()
    controller.abort()
    expect(act).toHaveBeenCalledTimes(1)
  })

  it('is called immediately for an aborted signal, and never without a signal', () => {
    const act = vi.fn()
    onAbort(AbortSignal.abort(), act)
    expect(act).toHaveBeenCalledTimes(1)
    onAbort(undefined, act)
    expect(act).toHaveBeenCalledTimes(1)
  })

  it('is not called for a listener that an earlier listener removes during the abort', () => {
    const { controller, signal } = counted()
    const act = vi.fn()
    let forget = () => {}
    onAbort(signal, () => forget())
    forget = onAbort(signal, act)
    controller.abort()
    expect(act).not.toHaveBeenCalled()
  })
})
