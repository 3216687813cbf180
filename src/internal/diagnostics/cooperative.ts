/** The routes of sites, their sessions and their viewers. */

import * as z from 'zod'
import { pageSchema, withItems } from '../contract/page.js'
import { SessionFilter, SessionRowAnswer } from '../contract/sessions.js'
import { SiteFilter, SiteRowAnswer } from '../contract/sites.js'
import { SubscriptionFilter } from '../contract/subscriptions.js'
import { listSlowest, SubscriptionPage, withLife, withSessions } from '../views/cooperative.js'
import { lastPage, SESSION, SITE, SUBSCRIPTION } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

export const SITE_ROUTES = routeSection('sites', 'Cooperative sites: what applications have declared.', [
  diagnosticsRoute({
    path: '/sites',
    operationId: 'listSites',
    summary: 'Sites, and when each last published an event',
    requires: ['sites'],
    alsoReads: ['sessions'],
    scopable: true,
    page: 'paged',
    query: SiteFilter,
    response: pageSchema(SiteRowAnswer),
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
    requires: ['sites'],
    scopable: true,
    response: SiteRowAnswer,
    example: SITE,
    read: async ({ sites, sessions }, { params }, view) => {
      const site = await sites.getSite(params.site_id, view.ctx)
      return site && (await withSessions([site], sessions, view))[0]
    },
  }),
])

// The routes of the sessions family.

export const SESSION_ROUTES = routeSection('sessions', 'Sessions of cooperative sites.', [
  diagnosticsRoute({
    path: '/sessions',
    operationId: 'listSessions',
    summary: 'Sessions, and whether their connectors are connected; the newest first unless `order` says otherwise',
    requires: ['sessions'],
    alsoReads: ['registry', 'subscriptions'],
    scopable: true,
    page: 'paged',
    order: 'newest',
    query: SessionFilter,
    response: pageSchema(SessionRowAnswer),
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
    requires: ['sessions'],
    scopable: true,
    response: SessionRowAnswer,
    example: SESSION,
    read: async ({ sessions, ...others }, { params }, view) => {
      const session = await sessions.getSession(params.session_id, view.ctx)
      return session && (await withLife([session], others, view))[0]
    },
  }),
])

// The route of the subscriptions family.

const Query = SubscriptionFilter.extend({
  order: z
    .enum(['slowest'])
    .optional()
    .describe('`slowest`: those with the most pending events first, on one page without a cursor.'),
})

export const SUBSCRIPTION_ROUTES = routeSection('subscriptions', 'Viewer streams that are open.', [
  diagnosticsRoute({
    path: '/subscriptions',
    operationId: 'listSubscriptions',
    summary: 'Viewer streams that are open, and how far behind each is',
    requires: ['subscriptions'],
    scopable: true,
    page: 'paged',
    query: Query,
    response: SubscriptionPage,
    example: { ...lastPage(SUBSCRIPTION), completeness: null },
    read: async ({ subscriptions }, { filter: { order, ...filter }, page }, view) => {
      if (order === 'slowest') return listSlowest(subscriptions, filter, page, view)
      const listed = await subscriptions.listSubscriptions(filter, page, view.ctx)
      return { ...withItems(listed, listed.items), completeness: null }
    },
  }),
])
