/** Next.js, App Router: `app/ops/[...path]/route.js`. */

// #region mount
import { answer } from '../../../relay.mjs'

export const runtime = 'nodejs'
export const dynamic = 'force-dynamic'
export const GET = async (request) => (await answer(request)) ?? new Response(null, { status: 404 })
export const HEAD = GET
// #endregion
