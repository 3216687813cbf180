/** The routes of the sessions family. */
import { pageOf, withItems } from '../contract/page.js'
import { SessionFilter, SessionRow } from '../contract/sessions.js'
import { withLife } from '../views/cooperative.js'
import { lastPage, SESSION } from './examples.js'
import { diagnosticsRoute, routesAbout } from './route.js'

export const SESSION_ROUTES = routesAbout('sessions', 'Sessions of cooperative sites.', [
  diagnosticsRoute({
    path: '/sessions',
    operationId: 'listSessions',
    summary: 'Sessions, and whether their connectors are there',
    needs: ['sessions'],
    alsoReads: ['registry', 'subscriptions'],
    narrows: true,
    page: 'paged',
    query: SessionFilter,
    response: pageOf(SessionRow),
    example: lastPage(SESSION),
    read: async ({ sessions, ...others }, { filter, page }, view) => {
      const listed = await sessions.listSessions(filter, page, view.ask)
      return withItems(listed, await withLife(listed.items, others, view))
    },
  }),
  diagnosticsRoute({
    path: '/sessions/{session_id}',
    operationId: 'getSession',
    record: true,
    summary: 'One session',
    needs: ['sessions'],
    narrows: true,
    response: SessionRow,
    example: SESSION,
    read: async ({ sessions, ...others }, { params }, view) => {
      const session = await sessions.getSession(params.session_id, view.ask)
      return session && (await withLife([session], others, view))[0]
    },
  }),
])
