/** From live objects of this process to what a router is built from. */

import type { DeliveryInspector } from '../../contract/delivery.js'
import { FAMILIES, INSPECTOR_OPTIONS, type Inspectors } from '../../contract/families.js'
import type { Deployment } from '../../contract/inspectors.js'
import { custom, defineOptions, type Input, readOptions, type Schema, textOrNull } from '../../contract/options.js'
import type { InspectionContext } from '../../contract/page.js'

/** A facility, as far as it is looked at; absent is an absent inspector. */
export type InspectedBy<Inspector> = { readonly inspector: NonNullable<Inspector> } | undefined

/** Any of the facilities, each with its inspector. Written out, because a declaration cannot name the table of families. */
export interface InspectedFacilities {
  connections?: InspectedBy<Inspectors['registry']>
  contexts?: InspectedBy<Inspectors['contextRegistry']>
  browserWindows?: InspectedBy<Inspectors['browserWindowRegistry']>
  rpc?: InspectedBy<Inspectors['rpc']>
  history?: InspectedBy<Inspectors['history']>
  deduplicator?: InspectedBy<Inspectors['deduplicator']>
  dispatcher?: InspectedBy<Inspectors['delivery']>
  sites?: InspectedBy<Inspectors['sites']>
  sessions?: InspectedBy<Inspectors['sessions']>
  subscriptions?: InspectedBy<Inspectors['subscriptions']>
}

const anything = custom<unknown>('any value', () => true).optional()

/** The facilities, and what else `createMemoryFacilities` returns. */
const Facilities = defineOptions({
  ...Object.fromEntries(
    Object.entries(FAMILIES).map(([name, { facility }]) => [facility, facilityWith(INSPECTOR_OPTIONS[name] as Schema)]),
  ),
  bus: anything,
  ingest: anything,
  close: anything,
})

function facilityWith(inspector: Schema): Schema {
  const hasInspector = (value: unknown) => {
    const given = (value as { inspector?: unknown } | null)?.inspector
    return given !== undefined && inspector.safeParse(given).success
  }
  return custom('a facility with an inspector', hasInspector).optional()
}

export const MemoryCompositionOptions = defineOptions({
  /** Deployment id that responses carry; `null` for none. @default null */
  deploymentId: textOrNull().default(null),
})
export interface MemoryCompositionOptions extends Input<typeof MemoryCompositionOptions> {}

/**
 * Returns the inspectors of exactly these objects, and the deployment in direct mode. Give it only what your host
 * writes to: a family that is left out is `null` and 501 in the answers, one that nobody writes to is a false zero.
 * Nothing is copied: mounted in another process it would be a view of other objects. `deploymentId` is the routing identity
 * that answers carry, `null` for none.
 *
 * @example
 * createDiagnosticsRouter({ ...memoryComposition({ connections, history }), auth })
 */
export function memoryComposition(
  facilities: InspectedFacilities,
  options: MemoryCompositionOptions = {},
): { inspectors: Inspectors; deployment: Deployment } {
  readOptions(Facilities, facilities)
  const { deploymentId } = readOptions(MemoryCompositionOptions, options)
  const inspectors: Inspectors = Object.fromEntries(
    Object.entries(FAMILIES).map(([name, { facility }]) => [name, facilities[facility]?.inspector]),
  )
  const { delivery } = inspectors
  return {
    inspectors: { ...inspectors, delivery: delivery && withDeployment(delivery, deploymentId) },
    deployment: { id: deploymentId, mode: 'direct' },
  }
}

/** `delivery` whose summary names the composition's deployment, so that one answer does not contradict another. */
function withDeployment(delivery: DeliveryInspector, deployment_id: string | null): DeliveryInspector {
  if (deployment_id === null) return delivery
  const summary = async (ctx: InspectionContext) => ({ ...(await delivery.summary(ctx)), deployment_id })
  // Whatever else it offers it offers itself: a host's may be an instance of a class.
  return new Proxy(delivery, {
    get(target, name) {
      if (name === 'summary') return summary
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
