/** The routes of the sites family. */
import { pageSchema, withItems } from '../contract/page.js'
import { SiteFilter, SiteRow } from '../contract/sites.js'
import { withSessions } from '../views/cooperative.js'
import { lastPage, SITE } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

export const SITE_ROUTES = routeSection('sites', 'Cooperative sites: what applications have declared.', [
  diagnosticsRoute({
    path: '/sites',
    operationId: 'listSites',
    summary: 'Sites, and when each last published an event',
    needs: ['sites'],
    alsoReads: ['sessions'],
    scopable: true,
    page: 'paged',
    query: SiteFilter,
    response: pageSchema(SiteRow),
    example: lastPage(SITE),
    read: async ({ sites, sessions }, { filter, page }, view) => {
      const listed = await sites.listSites(filter, page, view.ctx)
      return withItems(listed, await withSessions(listed.items, sessions, view))
    },
  }),
  diagnosticsRoute({
    path: '/sites/{site_id}',
    operationId: 'getSite',
    record: true,
    summary: 'One site',
    needs: ['sites'],
    scopable: true,
    response: SiteRow,
    example: SITE,
    read: async ({ sites, sessions }, { params }, view) => {
      const site = await sites.getSite(params.site_id, view.ctx)
      return site && (await withSessions([site], sessions, view))[0]
    },
  }),
])
