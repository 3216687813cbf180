/** React Router 7 and Remix: the resource route `app/routes/ops.$.js`, without a component. */

// #region mount
import { answer } from '../../relay.mjs'

export const loader = async ({ request }) => (await answer(request)) ?? new Response(null, { status: 404 })
// #endregion
