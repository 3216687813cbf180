/** A worker's `export default`: the recipe without an adapter. */
import { subject } from '../subject.js'

export default { fetch: subject }
