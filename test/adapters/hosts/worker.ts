/** A worker's `export default`: the recipe without an adapter. */
import { both } from '../carried.js'

export default { fetch: both }
