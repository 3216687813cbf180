/** The families that a router can look into, once: capabilities, sources, components, fakes and suites are made of this. */
import type * as z from 'zod'
import { BROWSER_WINDOW_FAMILY, type BrowserWindowRegistryInspector } from './browser-windows.js'
import { CONNECTION_FAMILY, type RegistryInspector } from './connections.js'
import { CONTEXT_FAMILY, type ContextRegistryInspector } from './contexts.js'
import { DEDUPLICATOR_FAMILY, type DeduplicatorInspector } from './deduplicator.js'
import { DELIVERY_FAMILY, type DeliveryInspector, DeploymentMode } from './delivery.js'
import type { Family } from './family.js'
import { HISTORY_FAMILY, type HistoryInspector } from './history.js'
import { custom, defineOptions, type Input, madeBy, textOrNull } from './options.js'
import { type Awaitable, type InspectionContext, PAGE_OF_ONE } from './page.js'
import { RPC_FAMILY, type RpcInspector } from './rpc.js'
import { SESSION_FAMILY, type SessionInspector } from './sessions.js'
import { SITE_FAMILY, type SiteInspector } from './sites.js'
import { SUBSCRIPTION_FAMILY, type SubscriptionInspector } from './subscriptions.js'

/** The inspectors of a host; the routes of an absent one return 501. */
export interface Inspectors {
  /** Connections. */
  registry?: RegistryInspector | undefined
  /** Contexts: tabs and flows. */
  contextRegistry?: ContextRegistryInspector | undefined
  /** Browser windows. */
  browserWindowRegistry?: BrowserWindowRegistryInspector | undefined
  /** Calls: pending and recently ended ones. */
  rpc?: RpcInspector | undefined
  /** Retained messages. */
  history?: HistoryInspector | undefined
  /** Claims of message ids. */
  deduplicator?: DeduplicatorInspector | undefined
  /** Commands, scopes and nodes. */
  delivery?: DeliveryInspector | undefined
  /** Cooperative sites. */
  sites?: SiteInspector | undefined
  /** Sessions of cooperative sites. */
  sessions?: SessionInspector | undefined
  /** Event streams of viewers. */
  subscriptions?: SubscriptionInspector | undefined
}

/** The name of a family among the inspectors. */
export type FamilyName = keyof Inspectors

/** All inspectors, none of them optional. */
export type Present = { [Name in FamilyName]: NonNullable<Inspectors[Name]> }

/** The families, in the order in which responses name their sources. */
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

/** Probe with a stream that cannot exist, for a history that does not list its streams. */
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

/** All families with their names. */
export const familyEntries = (): [FamilyName, Family][] => Object.entries(FAMILIES) as [FamilyName, Family][]

/** The inspector of each family, as an option. A facility has an inspector, but isn't one. */
export const INSPECTOR_OPTIONS = Object.fromEntries(
  familyEntries().map(([name, { methods }]) => [
    name,
    madeBy('facility.inspector', ...Object.keys(methods)).optional(),
  ]),
)

/** The option `inspectors`. It refuses facilities, which are easily passed instead. */
export const INSPECTORS: z.ZodType<Inspectors, Inspectors> = custom<Inspectors>(
  'an object of inspectors, as in ...memoryComposition(facilities)',
  (value) => typeof value === 'object' && value !== null && !Object.hasOwn(value, 'dispatcher'),
).pipe(defineOptions(INSPECTOR_OPTIONS) as never)

// A set of inspectors: whose it is, and where one comes from.

/** The deployment that answers. Check its id before you draw conclusions: it's an operational routing identity. */
export const Deployment = defineOptions({
  /** Id of the deployment; `null` if it has none. */
  id: textOrNull(),
  /** `direct`: the objects of this process; `shared_store`: those of all processes that share a store. */
  mode: custom<DeploymentMode>(
    DeploymentMode.options.map((mode) => `"${mode}"`).join(' or '),
    (value) => DeploymentMode.safeParse(value).success,
  ),
})
export interface Deployment extends Input<typeof Deployment> {}

/** A facility together with the inspector that looks through at it. */
export type Inspected<Facility, Inspector> = Facility & { readonly inspector: Inspector }
