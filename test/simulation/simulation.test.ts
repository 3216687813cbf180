/**
 * Holds whole deployments, simulated, to the rules of the documents: over seeds that the text of the library decides, so that
 * each change tries other histories and a failure comes back, and over seeds that broke a rule.
 */
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

const run = (kind: StoreKind, seed: number, library = load): Promise<Outcome> =>
  runHistory(configOf(seed, kind), library, kind === 'memory' ? null : store)

const violationsOf = ({ history }: Outcome) => history.violations.map(({ rule, about }) => `${rule}: ${about}`)

describe('a simulated deployment', TIMEOUT, () => {
  it.each([
    ['memory', 60],
    ['redis', 15],
    ['redis-sharded', 15],
  ] as const)('breaks no rule over %s, in %i histories', async (kind, count) => {
    if (kind !== 'memory' && !store) return
    const begin = Number.parseInt(load.digest.slice(0, 7), 16)
    for (let seed = begin; seed < begin + count; seed++) {
      const outcome = await run(kind, seed)
      expect(violationsOf(outcome), `npm run simulate -- --store ${kind} --seed ${seed}`).toEqual([])
    }
  })

  it.each(
    SEEDS.filter(([kind]) => kind === 'memory' || missing.length === 0),
  )('breaks no rule over %s with seed %i, which broke one', async (kind, seed) => {
    expect(violationsOf(await run(kind, seed))).toEqual([])
  })

  it.skipIf(missing.length > 0)(`is the same for the same seed${needs}`, async () => {
    const [first, second] = [await run('redis', 105), await run('redis', 105)]
    expect(second.digest).toBe(first.digest)
    expect(first.world.commands).toBeGreaterThan(100)
    expect((await run('redis', 106)).digest).not.toBe(first.digest)
  })
})
