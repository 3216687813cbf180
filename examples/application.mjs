/**
 * An application in its own process, for the relay of cooperative-site.mjs: start that one, then this one, with
 * `node examples/application.mjs`. It takes over from the application in the relay's process, because it has the same id.
 */

// #region application
import { ActionFailure, createActionHandlers } from 'relayscope/cooperative-site'
import { connectApplication } from 'relayscope/publisher'
import * as z from 'zod'

const notes = new Map(['tea', 'salt'].map((text, id) => [id, text]))
const actions = createActionHandlers()
actions.handle('list_notes', { parameters: z.strictObject({}) }, () => [...notes])
actions.handle('archive_note', { parameters: z.strictObject({ id: z.int() }) }, async ({ id }) => {
  if (!notes.delete(id)) throw new ActionFailure('no_such_note', 'The note is already archived')
  application.publish('note_changed', { id }).catch(console.error)
  return { id }
})

const application = await connectApplication(process.env.RELAY_URL ?? 'http://127.0.0.1:8080/relay', {
  clientId: 'notes-app',
  site: { site_id: 'notes', event_names: ['note_changed'] }, // its actions are those above
  actions,
  headers: { authorization: `Bearer ${process.env.RELAY_TOKEN ?? 'token-of-grace'}` },
})
console.log('connected')

process.once('SIGTERM', () => application.close()) // sends the results of running actions first
await application.closed // rejects if the relay refuses it for good, or if another instance takes over
// #endregion
