/** The host as a relay between one local application and its viewers. */
import { createCooperativeSiteRouter, createSessionPolicy } from 'relayscope/cooperative-site'
import { openViewers } from './viewers.mjs'

/** Where the relay's routes begin. */
export const COOPERATIVE_PREFIX = '/cooperative'

/**
 * Opens a session for `app`, `{ site_id, session_id, user_id, client_id }`, before the application is there, so that a
 * viewer who comes early, or back after a restart, waits instead of being turned away. Until the application declares
 * its site itself, the site can be watched and nothing can be invoked.
 */
export async function openCooperation({
  facilities,
  connector,
  authenticateHost,
  app,
  guests,
  viewersFile,
  closeTimeoutMs,
}) {
  const { site_id, session_id, user_id, client_id } = app
  const { sites, sessions, subscriptions, bus, ingest } = facilities
  // #region session
  await sites.put({ site_id, owner: user_id, mode: 'observe' })
  // The same session after a restart and on every node: pages of viewers know its id, and a shared store may still have it.
  if ((await sessions.get(session_id))?.state !== 'active') {
    await sessions.open({ site_id, owner: user_id, connector: { user_id, client_id } })
    await sessions.activate(session_id)
  }
  // #endregion
  const viewers = await openViewers({ file: viewersFile, name: guests, sessions, session_id })

  const router = createCooperativeSiteRouter({
    sites,
    sessions,
    connector,
    bus,
    ingest,
    subscriptions,
    policy: createSessionPolicy({ sessions }),
    authenticateHost,
    authenticateViewer: viewers.authenticate,
    prefix: COOPERATIVE_PREFIX,
    closeTimeoutMs,
  })
  return { router, viewers }
}
