import { describe, expect, it } from 'vitest'
import { ExpiryQueue, unqueued } from '../../src/memory/table/expiry-queue.js'

const create = () => {
  const queue = new ExpiryQueue<ReturnType<typeof unqueued> & { name: string }>()
  const entry = (name: string, at: number) => {
    const made = { name, ...unqueued() }
    queue.push(made, at)
    return made
  }
  const sweep = (until: number) => {
    const names: string[] = []
    const caughtUp = queue.sweep(until, ({ name }) => names.push(name))
    return { names, caughtUp }
  }
  return { queue, entry, sweep }
}

describe('an expiry queue', () => {
  it('returns due entries, least recently touched first', () => {
    const { queue, entry, sweep } = create()
    const a = entry('a', 1)
    entry('b', 2)
    entry('c', 3)
    queue.touch(a, 4)
    expect(sweep(1)).toEqual({ names: [], caughtUp: true })
    expect(sweep(3)).toEqual({ names: ['b', 'c'], caughtUp: true })
    expect(queue.oldest).toBe(a)
    expect(sweep(4)).toEqual({ names: ['a'], caughtUp: true })
    expect([queue.size, queue.oldest]).toEqual([0, null])
  })

  it('inserts an entry at the position of its time', () => {
    const { entry, queue, sweep } = create()
    for (const [name, at] of Object.entries({ d: 4, b: 2, a: 1, e: 5, c: 3, also_c: 3 })) entry(name, at)
    expect(queue.oldest?.name).toBe('a')
    expect(sweep(3)).toEqual({ names: ['a', 'b', 'c', 'also_c'], caughtUp: true })
    expect(sweep(9).names).toEqual(['d', 'e'])
  })

  it('forgets a removed entry, wherever it was', () => {
    const { queue, entry, sweep } = create()
    const [a, , c, , e] = ['a', 'b', 'c', 'd', 'e'].map((name) => entry(name, 1))
    for (const taken of [a, c, e]) if (taken) queue.remove(taken)
    entry('f', 1)
    expect(queue.size).toBe(3)
    expect(sweep(9).names).toEqual(['b', 'd', 'f'])
  })

  it('sweeps at most ten thousand entries per call and reports that more are due', () => {
    const { queue, entry, sweep } = create()
    for (let i = 0; i < 10_001; i++) entry(`${i}`, 0)
    expect(sweep(0).caughtUp).toBe(false)
    expect(queue.size).toBe(1)
    expect(sweep(0)).toEqual({ names: ['10000'], caughtUp: true })
  })
})
