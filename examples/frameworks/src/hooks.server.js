/** SvelteKit: `src/hooks.server.js`. */

// #region mount
import { answer } from '../relay.mjs'

export const handle = async ({ event, resolve }) => (await answer(event.request)) ?? resolve(event)
// #endregion
