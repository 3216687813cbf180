/** Who waits for the store: in order, while there is a link, within a bound, and gone at once who gives up. */
import { describe, expect, it, vi } from 'vitest'
import { createSemaphore } from '../../src/internal/async/semaphore.js'

const isReady = () => undefined

describe('permits', () => {
  it('are granted in order of arrival, up to the limit', () => {
    const semaphore = createSemaphore(2, 100, isReady)
    const started: number[] = []
    for (let i = 0; i < 5; i++) semaphore.acquire(1, () => started.push(i))
    expect(started).toEqual([0, 1])
    semaphore.release()
    expect(started).toEqual([0, 1, 2])
    semaphore.release()
    semaphore.release()
    expect(started).toEqual([0, 1, 2, 3, 4])
  })

  it('are not taken by a waiter that declines', () => {
    const semaphore = createSemaphore(1, 100, isReady)
    const started: string[] = []
    semaphore.acquire(1, () => {})
    semaphore.acquire(1, () => false)
    semaphore.acquire(1, () => started.push('next'))
    semaphore.acquire(1, () => started.push('last'))
    semaphore.release()
    expect(started).toEqual(['next'])
  })

  it.each([
    ['first', 0],
    ['in the middle', 2],
    ['last', 4],
  ])('are given up by a waiter %s without changing the order of the others', (_, leaver) => {
    const semaphore = createSemaphore(1, 100, isReady)
    semaphore.acquire(1, () => {})
    const started: number[] = []
    const waiting = Array.from({ length: 5 }, (_, i) => semaphore.acquire(1, () => started.push(i)))
    const waiter = waiting[leaver]
    if (waiter) semaphore.leave(waiter)
    if (waiter) semaphore.leave(waiter)
    for (let i = 0; i < 5; i++) semaphore.release()
    expect(started).toEqual([0, 1, 2, 3, 4].filter((i) => i !== leaver))
  })

  it('are reserved for waiters up to a total bound, which frees up when one leaves', () => {
    const semaphore = createSemaphore(1, 10, isReady)
    semaphore.acquire(10, () => {})
    const waiter = semaphore.acquire(6, () => {})
    expect(semaphore.acquire(5, () => {})).toBeUndefined()
    if (waiter) semaphore.leave(waiter)
    expect(semaphore.acquire(10, () => {})).toBeDefined()
  })

  it('wait for the link with a single reaction, and only while it is down', async () => {
    let up = () => {}
    const link = new Promise<void>((resolve) => {
      up = resolve
    })
    const reactions = vi.spyOn(link, 'then')
    let isUp = false
    const semaphore = createSemaphore(100, 100, () => (isUp ? undefined : link))
    const started: number[] = []
    for (let i = 0; i < 50; i++) semaphore.acquire(1, () => started.push(i))
    expect(started).toEqual([])
    expect(reactions).toHaveBeenCalledTimes(1)
    isUp = true
    up()
    await link
    expect(started).toHaveLength(50)
  })
})
