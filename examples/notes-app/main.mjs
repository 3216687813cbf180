/**
 * A cooperative application: a process of its own that keeps notes in a file, works for the live host as an ordinary
 * client, says what has changed, and handles what viewers ask. Its control server lets other local programs say so too.
 */
import { startCooperativeSiteControlServer } from 'relayscope/control-server'
import { createCooperativeSitePublisher, createRemoteSiteRegistry } from 'relayscope/publisher'
import { runRelayClient } from '../live-host/client/relay-client.mjs'
import { createNoteActions } from './actions.mjs'
import { openNotes } from './notes.mjs'

const { RELAY_URLS, RELAY_TICKET, RELAY_CLIENT_ID, NOTES_FILE, CONTROL_TOKEN } = process.env
const baseUrls = RELAY_URLS.split(' ')
const SITE = {
  site_id: 'notes',
  mode: 'cooperative',
  title: 'Shared notes',
  event_names: ['note_changed'],
  action_names: ['list_notes', 'add_note', 'archive_note'],
  capability_profile: { action_invocation: true },
}

const leave = new AbortController()
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => leave.abort())
// The host has exited, so this process has no more work.
process.on('disconnect', () => process.exit(0))

// The one connection that there is.
let relay

// #region runtime
// Publisher and registry use the node and the identity of the application's one connection.
const runtime = {
  get baseUrl() {
    return new URL('/cooperative', relay?.baseUrl ?? baseUrls[0]).href
  },
  identity() {
    if (!relay || relay.signal.aborted) throw new Error('not connected')
    return { client_id: relay.client_id, instance_id: relay.instance_id }
  },
  authorize: (headers) => headers.set('authorization', `Bearer ${relay?.token}`),
}
const sites = createRemoteSiteRegistry({ runtime })
const publisher = createCooperativeSitePublisher({ runtime })
// #endregion

/** An event is a notification: one that is lost costs a refetch, never a note. */
async function say(data) {
  await publisher.publish(SITE.site_id, 'note_changed', data, { signal: leave.signal }).catch(complain)
}

function complain(error) {
  if (!leave.signal.aborted) console.error('notes:', error.message)
}

const notes = await openNotes(NOTES_FILE)
const actions = createNoteActions({ notes, changed: (id) => say({ id }) })

async function handle(parameters, { command: { action, command_id }, signal }) {
  // The signal aborts when the viewer disconnects: the host sends a `cancel` frame.
  const outcome = await actions.execute({ action, parameters, correlation_id: command_id }, { signal })
  // A repeated call, perhaps from an earlier connection: the first one has its own reply, and this one gets none.
  if (outcome === undefined) throw Object.assign(new Error('repeated'), { isRepeated: true })
  if (outcome.ok) return outcome.result
  throw Object.assign(new Error(outcome.error.code), { said: outcome.error })
}

// #region control
const control = await startCooperativeSiteControlServer({ token: CONTROL_TOKEN, sites, publisher })
// #endregion
process.send?.({ control_url: control.url })

await runRelayClient({
  baseUrls,
  ticket: RELAY_TICKET,
  hello: {
    client_id: RELAY_CLIENT_ID,
    client_type: 'web',
    actions: actions.names.map((name) => ({ name })),
    metadata: { pid: process.pid },
  },
  handlers: Object.fromEntries(actions.names.map((name) => [name, handle])),
  signal: leave.signal,
  async live(connected) {
    relay = connected
    try {
      await sites.put({ ...SITE, owner: relay.user_id })
      // Viewers that came before the application was ready reload.
      await say({ id: null })
    } catch (error) {
      complain(error)
    }
  },
})
await control.close()
process.disconnect?.()
