/** Nuxt and Nitro 2: `server/routes/ops/[...path].js`. Nitro imports the two functions of h3 by itself. */

// #region mount
import { answer } from '../../../relay.mjs'

export default defineEventHandler(
  async (event) => (await answer(toWebRequest(event))) ?? new Response(null, { status: 404 }),
)
// #endregion
