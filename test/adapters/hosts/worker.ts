/** A worker's `export default`: the recipe without an adapter. */
import { both } from '../handlers.js'

export default { fetch: both }
