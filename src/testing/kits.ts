/** What each family gives to tests: a fake made of plain data, and the suite that holds an inspector to its contract. */

import { checkOptions, LIST, OBJECT, optionsOf, type Shape } from '../contract/checks.js'
import type { CommandKey } from '../contract/delivery.js'
import type { FamilyName, Inspectors, Present } from '../contract/families.js'
import type { Awaitable } from '../contract/page.js'
import { type BrowserWindowWorld, browserWindowRegistryContract, fakeBrowserWindows } from './browser-windows.js'
import { type ConnectionWorld, fakeRegistry, registryContract } from './connections.js'
import { type ContextWorld, contextRegistryContract, fakeContexts } from './contexts.js'
import { type DeduplicatorWorld, deduplicatorContract, fakeDeduplicator } from './deduplicator.js'
import { type DeliveryWorld, deliveryContract, fakeDelivery } from './delivery.js'
import type { ContractCase } from './expect.js'
import { fakeHistory, type HistoryWorld, historyContract } from './history.js'
import type { MakeInspector } from './lists.js'
import { fakeRpc, type RpcWorld, rpcContract } from './rpc.js'
import { fakeSessions, type SessionWorld, sessionContract } from './sessions.js'
import { fakeSites, type SiteWorld, siteContract } from './sites.js'
import { fakeSubscriptions, type SubscriptionWorld, subscriptionContract } from './subscriptions.js'

/**
 * What the fakes know. An absent key is an absent inspector or operation; `[]` and `{}` are present and empty.
 *
 * Every field of a record may be left out. Ids of people and programs are then `user-1`, `client-1`, `instance-1`; a
 * record's own id is numbered by its place in the list (`context-2`); times are `2026-01-01T00:00:00.000Z`; counts are 0;
 * what can be unknown is `null`.
 */
export interface FakeWorld
  extends ConnectionWorld,
    ContextWorld,
    BrowserWindowWorld,
    RpcWorld,
    HistoryWorld,
    DeduplicatorWorld,
    DeliveryWorld,
    SiteWorld,
    SessionWorld,
    SubscriptionWorld {}

/** What the inspectors hold and no list of theirs shows. */
export interface KnownEntries {
  /** Retained commands. */
  commands?: readonly CommandKey[]
  /** Users with entries in the deduplicator. */
  users?: readonly string[]
}

/** What a world may hold. */
const WORLD: Shape<FakeWorld> = {
  connections: LIST,
  actions: LIST,
  connectionEvents: LIST,
  connectionChurn: LIST,
  contexts: LIST,
  browserWindows: LIST,
  calls: LIST,
  callSummary: OBJECT,
  instances: LIST,
  messages: LIST,
  streams: LIST,
  deduplicator: optionsOf({ summary: OBJECT, users: LIST }),
  delivery: optionsOf({ summary: OBJECT, nodes: LIST, tenants: LIST, mailboxes: LIST, statuses: LIST }),
  sites: LIST,
  sessions: LIST,
  subscriptions: LIST,
}

/** What one family gives. */
interface Kit<Inspector> {
  fake(world: FakeWorld): Inspector | undefined
  contract(make: MakeInspector<Inspector>, known: KnownEntries): ContractCase[]
}

const KITS: { [Name in FamilyName]: Kit<Present[Name]> } = {
  registry: { fake: fakeRegistry, contract: registryContract },
  contextRegistry: { fake: fakeContexts, contract: contextRegistryContract },
  browserWindowRegistry: { fake: fakeBrowserWindows, contract: browserWindowRegistryContract },
  rpc: { fake: fakeRpc, contract: rpcContract },
  history: { fake: fakeHistory, contract: historyContract },
  deduplicator: { fake: fakeDeduplicator, contract: deduplicatorContract },
  delivery: { fake: fakeDelivery, contract: deliveryContract },
  sites: { fake: fakeSites, contract: siteContract },
  sessions: { fake: fakeSessions, contract: sessionContract },
  subscriptions: { fake: fakeSubscriptions, contract: subscriptionContract },
}

// The contract suite of a whole set of inspectors, as a composition of one's own hands it to the router.

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

// Inspectors over plain data, for the unit tests of hosts: no facility, no clock of their own, no test runner.

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
