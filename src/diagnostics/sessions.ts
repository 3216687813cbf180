/** The routes of the sessions family. */
import { pageSchema, withItems } from '../contract/page.js'
import { SessionFilter, SessionRow } from '../contract/sessions.js'
import { withLife } from '../views/cooperative.js'
import { lastPage, SESSION } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

export const SESSION_ROUTES = routeSection('sessions', 'Sessions of cooperative sites.', [
  diagnosticsRoute({
    path: '/sessions',
    operationId: 'listSessions',
    summary: 'Sessions, and whether their connectors are connected; the newest first unless `order` says otherwise',
    needs: ['sessions'],
    alsoReads: ['registry', 'subscriptions'],
    scopable: true,
    page: 'paged',
    order: 'newest',
    query: SessionFilter,
    response: pageSchema(SessionRow),
    example: lastPage(SESSION),
    read: async ({ sessions, ...others }, { filter, page }, view) => {
      const listed = await sessions.listSessions(filter, page, view.ctx)
      return withItems(listed, await withLife(listed.items, others, view))
    },
  }),
  diagnosticsRoute({
    path: '/sessions/{session_id}',
    operationId: 'getSession',
    record: true,
    summary: 'One session',
    needs: ['sessions'],
    scopable: true,
    response: SessionRow,
    example: SESSION,
    read: async ({ sessions, ...others }, { params }, view) => {
      const session = await sessions.getSession(params.session_id, view.ctx)
      return session && (await withLife([session], others, view))[0]
    },
  }),
])
