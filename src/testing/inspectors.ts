/** The contract suite of a whole set of inspectors, as a composition of one's own hands it to the router. */
import type { CommandKey } from '../contract/delivery.js'
import type { Inspectors } from '../contract/inspectors.js'
import type { Awaitable } from '../contract/page.js'
import { browserWindowRegistryContract } from './browser-windows.js'
import { registryContract } from './connections.js'
import { contextRegistryContract } from './contexts.js'
import { deduplicatorContract } from './deduplicator.js'
import { deliveryContract } from './delivery.js'
import type { ContractCase } from './expect.js'
import { historyContract } from './history.js'
import { rpcContract } from './rpc.js'

/** What the inspectors hold and no list of theirs shows. */
export interface KnownEntries {
  /** Retained commands. */
  commands?: readonly CommandKey[]
  /** Users with entries in the deduplicator. */
  users?: readonly string[]
}

/**
 * The contract suites of all inspectors that `make` gives; an absent one passes. The suites are relational: they hold
 * for whatever entries there are, as long as these stay as they are while a case runs.
 *
 * @example
 * for (const { name, run } of inspectorContract(() => myInspectors)) test(name, run)
 */
export function inspectorContract(make: () => Awaitable<Inspectors>, known: KnownEntries = {}): ContractCase[] {
  const of =
    <Name extends keyof Inspectors>(name: Name) =>
    async () =>
      (await make())[name]
  const suites: [family: keyof Inspectors, cases: ContractCase[]][] = [
    ['registry', registryContract(of('registry'))],
    ['history', historyContract(of('history'))],
    ['rpc', rpcContract(of('rpc'))],
    ['deduplicator', deduplicatorContract(of('deduplicator'), known)],
    ['contextRegistry', contextRegistryContract(of('contextRegistry'))],
    ['browserWindowRegistry', browserWindowRegistryContract(of('browserWindowRegistry'))],
    ['delivery', deliveryContract(of('delivery'), known)],
  ]
  return suites.flatMap(([family, cases]) => cases.map(({ name, run }) => ({ name: `${family}: ${name}`, run })))
}
