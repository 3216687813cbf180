/** Nitro 3: `routes/ops/[...path].js`. Its events hold a `Request`. */

// #region mount
import { answer } from '../../relay.mjs'

export default async ({ req }) => (await answer(req)) ?? new Response(null, { status: 404 })
// #endregion
