/** One call of an action, without the relay router. */

// #region part
import * as site from 'relayscope/cooperative-site'

const sites = site.createSiteRegistry()
const sessions = site.createSessionRegistry({ sites })
const actions = { action_names: ['archive_note'], capability_profile: { action_invocation: true } }
await sites.put({ site_id: 'notes', owner: 'grace', mode: 'cooperative', ...actions })
const application = { user_id: 'grace', client_id: 'notes-app' }
const { session_id } = await sessions.open({ site_id: 'notes', owner: 'grace', connector: application })
await sessions.activate(session_id)

// Replace it by `createDispatchConnector(facilities)`, or by your own way to the application.
const connector = { call: async (_client, { parameters }) => ({ archived: parameters.id }) }
const policy = site.createSessionPolicy({ sessions })
const gate = site.createCooperativeActionGate({ sites, sessions, policy, connector })
const call = { session_id, viewer: { user_id: 'grace' }, action: 'archive_note', parameters: { id: 7 } }
const { status, result } = await gate.invoke(call)
console.log(status, result) // succeeded { archived: 7 }
// #endregion
