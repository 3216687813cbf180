/** A set of inspectors: whose it is, and where one comes from. */
import type { DeploymentMode } from './delivery.js'

/** Which installation answers. The id is an operational routing identity: check it before drawing conclusions. */
export interface Deployment {
  id: string | null
  mode: DeploymentMode
}

/** A facility together with the inspector that looks through at it. */
export type Inspected<Facility, Inspector> = Facility & { readonly inspector: Inspector }
