/** From live objects of this process to what a router is built from. */
import type { DeliveryInspector } from '../../contract/delivery.js'
import type { Deployment, Inspectors } from '../../contract/inspectors.js'

/** Any of the facilities, each with its inspector; an absent one is an absent inspector. */
export interface InspectedFacilities {
  connections?: { readonly inspector: NonNullable<Inspectors['registry']> } | undefined
  history?: { readonly inspector: NonNullable<Inspectors['history']> } | undefined
  rpc?: { readonly inspector: NonNullable<Inspectors['rpc']> } | undefined
  deduplicator?: { readonly inspector: NonNullable<Inspectors['deduplicator']> } | undefined
  contexts?: { readonly inspector: NonNullable<Inspectors['contextRegistry']> } | undefined
  browserWindows?: { readonly inspector: NonNullable<Inspectors['browserWindowRegistry']> } | undefined
  dispatcher?: { readonly inspector: NonNullable<Inspectors['delivery']> } | undefined
}

/**
 * The inspectors of exactly these objects, and the deployment in direct mode. Nothing is copied: mounted in another
 * process it would be a view of other objects. `deploymentId` is the routing identity that answers carry, `null` for
 * none.
 *
 * @example
 * createDiagnosticsRouter({ ...memoryComposition({ connections, history }), auth })
 */
export function memoryComposition(
  facilities: InspectedFacilities,
  { deploymentId = null }: { deploymentId?: string | null } = {},
): { inspectors: Inspectors; deployment: Deployment } {
  const { connections, history, rpc, deduplicator, contexts, browserWindows, dispatcher } = facilities
  return {
    inspectors: {
      history: history?.inspector,
      registry: connections?.inspector,
      rpc: rpc?.inspector,
      deduplicator: deduplicator?.inspector,
      contextRegistry: contexts?.inspector,
      browserWindowRegistry: browserWindows?.inspector,
      delivery: dispatcher && withDeployment(dispatcher.inspector, deploymentId),
    },
    deployment: { id: deploymentId, mode: 'direct' },
  }
}

/** `delivery` whose summary names the composition's deployment, so that one answer does not contradict another. */
function withDeployment(delivery: DeliveryInspector, deployment_id: string | null): DeliveryInspector {
  if (deployment_id === null) return delivery
  return {
    summary: async (ask) => ({ ...(await delivery.summary(ask)), deployment_id }),
    listNodes: (page, ask) => delivery.listNodes(page, ask),
    listTenants: (page, ask) => delivery.listTenants(page, ask),
    status: (key, ask) => delivery.status(key, ask),
  }
}
