/** The routes of the delivery family. Their schemas have no field for a payload. */
import { CommandKey, DeliveryNode, DeliveryStatus, DeliverySummary, DeliveryTenant } from '../contract/delivery.js'
import { pageOf } from '../contract/page.js'
import { type DiagnosticsRoute, diagnosticsRoute } from './route.js'

export const DELIVERY_ROUTES: readonly DiagnosticsRoute[] = [
  diagnosticsRoute({
    path: '/delivery/summary',
    summary: 'Whether admitted commands accumulate',
    needs: ['delivery'],
    response: DeliverySummary,
    ask: ({ delivery }, _input, { ask }) => delivery.summary(ask),
  }),
  diagnosticsRoute({
    path: '/delivery/nodes',
    summary: 'Delivery nodes: their loops, drainers, waiters and counters',
    needs: ['delivery'],
    page: 'paged',
    response: pageOf(DeliveryNode),
    ask: ({ delivery }, { page }, { ask }) => delivery.listNodes(page, ask),
  }),
  diagnosticsRoute({
    path: '/delivery/tenants',
    summary: 'Admission scopes and their reservations',
    needs: ['delivery'],
    page: 'paged',
    response: pageOf(DeliveryTenant),
    ask: ({ delivery }, { page }, { ask }) => delivery.listTenants(page, ask),
  }),
  diagnosticsRoute({
    path: '/delivery/status',
    record: true,
    summary: 'The evidence about one command',
    needs: ['delivery'],
    query: CommandKey,
    response: DeliveryStatus,
    refusals: { invalid_identity: 'invalid_delivery_identity' },
    ask: ({ delivery }, { filter }, { ask }) => delivery.status(filter, ask),
  }),
]
