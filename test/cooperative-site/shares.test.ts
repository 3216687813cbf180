import { expect, it } from 'vitest'
import { createShares } from '../../src/cooperative-site/actions/shares.js'

it('frees a slot once, however often it is released', () => {
  const shares = createShares(2, 'calls')
  const [first] = [shares.take('ann'), shares.take('ann')]
  for (const _ of [1, 2]) first()
  expect(shares.size).toBe(1)
  shares.take('ann')
  expect(() => shares.take('ann')).toThrow(expect.objectContaining({ code: 'capacity_exceeded' }))
})
