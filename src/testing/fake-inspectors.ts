/** Inspectors over plain data, for the unit tests of hosts: no facility, no clock of their own, no test runner. */

import type { Inspectors } from '../contract/families.js'
import { checkOptions } from '../contract/options.js'
import { type FakeWorld, KITS, WORLD } from './kits.js'

/**
 * Inspectors that answer from `world`, read at each call: a test may change the arrays between requests.
 *
 * @example
 * const inspectors = createFakeInspectors({ connections: [{ user_id: 'ada' }], delivery: {} })
 * const router = createDiagnosticsRouter({ inspectors, auth: noopAuth() })
 */
export function createFakeInspectors(world: FakeWorld = {}): Inspectors {
  checkOptions(world, WORLD)
  const fakes = Object.entries(KITS).map(([name, { fake }]) => [name, fake(world)])
  return Object.fromEntries(fakes.filter(([, fake]) => fake !== undefined))
}
