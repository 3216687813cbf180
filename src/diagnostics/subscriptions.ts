/** The route of the subscriptions family. */
import * as z from 'zod'
import { withItems } from '../contract/page.js'
import { SubscriptionFilter } from '../contract/subscriptions.js'
import { listSlowest, SubscriptionPage } from '../views/cooperative.js'
import { lastPage, SUBSCRIPTION } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

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
    needs: ['subscriptions'],
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
