/** Astro with a server adapter: `src/pages/ops/[...path].js`. */

// #region mount
import { answer } from '../../../relay.mjs'

export const prerender = false
export const GET = async ({ request }) => (await answer(request)) ?? new Response(null, { status: 404 })
// #endregion
