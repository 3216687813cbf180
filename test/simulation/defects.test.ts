/** Plants a defect at a time in a simulated deployment: each must be found. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleLibrary } from './bundle.js'
import { configOf } from './config.js'
import { DEFECTS, plant } from './defects.js'
import { runHistory } from './history.js'
import { missingForStore, type Store, startStore } from './store.js'

const missing = missingForStore()
const needs = missing.length > 0 ? ` (needs ${missing.join(' and ')})` : ''

let store: Store | null = null
beforeAll(async () => {
  store = missing.length === 0 ? await startStore() : null
})
afterAll(() => store?.stop())

// A test that gave up would leave its history running into the next one.
describe('a simulated deployment', { timeout: 900_000 }, () => {
  for (const defect of DEFECTS)
    it.skipIf(defect.store !== 'memory' && missing.length > 0)(
      `finds the planted defect “${defect.name}”${defect.store === 'memory' ? '' : needs}`,
      async () => {
        const library = await bundleLibrary(plant(defect))
        const over = defect.profile ? { profile: defect.profile } : {}
        const found = new Set<string>()
        // Any change of the library moves the histories that find it: `seed` is where one did.
        for (let seed = defect.seed; seed < defect.seed + 80 && !defect.rules.some((rule) => found.has(rule)); seed++) {
          const config = configOf(seed, defect.store, over)
          const { history } = await runHistory(config, library, defect.store === 'memory' ? null : store)
          for (const { rule } of history.violations) found.add(rule)
        }
        expect(defect.rules.filter((rule) => found.has(rule))).not.toEqual([])
      },
    )
})
