/** Who waits for the store: in order, while there is a link, within a bound, and gone at once who gives up. */
import { describe, expect, it, vi } from 'vitest'
import { createTurns } from '../../src/async/turns.js'

const isReady = () => undefined

describe('turns', () => {
  it('are taken in the order of arrival, as many at a time as may be', () => {
    const turns = createTurns(2, 100, isReady)
    const started: number[] = []
    for (let i = 0; i < 5; i++) turns.wait(1, () => started.push(i))
    expect(started).toEqual([0, 1])
    turns.end()
    expect(started).toEqual([0, 1, 2])
    turns.end()
    turns.end()
    expect(started).toEqual([0, 1, 2, 3, 4])
  })

  it.each([
    ['first', 0],
    ['in the middle', 2],
    ['last', 4],
  ])('are left by whoever waits %s, without changing the order of the others', (_, leaver) => {
    const turns = createTurns(1, 100, isReady)
    turns.wait(1, () => {})
    const started: number[] = []
    const waiting = Array.from({ length: 5 }, (_, i) => turns.wait(1, () => started.push(i)))
    const turn = waiting[leaver]
    if (turn) turns.leave(turn)
    if (turn) turns.leave(turn)
    for (let i = 0; i < 5; i++) turns.end()
    expect(started).toEqual([0, 1, 2, 3, 4].filter((i) => i !== leaver))
  })

  it('are kept for no more than the bound of what all who wait may come to, whoever has left', () => {
    const turns = createTurns(1, 10, isReady)
    turns.wait(10, () => {})
    const turn = turns.wait(6, () => {})
    expect(turns.wait(5, () => {})).toBeUndefined()
    if (turn) turns.leave(turn)
    expect(turns.wait(10, () => {})).toBeDefined()
  })

  it('wait for the link with one reaction in all, and only while it is away', async () => {
    let up = () => {}
    const link = new Promise<void>((resolve) => {
      up = resolve
    })
    const reactions = vi.spyOn(link, 'then')
    let isUp = false
    const turns = createTurns(100, 100, () => (isUp ? undefined : link))
    const started: number[] = []
    for (let i = 0; i < 50; i++) turns.wait(1, () => started.push(i))
    expect(started).toEqual([])
    expect(reactions).toHaveBeenCalledTimes(1)
    isUp = true
    up()
    await link
    expect(started).toHaveLength(50)
  })
})
