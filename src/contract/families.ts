/** The families that a router can look into, once: capabilities, sources, components, fakes and suites are made of this. */
import { BROWSER_WINDOW_FAMILY, type BrowserWindowRegistryInspector } from './browser-windows.js'
import { having, OBJECT, optionsOf, type Rule } from './checks.js'
import { CONNECTION_FAMILY, type RegistryInspector } from './connections.js'
import { CONTEXT_FAMILY, type ContextRegistryInspector } from './contexts.js'
import { DEDUPLICATOR_FAMILY, type DeduplicatorInspector } from './deduplicator.js'
import { DELIVERY_FAMILY, type DeliveryInspector } from './delivery.js'
import type { Family } from './family.js'
import { HISTORY_FAMILY, type HistoryInspector } from './history.js'
import { type Awaitable, type InspectionContext, PAGE_OF_ONE } from './page.js'
import { RPC_FAMILY, type RpcInspector } from './rpc.js'
import { SESSION_FAMILY, type SessionInspector } from './sessions.js'
import { SITE_FAMILY, type SiteInspector } from './sites.js'
import { SUBSCRIPTION_FAMILY, type SubscriptionInspector } from './subscriptions.js'

/** Whatever of the families a host can look into; an absent one makes its routes answer 501. */
export interface Inspectors {
  registry?: RegistryInspector | undefined
  contextRegistry?: ContextRegistryInspector | undefined
  browserWindowRegistry?: BrowserWindowRegistryInspector | undefined
  rpc?: RpcInspector | undefined
  history?: HistoryInspector | undefined
  deduplicator?: DeduplicatorInspector | undefined
  delivery?: DeliveryInspector | undefined
  sites?: SiteInspector | undefined
  sessions?: SessionInspector | undefined
  subscriptions?: SubscriptionInspector | undefined
}

/** The name of a family among the inspectors. */
export type FamilyName = keyof Inspectors

/** The inspectors of all families, each of them there. */
export type Present = { [Name in FamilyName]: NonNullable<Inspectors[Name]> }

/** The families, in the order in which answers name their sources. */
export const FAMILIES = {
  registry: CONNECTION_FAMILY,
  contextRegistry: CONTEXT_FAMILY,
  browserWindowRegistry: BROWSER_WINDOW_FAMILY,
  rpc: RPC_FAMILY,
  history: HISTORY_FAMILY,
  deduplicator: DEDUPLICATOR_FAMILY,
  delivery: DELIVERY_FAMILY,
  sites: SITE_FAMILY,
  sessions: SESSION_FAMILY,
  subscriptions: SUBSCRIPTION_FAMILY,
} as const satisfies { [Name in FamilyName]: Family<Present[Name]> }

type Probe<Inspector> = (inspector: Inspector, ctx: InspectionContext) => Awaitable<unknown>

/** A history that does not list its streams is asked for one that is none. */
const NO_STREAM = { stream: 'users/-/-', limit: 1 }

/** The cheapest question to each. */
export const PROBES: { readonly [Name in FamilyName]: Probe<Present[Name]> } = {
  registry: (registry, ctx) => registry.listConnections({}, PAGE_OF_ONE, ctx),
  contextRegistry: (contexts, ctx) => contexts.listContexts({}, PAGE_OF_ONE, ctx),
  browserWindowRegistry: (windows, ctx) => windows.listBrowserWindows({}, PAGE_OF_ONE, ctx),
  rpc: (rpc, ctx) => rpc.listPending({}, PAGE_OF_ONE, ctx),
  history: (history, ctx) => history.listStreams?.({}, PAGE_OF_ONE, ctx) ?? history.readMessages(NO_STREAM, ctx),
  deduplicator: (deduplicator, ctx) => deduplicator.summary(ctx),
  delivery: (delivery, ctx) => delivery.listNodes(PAGE_OF_ONE, ctx),
  sites: (sites, ctx) => sites.listSites({}, PAGE_OF_ONE, ctx),
  sessions: (sessions, ctx) => sessions.listSessions({}, PAGE_OF_ONE, ctx),
  subscriptions: (subscriptions, ctx) => subscriptions.listSubscriptions({}, PAGE_OF_ONE, ctx),
}

/** What compositions call the facilities of the families. */
export type FacilityName = (typeof FAMILIES)[FamilyName]['facility']

/** What each inspector that a host gives must be. */
export const INSPECTOR_RULES = Object.fromEntries(
  Object.entries(FAMILIES).map(([name, { methods }]) => [name, anInspector(Object.keys(methods))]),
) as Record<FamilyName, Rule>

const SAID = 'inspectors (spread memoryComposition(facilities) or redisComposition(options))'

/** The option `inspectors`. It refuses facilities, which are easily passed instead. */
export const INSPECTORS: Rule = {
  ...optionsOf(INSPECTOR_RULES),
  said: SAID,
  test: (value) => OBJECT.test(value) && !Object.hasOwn(value as object, 'dispatcher'),
}

/** A facility has an inspector, but isn't one. */
function anInspector(methods: string[]): Rule {
  const said = `an inspector with ${methods.map((name) => `${name}()`).join(', ')} (the \`inspector\` of a facility)`
  return { ...having(...methods), said }
}

/** The families by their names, for whoever goes through all of them. */
export const familyEntries = (): [FamilyName, Family][] => Object.entries(FAMILIES) as [FamilyName, Family][]
