/** The test support of each family: a fake over plain data, and a contract suite for inspectors. */

import { BrowserWindowAnswer } from '../internal/contract/browser-windows.js'
import { unknownName } from '../internal/contract/checks.js'
import {
  ActionObservationAnswer,
  ChurnMinuteAnswer,
  ClientEventAnswer,
  ConnectionAnswer,
  ConnectionEventAnswer,
} from '../internal/contract/connections.js'
import { ContextAnswer } from '../internal/contract/contexts.js'
import { DeduplicatorSummaryAnswer, DeduplicatorUserSummaryAnswer } from '../internal/contract/deduplicator.js'
import {
  type CommandKey,
  DeliveryMailboxAnswer,
  DeliveryMinuteAnswer,
  DeliveryNodeAnswer,
  DeliveryStatusAnswer,
  DeliverySummaryAnswer,
  DeliveryTenantAnswer,
} from '../internal/contract/delivery.js'
import type { FamilyName, Inspectors, Present } from '../internal/contract/families.js'
import { HistoryMessageAnswer, HistoryStreamAnswer } from '../internal/contract/history.js'
import {
  defineOptions,
  IDENTITY,
  list,
  object,
  optionsOf,
  readOptions,
  type Schema,
} from '../internal/contract/options.js'
import type { Awaitable } from '../internal/contract/page.js'
import { EndedCallAnswer, PendingCallAnswer, RpcSummaryAnswer } from '../internal/contract/rpc.js'
import { SessionRowAnswer } from '../internal/contract/sessions.js'
import { SiteRowAnswer } from '../internal/contract/sites.js'
import { SubscriptionRowAnswer } from '../internal/contract/subscriptions.js'
import { type BrowserWindowWorld, browserWindowRegistryContract, fakeBrowserWindows } from './browser-windows.js'
import { type ConnectionWorld, fakeRegistry, registryContract } from './connections.js'
import { type ContextWorld, contextRegistryContract, fakeContexts } from './contexts.js'
import {
  fakeSessions,
  fakeSites,
  fakeSubscriptions,
  type SessionWorld,
  type SiteWorld,
  type SubscriptionWorld,
  sessionContract,
  siteContract,
  subscriptionContract,
} from './cooperative.js'
import { type DeduplicatorWorld, deduplicatorContract, fakeDeduplicator } from './deduplicator.js'
import { deliveryContract } from './delivery.js'
import { type DeliveryWorld, fakeDelivery } from './delivery-fake.js'
import type { ContractCase } from './expect.js'
import { fakeHistory, type HistoryWorld, historyContract } from './history.js'
import type { MakeInspector } from './lists.js'
import { fakeRpc, type RpcWorld, rpcContract } from './rpc.js'

/**
 * Data of the fakes. A missing key means that the inspector or operation is not implemented; `[]` and `{}` mean that it
 * exists and is empty.
 *
 * Every field of a record is optional. Ids of users, clients and instances default to `user-1`, `client-1`,
 * `instance-1`; a record's own id is numbered by its position in the list (`context-2`); timestamps default to
 * `2026-01-01T00:00:00.000Z`, counts to 0, and nullable fields to `null`. A field that is given as `null` is not known.
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

/** Entries of the inspectors that they cannot list. */
export interface KnownEntries {
  /** Retained commands. */
  commands?: readonly CommandKey[]
  /** Users with entries in the deduplicator. */
  users?: readonly string[]
}

const many = list().optional()
const one = object().optional()

/** Types of the keys of a world. */
const WORLD = defineOptions({
  connections: many,
  actions: many,
  connectionEvents: many,
  clientEvents: many,
  connectionChurn: many,
  contexts: many,
  browserWindows: many,
  calls: many,
  endedCalls: many,
  callSummary: one,
  instances: many,
  messages: many,
  streams: many,
  deduplicator: optionsOf(defineOptions({ summary: one, users: many })),
  delivery: optionsOf(
    defineOptions({ summary: one, nodes: many, tenants: many, mailboxes: many, churn: many, statuses: many }),
  ),
  sites: many,
  sessions: many,
  subscriptions: many,
} satisfies Record<keyof FakeWorld, Schema>)

