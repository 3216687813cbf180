/** A set of inspectors: whose it is, and where one comes from. */
import { DeploymentMode } from './delivery.js'
import { custom, defineOptions, type Input, textOrNull } from './options.js'

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
