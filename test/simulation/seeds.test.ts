/** Repeats simulated histories that broke a rule of the documents once. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleLibrary, type Load } from './bundle.js'
import { configOf, type StoreKind } from './config.js'
import { type Outcome, runHistory } from './history.js'
import { missingForStore, type Store, startStore } from './store.js'

const missing = missingForStore()
const needs = missing.length > 0 ? ` (needs ${missing.join(' and ')})` : ''

/** Histories that broke a rule once. */
const SEEDS: [StoreKind, number][] = [
  ['memory', 1013],
  ['redis', 105],
  ['redis-sharded', 1072],
  ['redis-sharded', 1082],
  ['redis-sharded', 1193],
  ['redis-sharded', 173_246_638],
  ['redis-sharded', 743_054_055],
]

/** Twenty times what it takes on a quiet machine: a test that gave up would leave its history running into the next one. */
const TIMEOUT = { timeout: 900_000 }

let load: Load
let store: Store | null = null
beforeAll(async () => {
  load = await bundleLibrary()
  store = missing.length === 0 ? await startStore() : null
})
afterAll(() => store?.stop())

const run = (kind: StoreKind, seed: number): Promise<Outcome> =>
  runHistory(configOf(seed, kind), load, kind === 'memory' ? null : store)

const violationsOf = ({ history }: Outcome) => history.violations.map(({ rule, about }) => `${rule}: ${about}`)

describe('a simulated deployment that broke a rule', TIMEOUT, () => {
  for (const [kind, seed] of SEEDS)
    it.skipIf(kind !== 'memory' && missing.length > 0)(
      `breaks no rule over ${kind} with seed ${seed}${kind === 'memory' ? '' : needs}`,
      async () => expect(violationsOf(await run(kind, seed))).toEqual([]),
    )

  it.skipIf(missing.length > 0)(`is the same for the same seed${needs}`, async () => {
    const [first, second] = [await run('redis', 105), await run('redis', 105)]
    expect(second.digest).toBe(first.digest)
    expect(first.world.commands).toBeGreaterThan(100)
    expect((await run('redis', 106)).digest).not.toBe(first.digest)
  })
})