/** The fields of a record. */
interface Fields {
  readonly shape: object
}
/** The records of a world, and fields of a fake that its records do not have. */
const RECORDS: Record<Exclude<keyof FakeWorld, 'deduplicator' | 'delivery'>, Fields> = {
  connections: ConnectionAnswer,
  actions: ActionObservationAnswer,
  connectionEvents: ConnectionEventAnswer,
  clientEvents: ClientEventAnswer,
  connectionChurn: { shape: { ...ChurnMinuteAnswer.shape, node_id: true, client_type: true } },
  contexts: ContextAnswer,
  browserWindows: BrowserWindowAnswer,
  calls: PendingCallAnswer,
  endedCalls: EndedCallAnswer,
  callSummary: RpcSummaryAnswer,
  // Tests give the connections themselves.
  instances: ConnectionAnswer,
  messages: HistoryMessageAnswer,
  streams: HistoryStreamAnswer,
  sites: SiteRowAnswer,
  sessions: SessionRowAnswer,
  subscriptions: SubscriptionRowAnswer,
}
const DEDUPLICATOR: Record<keyof NonNullable<FakeWorld['deduplicator']>, Fields> = {
  summary: DeduplicatorSummaryAnswer,
  users: DeduplicatorUserSummaryAnswer,
}
const DELIVERY: Record<keyof NonNullable<FakeWorld['delivery']>, Fields> = {
  summary: DeliverySummaryAnswer,
  nodes: DeliveryNodeAnswer,
  tenants: DeliveryTenantAnswer,
  mailboxes: DeliveryMailboxAnswer,
  churn: { shape: { ...DeliveryMinuteAnswer.shape, node_id: true } },
  statuses: { shape: { ...DeliveryStatusAnswer.shape, action: true } },
}

/** Throws a TypeError for a field that the records of `world` do not have. */
function checkRecords(world: object, records: Readonly<Record<string, Fields>>, path = ''): void {
  for (const [name, given] of Object.entries(world)) {
    const valid = records[name] && Object.keys(records[name].shape)
    if (!valid) continue
    for (const record of [given ?? []].flat())
      for (const field of Object.keys(record))
        if (!valid.includes(field) && !IDENTITY.includes(field))
          throw new TypeError(unknownName('field', `${path}${name}.`, field, valid))
  }
}

/** Test support of one family. */
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

// The contract suite of a whole set of inspectors, as a custom composition passes it to the router.

/**
 * Returns the contract suites of all inspectors that `make` returns; cases of missing ones resolve to `not tested`. The
 * suites accept any entries, as long as these do not change during a case.
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

// Inspectors over plain data, for unit tests of hosts: no facilities, no clock, no test runner.

/**
 * Creates inspectors that return the data of `world`, which is read at each call: a test may change the arrays between
 * requests.
 *
 * @throws TypeError for an unknown key, an unknown field of a record, or a wrong type in `world`.
 * @example
 * const inspectors = createFakeInspectors({ connections: [{ user_id: 'ada' }], delivery: {} })
 * const router = createDiagnosticsRouter({ inspectors, auth: noopAuth() })
 */
export function createFakeInspectors(world: FakeWorld = {}): Inspectors {
  readOptions(WORLD, world)
  checkRecords(world, RECORDS)
  checkRecords(world.deduplicator ?? {}, DEDUPLICATOR, 'deduplicator.')
  checkRecords(world.delivery ?? {}, DELIVERY, 'delivery.')
  const fakes = Object.entries(KITS).map(([name, { fake }]) => [name, fake(world)])
  return Object.fromEntries(fakes.filter(([, fake]) => fake !== undefined))
}
