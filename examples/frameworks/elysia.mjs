/** Elysia: a plugin, `app.use(ops)`. */

// #region mount
import { answer } from './relay.mjs'

export const ops = (app) =>
  app.get('/ops/*', async ({ request }) => (await answer(request)) ?? new Response(null, { status: 404 }))
// #endregion
