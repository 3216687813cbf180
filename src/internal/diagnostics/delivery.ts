/** The routes of the delivery family. Their schemas have no field for a payload. */
import { readSummary } from '../contract/answer.js'
import { requireRequested } from '../contract/bad-record.js'
import {
  CommandFilter,
  CommandKey,
  DeliveryChurnAnswer,
  DeliveryChurnFilter,
  DeliveryCommandAnswer,
  type DeliveryInspector,
  DeliveryMailboxAnswer,
  DeliveryNodeAnswer,
  DeliveryStatusAnswer,
  DeliverySummaryAnswer,
  DeliveryTenantAnswer,
  type DeliveryTenantInput,
  MailboxFilter,
} from '../contract/delivery.js'
import { type InspectionContext, type Page, type PageQuery, pageSchema, withItems } from '../contract/page.js'
import { explainDelivery } from '../views/why.js'
import { DeliveryWhy } from '../views/why-links.js'
import { COMMAND, DELIVERY_CHURN, FOREIGN_NODE, MAILBOX, NODE, SUMMARY, TENANT, WHY } from './delivery-examples.js'
import { lastPage } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

/**
 * The list of tenants under a scope: one page with the tenant if the inspector can get it by id, otherwise the matching
 * tenants of each page.
 */
async function listTenant(
  delivery: DeliveryInspector,
  scope_id: string,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<DeliveryTenantInput>> {
  if (delivery.getTenant && page.cursor === null) {
    const tenant = await delivery.getTenant(scope_id, ctx)
    requireRequested(tenant, { scope_id })
    return { items: tenant ? [tenant] : [], next_cursor: null, has_more: false, examined: 1 }
  }
  const listed = await delivery.listTenants(page, ctx)
  return withItems(
    listed,
    listed.items.filter((tenant) => tenant?.scope_id === scope_id),
  )
}

export const DELIVERY_ROUTES = routeSection('delivery', 'Commands on their way to clients, without payloads.', [
  diagnosticsRoute({
    path: '/delivery/summary',
    operationId: 'getDeliverySummary',
    summary: 'Whether admitted commands accumulate',
    requires: ['delivery'],
    response: DeliverySummaryAnswer,
    example: SUMMARY,
    read: async ({ delivery }, _input, { ctx }) =>
      readSummary(DeliverySummaryAnswer, await delivery.summary(ctx), ctx.onError),
  }),
  diagnosticsRoute({
    path: '/delivery/nodes',
    unversioned: true,
    compared: ({ staleness_ms, ...node }: DeliveryNodeAnswer) => node,
    operationId: 'listDeliveryNodes',
    summary: 'Delivery nodes: their loops, drainers, waiters and counters',
    requires: ['delivery'],
    page: 'paged',
    response: pageSchema(DeliveryNodeAnswer),
    example: lastPage(NODE, FOREIGN_NODE),
    read: ({ delivery }, { page }, { ctx }) => delivery.listNodes(page, ctx),
  }),
  diagnosticsRoute({
    path: '/delivery/tenants',
    operationId: 'listDeliveryTenants',
    summary: 'Admission scopes and their reservations',
    requires: ['delivery'],
    page: 'paged',
    query: CommandFilter.pick({ scope_id: true }),
    response: pageSchema(DeliveryTenantAnswer),
    example: lastPage(TENANT),
    read: ({ delivery }, { filter: { scope_id }, page }, { ctx }) =>
      scope_id === undefined ? delivery.listTenants(page, ctx) : listTenant(delivery, scope_id, page, ctx),
  }),
  diagnosticsRoute({
    path: '/delivery/commands',
    operationId: 'listDeliveryCommands',
    summary:
      'Retained commands, with their state and what they wait for, the newest first unless `order` says otherwise',
    requires: ['delivery_commands'],
    scopable: true,
    page: 'paged',
    order: 'newest',
    query: CommandFilter,
    response: pageSchema(DeliveryCommandAnswer),
    example: lastPage({
      ...COMMAND,
      state: 'resulted' as const,
      waits_for: null,
      action: 'open_report',
    }),
    read: ({ delivery }, { filter, page }, { ctx }) => delivery.listCommands?.(filter, page, ctx),
  }),
  diagnosticsRoute({
    path: '/delivery/churn',
    unversioned: true,
    operationId: 'getDeliveryChurn',
    summary: 'How many commands were admitted and ended, minute by minute',
    requires: ['delivery_churn'],
    query: DeliveryChurnFilter,
    response: DeliveryChurnAnswer,
    example: DELIVERY_CHURN,
    read: ({ delivery }, { filter }, { ctx }) => delivery.deliveryChurn?.(filter, ctx),
  }),
  diagnosticsRoute({
    path: '/delivery/mailboxes',
    operationId: 'listDeliveryMailboxes',
    summary: 'Which clients have a mailbox attached, where, since when, and how many commands wait in it',
    requires: ['delivery_mailboxes'],
    scopable: true,
    page: 'paged',
    query: MailboxFilter,
    response: pageSchema(DeliveryMailboxAnswer),
    example: lastPage(MAILBOX),
    read: ({ delivery }, { filter, page }, { ctx }) => delivery.listMailboxes?.(filter, page, ctx),
  }),
  diagnosticsRoute({
    path: '/delivery/status',
    operationId: 'getDeliveryStatus',
    record: true,
    summary: 'The evidence about one command',
    requires: ['delivery'],
    scopable: true,
    query: CommandKey,
    response: DeliveryStatusAnswer,
    example: COMMAND,
    refusals: { invalid_identity: 'invalid_delivery_identity' },
    read: ({ delivery }, { filter }, { ctx }) => delivery.status(filter, ctx),
  }),
  diagnosticsRoute({
    path: '/delivery/why',
    operationId: 'explainDelivery',
    summary:
      'Why a command has not arrived: each link between its admission and its end, and the first that does not hold',
    unversioned: true,
    requires: ['delivery'],
    alsoReads: ['registry'],
    operation: 'delivery_why',
    scopable: true,
    query: CommandKey,
    response: DeliveryWhy,
    example: WHY,
    refusals: { invalid_identity: 'invalid_delivery_identity' },
    read: (inspectors, { filter }, view) => explainDelivery(inspectors, filter, view),
  }),
])
