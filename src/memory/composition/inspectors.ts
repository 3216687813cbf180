/** Inspectors of this process's facilities, for a router. */

import { withDeployment } from '../../internal/contract/delivery-rules.js'
import { type Deployment, FAMILIES, INSPECTOR_OPTIONS, type Inspectors } from '../../internal/contract/families.js'
import {
  custom,
  defineOptions,
  type Input,
  readOptions,
  type Schema,
  textOrNull,
} from '../../internal/contract/options.js'

/** A facility with its inspector; `undefined` if it is not used. */
export type InspectedBy<Inspector> = { readonly inspector: NonNullable<Inspector> } | undefined

/**
 * Any of the facilities, each with its inspector. Listed explicitly, because a declaration cannot refer to the table of
 * families.
 */
export interface InspectedFacilities {
  /** Connection registry. */
  connections?: InspectedBy<Inspectors['registry']>
  /** Context registry. */
  contexts?: InspectedBy<Inspectors['contextRegistry']>
  /** Browser-window registry. */
  browserWindows?: InspectedBy<Inspectors['browserWindowRegistry']>
  /** RPC correlator. */
  rpc?: InspectedBy<Inspectors['rpc']>
  /** Message history. */
  history?: InspectedBy<Inspectors['history']>
  /** Deduplicator. */
  deduplicator?: InspectedBy<Inspectors['deduplicator']>
  /** Command dispatcher. */
  dispatcher?: InspectedBy<Inspectors['delivery']>
  /** Registry of cooperative sites. */
  sites?: InspectedBy<Inspectors['sites']>
  /** Session registry. */
  sessions?: InspectedBy<Inspectors['sessions']>
  /** Registry of viewer streams. */
  subscriptions?: InspectedBy<Inspectors['subscriptions']>
}

const anything = custom<unknown>('any value', () => true).optional()

/** The facilities, and the other members that `createMemoryFacilities` returns. */
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

/** Options of `memoryComposition`. */
export const MemoryCompositionOptions = defineOptions({
  /** Deployment id in responses; `null` for none. @default null */
  deploymentId: textOrNull().default(null),
})
/** Options of `memoryComposition`. */
export interface MemoryCompositionOptions extends Input<typeof MemoryCompositionOptions> {}

/**
 * Returns the inspectors of the given facilities, and the deployment in direct mode. Pass only facilities that your
 * host writes to: a missing family is `null` in responses and its routes return 501, but an unused one shows zeros that
 * are wrong. Nothing is copied: the inspectors only see this process. `deploymentId` is the deployment id in responses,
 * `null` for none.
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
