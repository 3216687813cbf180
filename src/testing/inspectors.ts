/** The contract suite of a whole set of inspectors, as a composition of one's own hands it to the router. */
import type { FamilyName, Inspectors, Present } from '../contract/families.js'
import type { Awaitable } from '../contract/page.js'
import type { ContractCase } from './expect.js'
import { KITS, type KnownEntries } from './kits.js'

/**
 * The contract suites of all inspectors that `make` gives; what is absent is told as `not tested`. The suites are relational: they hold
 * for whatever entries there are, as long as these stay as they are while a case runs.
 *
 * @example
 * for (const { name, run } of inspectorContract(() => myInspectors)) test(name, run)
 */
export function inspectorContract(make: () => Awaitable<Inspectors>, known: KnownEntries = {}): ContractCase[] {
  function suiteOf<Name extends FamilyName>(family: Name): ContractCase[] {
    const cases = KITS[family].contract(async () => {
      const inspectors: { [Key in FamilyName]?: Present[Key] | undefined } = await make()
      return inspectors[family]
    }, known)
    return cases.map(({ name, run }) => ({ name: `${family}: ${name}`, run }))
  }
  return (Object.keys(KITS) as FamilyName[]).flatMap((family) => suiteOf(family))
}
