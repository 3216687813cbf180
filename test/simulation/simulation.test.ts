/**
 * Holds whole deployments, simulated, to the rules of the documents, over seeds that the text of the library decides: each
 * change tries other histories, and a failure comes back.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleLibrary, type Load } from './bundle.js'
import { configOf, type StoreKind } from './config.js'
import { DEFECTS } from './defects.js'
import { type Outcome, runHistory } from './history.js'
import { missingForStore, type Store, startStore } from './store.js'

const missing = missingForStore()
const needs = missing.length > 0 ? ` (needs ${missing.join(' and ')})` : ''

/** Twenty times what it takes on a quiet machine: a test that gave up would leave its history running into the next one. */
const TIMEOUT = { timeout: 900_000 }

let load: Load
let text = ''
let store: Store | null = null
beforeAll(async () => {
  load = await bundleLibrary((bundled) => {
    text = bundled
    return bundled
  })
  store = missing.length === 0 ? await startStore() : null
})
afterAll(() => store?.stop())

const run = (kind: StoreKind, seed: number): Promise<Outcome> =>
  runHistory(configOf(seed, kind), load, kind === 'memory' ? null : store)

const violationsOf = ({ history }: Outcome) => history.violations.map(({ rule, about }) => `${rule}: ${about}`)

it('has the text that each planted defect replaces', () => {
  expect(DEFECTS.filter(({ from }) => !text.includes(from)).map(({ name }) => name)).toEqual([])
})

describe('a simulated deployment', TIMEOUT, () => {
  const counts: [StoreKind, number][] = [
    ['memory', 20],
    ['redis', 3],
    ['redis-sharded', 3],
  ]
  for (const [kind, count] of counts)
    it.skipIf(kind !== 'memory' && missing.length > 0)(
      `breaks no rule over ${kind}, in ${count} histories${kind === 'memory' ? '' : needs}`,
      async () => {
        const begin = Number.parseInt(load.digest.slice(0, 7), 16)
        for (let seed = begin; seed < begin + count; seed++)
          expect(violationsOf(await run(kind, seed)), `npm run simulate -- --store ${kind} --seed ${seed}`).toEqual([])
      },
    )
})
