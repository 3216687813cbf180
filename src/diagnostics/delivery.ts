/** The routes of the delivery family. Their schemas have no field for a payload. */
import { CommandKey, DeliveryNode, DeliveryStatus, DeliverySummary, DeliveryTenant } from '../contract/delivery.js'
import type { RouterLimits } from '../contract/limits.js'
import { pageOf } from '../contract/page.js'
import { NoQuery, pageQuery } from './page-query.js'
import { type DiagnosticsRow, diagnosticsRow } from './row.js'

export function deliveryRows(limits: RouterLimits): DiagnosticsRow[] {
  return [
    diagnosticsRow({
      path: '/delivery/summary',
      summary: 'Whether admitted commands accumulate',
      needs: ['delivery'],
      query: NoQuery,
      response: DeliverySummary,
      ask: ({ delivery }, _input, { ask }) => delivery.summary(ask),
    }),
    diagnosticsRow({
      path: '/delivery/nodes',
      summary: 'Delivery nodes: their loops, drainers, waiters and counters',
      needs: ['delivery'],
      query: pageQuery(limits),
      response: pageOf(DeliveryNode),
      ask: ({ delivery }, { page }, { ask }) => delivery.listNodes(page, ask),
    }),
    diagnosticsRow({
      path: '/delivery/tenants',
      summary: 'Admission scopes and their reservations',
      needs: ['delivery'],
      query: pageQuery(limits),
      response: pageOf(DeliveryTenant),
      ask: ({ delivery }, { page }, { ask }) => delivery.listTenants(page, ask),
    }),
    diagnosticsRow({
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
}
