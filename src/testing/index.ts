/**
 * The public API of `relayscope/testing`: fakes for unit tests of hosts, and contract suites. Imports no test runner.
 */
export { type BrowserWindowWorld, browserWindowRegistryContract } from './browser-windows.js'
export { type ConnectionWorld, type FakeChurn, registryContract } from './connections.js'
export { type ContextWorld, contextRegistryContract } from './contexts.js'
export {
  type SessionWorld,
  type SiteWorld,
  type SubscriptionWorld,
  sessionContract,
  siteContract,
  subscriptionContract,
} from './cooperative.js'
export { type DeduplicatorWorld, deduplicatorContract } from './deduplicator.js'
export { deliveryContract } from './delivery.js'
export type { DeliveryWorld, FakeCommand, FakeDeliveryMinute } from './delivery-fake.js'
export type { ContractCase, ContractOutcome, Partly, TestContext } from './expect.js'
export { type HistoryWorld, historyContract } from './history.js'
export { createFakeInspectors, type FakeWorld, inspectorContract, type KnownEntries } from './kits.js'
export type { MakeInspector } from './lists.js'
export { type RpcWorld, rpcContract } from './rpc.js'
