/** The host as a relay between one local application and its viewers. */
import {
  createCooperativeSiteEventBus,
  createCooperativeSiteRouter,
  createSessionPolicy,
  createSessionRegistry,
  createSiteRegistry,
} from 'relayscope/cooperative-site'
import { openViewers } from './viewers.mjs'

/** Where the relay's routes begin. */
export const COOPERATIVE_PREFIX = '/cooperative'

/**
 * Opens a session for `app` (`{ site_id, user_id, client_id }`) before the application is there, so that a viewer who
 * comes early, or back after a restart, waits instead of being turned away. Until the application declares its site
 * itself, the site can be watched and nothing can be invoked.
 */
export async function openCooperation({ facilities, connector, authenticateHost, app, viewersFile }) {
  const { site_id, user_id, client_id } = app
  // #region relay
  const sites = createSiteRegistry()
  // The same after a restart: a viewer's page still knows it.
  const sessions = createSessionRegistry({ sites, newId: () => `${site_id}-room` })
  await sites.put({ site_id, owner: user_id, mode: 'observe' })
  const { session_id } = await sessions.open({ site_id, owner: user_id, connector: { user_id, client_id } })
  await sessions.activate(session_id)
  const viewers = await openViewers({ file: viewersFile, sessions, session_id })

  const router = createCooperativeSiteRouter({
    sites,
    sessions,
    connector,
    bus: createCooperativeSiteEventBus(),
    ingest: facilities.ingest,
    policy: createSessionPolicy({ sessions }),
    authenticateHost,
    authenticateViewer: viewers.authenticate,
    prefix: COOPERATIVE_PREFIX,
  })
  // #endregion
  return { router, viewers, session_id }
}
