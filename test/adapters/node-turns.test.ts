/** Turns for connections that may wait. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { createTurns } from '../../src/adapters/node-turns.js'

it('go on behind one that throws', () => {
  const rounds: (() => void)[] = []
  vi.stubGlobal('setImmediate', (round: () => void) => rounds.push(round))
  onTestFinished(() => void vi.unstubAllGlobals())
  const turn = createTurns()
  const later = vi.fn()
  turn(() => {
    throw new Error('of this one alone')
  })
  turn(later)
  expect(rounds).toHaveLength(1)
  expect(() => rounds.shift()?.()).toThrow('of this one alone')
  rounds.shift()?.()
  expect(later).toHaveBeenCalledOnce()
  expect(rounds).toEqual([])
})
