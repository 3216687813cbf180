/** One message of an application, without the relay router. */

// #region part
import { ingestCooperativeSiteMessage } from 'relayscope/cooperative-site'
import { createMemoryFacilities } from 'relayscope/memory'

const { connections, sites, bus, ingest, close } = createMemoryFacilities()
await sites.put({ site_id: 'notes', owner: 'grace', mode: 'cooperative', event_names: ['note_changed'] })
const client = { client_id: 'notes-app', instance_id: 'run-1' }
await connections.connect({ ...client, user_id: 'grace', client_type: 'console' })

const host = { user_id: 'grace' } // your authentication decides this, never the message
const payload = { name: 'note_changed', data: { id: 7 } }
const message = { ...client, message_id: 'm-1', kind: 'event', stream: 'sites/notes/events', payload }
const answer = await ingestCooperativeSiteMessage({ ingest, sites, bus }, { host, message })
console.log(answer.published, answer.stream) // true users/grace/sites/notes/events
await close()
// #endregion
