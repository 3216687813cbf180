/** The set of inspectors that a router is built from, and the capabilities that it shows. */
import * as z from 'zod'
import type { BrowserWindowRegistryInspector } from './browser-windows.js'
import type { RegistryInspector } from './connections.js'
import type { ContextRegistryInspector } from './contexts.js'
import type { DeduplicatorInspector } from './deduplicator.js'
import type { DeliveryInspector, DeploymentMode } from './delivery.js'
import type { HistoryInspector } from './history.js'
import { type JsonObject, JsonRecord } from './json.js'
import type { RpcInspector } from './rpc.js'

/** Whatever of the seven families a host can look into; an absent one makes its routes answer 501. */
export interface Inspectors {
  history?: HistoryInspector | undefined
  registry?: RegistryInspector | undefined
  rpc?: RpcInspector | undefined
  deduplicator?: DeduplicatorInspector | undefined
  contextRegistry?: ContextRegistryInspector | undefined
  browserWindowRegistry?: BrowserWindowRegistryInspector | undefined
  delivery?: DeliveryInspector | undefined
}

/** Which installation answers. The id is an operational routing identity: check it before drawing conclusions. */
export interface Deployment {
  id: string | null
  mode: DeploymentMode
}

/** The capabilities object. True: a route can ask. It is not a readiness check and promises no entries. */
export const Capabilities = z.object({
  history: z.boolean(),
  registry: z.boolean(),
  rpc: z.boolean(),
  deduplicator: z.boolean(),
  context_registry: z.boolean(),
  browser_window_registry: z.boolean(),
  delivery: z.boolean(),
  history_list_streams: z.boolean(),
  registry_connection_history: z.boolean(),
  rpc_instance_check: z.boolean(),
  dedup_per_user: z.boolean(),
  extensions: JsonRecord,
})
export type Capabilities = z.infer<typeof Capabilities>

/** The name of one capability, as a route's `needs` and a 501 answer give it. */
export type Capability = Exclude<keyof Capabilities, 'extensions'>

/** What `inspectors` can be asked. Looks at the objects, calls nothing. */
export function capabilitiesOf(inspectors: Inspectors, extensions: JsonObject = {}): Capabilities {
  const { history, registry, rpc, deduplicator, contextRegistry, browserWindowRegistry, delivery } = inspectors
  const offers = (method: unknown) => typeof method === 'function'
  return {
    history: Boolean(history),
    registry: Boolean(registry),
    rpc: Boolean(rpc),
    deduplicator: Boolean(deduplicator),
    context_registry: Boolean(contextRegistry),
    browser_window_registry: Boolean(browserWindowRegistry),
    delivery: Boolean(delivery),
    history_list_streams: offers(history?.listStreams),
    registry_connection_history: offers(registry?.listConnectionHistory),
    rpc_instance_check: offers(rpc?.checkInstance),
    dedup_per_user: offers(deduplicator?.userSummary),
    extensions,
  }
}

/** A facility together with the inspector that looks through at it. */
export type Inspected<Facility, Inspector> = Facility & { readonly inspector: Inspector }
