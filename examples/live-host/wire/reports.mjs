/** What clients report about themselves: their contexts and windows, each theirs alone. */
import { json, WireError } from './http.mjs'

export function createReports({ contexts, browserWindows }) {
  async function close(own, id, registry) {
    if (!own.delete(id)) throw new WireError(404, 'not_reported_here')
    return json({ closed: await registry.close(id) })
  }

  return {
    /** The identity in the report is the session's, whatever the body says. */
    async context(session, context_id, { status, ownership, window_id }) {
      const { user_id, client_id, instance_id, client_type } = session
      const identity = { context_id, user_id, client_id, instance_id, client_type }
      const context = await contexts.report({ ...identity, status, ownership, window_id })
      session.contexts.add(context_id)
      return json(context)
    },

    async window(session, window_id, body) {
      const { focused, type, state, incognito, tab_count } = body
      const identity = { window_id, user_id: session.user_id, client_id: session.client_id }
      const window = await browserWindows.report({ ...identity, focused, type, state, incognito, tab_count })
      session.windows.add(window_id)
      return json(window)
    },

    closeContext: (session, id) => close(session.contexts, id, contexts),
    closeWindow: (session, id) => close(session.windows, id, browserWindows),

    /** Everything that the session has reported ends with it. */
    async closeAll(session) {
      for (const id of session.contexts) await contexts.close(id)
      for (const id of session.windows) await browserWindows.close(id)
    },
  }
}
