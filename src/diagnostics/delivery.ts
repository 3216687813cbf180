/** The routes of the delivery family. Their schemas have no field for a payload. */
import { requireRequested } from '../contract/bad-record.js'
import {
  CommandFilter,
  CommandKey,
  DeliveryCommand,
  type DeliveryInspector,
  DeliveryNode,
  DeliveryStatus,
  DeliverySummary,
  DeliveryTenant,
} from '../contract/delivery.js'
import { type Ask, type Page, type PageQuery, pageOf, withItems } from '../contract/page.js'
import { COMMAND, FOREIGN_NODE, NODE, SUMMARY, TENANT } from './delivery-examples.js'
import { lastPage } from './examples.js'
import { diagnosticsRoute, routesAbout } from './route.js'

/** The list of tenants under a scope: of whoever finds it by its id one page, of whoever does not what a page has of it. */
async function listTenant(
  delivery: DeliveryInspector,
  scope_id: string,
  page: PageQuery,
  ask: Ask,
): Promise<Page<DeliveryTenant>> {
  if (delivery.getTenant && page.cursor === null) {
    const tenant = await delivery.getTenant(scope_id, ask)
    requireRequested(tenant, { scope_id })
    return { items: tenant ? [tenant] : [], next_cursor: null, has_more: false, examined: 1 }
  }
  const listed = await delivery.listTenants(page, ask)
  return withItems(
    listed,
    listed.items.filter((tenant) => tenant?.scope_id === scope_id),
  )
}

export const DELIVERY_ROUTES = routesAbout('delivery', 'Commands on their way to clients, without payloads.', [
  diagnosticsRoute({
    path: '/delivery/summary',
    operationId: 'getDeliverySummary',
    summary: 'Whether admitted commands accumulate',
    needs: ['delivery'],
    response: DeliverySummary,
    example: SUMMARY,
    read: ({ delivery }, _input, { ask }) => delivery.summary(ask),
  }),
  diagnosticsRoute({
    path: '/delivery/nodes',
    unversioned: true,
    compared: ({ staleness_ms, ...node }: DeliveryNode) => node,
    operationId: 'listDeliveryNodes',
    summary: 'Delivery nodes: their loops, drainers, waiters and counters',
    needs: ['delivery'],
    page: 'paged',
    response: pageOf(DeliveryNode),
    example: lastPage(NODE, FOREIGN_NODE),
    read: ({ delivery }, { page }, { ask }) => delivery.listNodes(page, ask),
  }),
  diagnosticsRoute({
    path: '/delivery/tenants',
    operationId: 'listDeliveryTenants',
    summary: 'Admission scopes and their reservations',
    needs: ['delivery'],
    page: 'paged',
    query: CommandFilter.pick({ scope_id: true }),
    response: pageOf(DeliveryTenant),
    example: lastPage(TENANT),
    read: ({ delivery }, { filter: { scope_id }, page }, { ask }) =>
      scope_id === undefined ? delivery.listTenants(page, ask) : listTenant(delivery, scope_id, page, ask),
  }),
  diagnosticsRoute({
    path: '/delivery/commands',
    operationId: 'listDeliveryCommands',
    summary: 'Retained commands and where each stands, oldest first',
    needs: ['delivery_commands'],
    narrows: true,
    page: 'paged',
    query: CommandFilter,
    response: pageOf(DeliveryCommand),
    example: lastPage({ ...COMMAND, state: 'resulted' as const, overdue: false, action: 'open_report' }),
    read: ({ delivery }, { filter, page }, { ask }) => delivery.listCommands?.(filter, page, ask),
  }),
  diagnosticsRoute({
    path: '/delivery/status',
    operationId: 'getDeliveryStatus',
    record: true,
    summary: 'The evidence about one command',
    needs: ['delivery'],
    narrows: true,
    query: CommandKey,
    response: DeliveryStatus,
    example: COMMAND,
    refusals: { invalid_identity: 'invalid_delivery_identity' },
    read: ({ delivery }, { filter }, { ask }) => delivery.status(filter, ask),
  }),
])
