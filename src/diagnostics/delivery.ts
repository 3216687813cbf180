/** The routes of the delivery family. Their schemas have no field for a payload. */
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
import { type Ask, type Page, type PageQuery, pageOf } from '../contract/page.js'
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
    return { items: tenant ? [tenant] : [], next_cursor: null, has_more: false, examined: 1 }
  }
  const listed = await delivery.listTenants(page, ask)
  return { ...listed, items: listed.items.filter((tenant) => tenant.scope_id === scope_id) }
}

export const DELIVERY_ROUTES = routesAbout('delivery', 'Commands on their way to clients, without payloads.', [
  diagnosticsRoute({
    path: '/delivery/summary',
    summary: 'Whether admitted commands accumulate',
    needs: ['delivery'],
    response: DeliverySummary,
    read: ({ delivery }, _input, { ask }) => delivery.summary(ask),
  }),
  diagnosticsRoute({
    path: '/delivery/nodes',
    summary: 'Delivery nodes: their loops, drainers, waiters and counters',
    needs: ['delivery'],
    page: 'paged',
    response: pageOf(DeliveryNode),
    read: ({ delivery }, { page }, { ask }) => delivery.listNodes(page, ask),
  }),
  diagnosticsRoute({
    path: '/delivery/tenants',
    summary: 'Admission scopes and their reservations',
    needs: ['delivery'],
    page: 'paged',
    query: CommandFilter.pick({ scope_id: true }),
    response: pageOf(DeliveryTenant),
    read: ({ delivery }, { filter: { scope_id }, page }, { ask }) =>
      scope_id === undefined ? delivery.listTenants(page, ask) : listTenant(delivery, scope_id, page, ask),
  }),
  diagnosticsRoute({
    path: '/delivery/commands',
    summary: 'Retained commands and where each stands, oldest first',
    needs: ['delivery_commands'],
    narrows: true,
    page: 'paged',
    query: CommandFilter,
    response: pageOf(DeliveryCommand),
    read: ({ delivery }, { filter, page }, { ask }) => delivery.listCommands?.(filter, page, ask),
  }),
  diagnosticsRoute({
    path: '/delivery/status',
    record: true,
    summary: 'The evidence about one command',
    needs: ['delivery'],
    narrows: true,
    query: CommandKey,
    response: DeliveryStatus,
    refusals: { invalid_identity: 'invalid_delivery_identity' },
    read: ({ delivery }, { filter }, { ask }) => delivery.status(filter, ask),
  }),
])
