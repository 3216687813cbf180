/** That no factory takes a bound on trust, nor an option that it does not know: nothing is ever more than `NaN`, and a name that is misspelt sets nothing. */
import { describe, expect, it } from 'vitest'
import { makersOf } from './factories.js'
import { numberDefaults, numberOptions } from './options.js'

/** Declarations that no host fills in, or whose numbers are of one call and refused by its answer. */
const OTHERS = ['InvokeOptions', 'ShareBounds']

/** What no bound may be; a port may be 0, which is a free one. */
const WRONG = [Number.NaN, 0, -1, 1.5, '5', Number.POSITIVE_INFINITY]
const wrongFor = (option: string) => (option === 'port' ? WRONG.filter((value) => value !== 0) : WRONG)

const declared = numberOptions()

it('there is a factory to try for each declaration of options', () => {
  expect([...declared.keys()].filter((name) => makersOf(name).length === 0).sort()).toEqual(OTHERS)
})

describe.each(
  [...declared.keys()].map((name) => [name, makersOf(name)] as const),
)('the numbers of %s', (name, makers) => {
  it.each(declared.get(name) ?? [])('%s is a bound or is refused', async (option) => {
    for (const make of makers)
      for (const value of wrongFor(option)) {
        const made = async () => make({ [option]: value })
        await expect(made(), `${String(value)}`).rejects.toThrow(
          new RegExp(`^Invalid option "(\\w+\\.)?${option}": expected an integer from`),
        )
        await expect(made()).rejects.toThrow(RangeError)
      }
  })
})

it('a comment says the default that holds', () => {
  const defaults = numberDefaults()
  expect(defaults.length).toBeGreaterThan(30)
  expect(defaults.filter(({ said, held }) => said !== held)).toEqual([])
})

/** One call, and no factory. */
const CALLS = ['IngestSiteMessageDeps']

it.each(
  [...declared.keys()].filter((name) => ![...OTHERS, ...CALLS].includes(name)),
)('%s are refused with a name that there is not', async (name) => {
  for (const make of makersOf(name))
    await expect((async () => make({ unheardOf: 1 }))()).rejects.toThrow(
      /^Unknown option "(\w+\.)?unheardOf"\. Valid options: \w+/,
    )
})
