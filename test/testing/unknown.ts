/** Worlds and inspectors of records that have only what is required of them. */
import type * as z from 'zod'
import { BrowserWindowAnswer } from '../../src/internal/contract/browser-windows.js'
import * as connections from '../../src/internal/contract/connections.js'
import { ContextAnswer } from '../../src/internal/contract/contexts.js'
import { DeduplicatorSummaryAnswer, DeduplicatorUserSummaryAnswer } from '../../src/internal/contract/deduplicator.js'
import * as delivery from '../../src/internal/contract/delivery.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { HistoryMessageAnswer, HistoryStreamAnswer } from '../../src/internal/contract/history.js'
import { EndedCallAnswer, PendingCallAnswer, RpcSummaryAnswer } from '../../src/internal/contract/rpc.js'
import { SessionRowAnswer } from '../../src/internal/contract/sessions.js'
import { SiteRowAnswer } from '../../src/internal/contract/sites.js'
import { SubscriptionRowAnswer } from '../../src/internal/contract/subscriptions.js'
import type { FakeWorld } from '../../src/testing/index.js'

const ANSWERS: Record<string, z.ZodObject> = {
  connections: connections.ConnectionAnswer,
  actions: connections.ActionObservationAnswer,
  connectionEvents: connections.ConnectionEventAnswer,
  clientEvents: connections.ClientEventAnswer,
  connectionChurn: connections.ChurnMinuteAnswer,
  contexts: ContextAnswer,
  browserWindows: BrowserWindowAnswer,
  calls: PendingCallAnswer,
  endedCalls: EndedCallAnswer,
  callSummary: RpcSummaryAnswer,
  messages: HistoryMessageAnswer,
  streams: HistoryStreamAnswer,
  sites: SiteRowAnswer,
  sessions: SessionRowAnswer,
  subscriptions: SubscriptionRowAnswer,
  'deduplicator.summary': DeduplicatorSummaryAnswer,
  'deduplicator.users': DeduplicatorUserSummaryAnswer,
  'delivery.summary': delivery.DeliverySummaryAnswer,
  'delivery.nodes': delivery.DeliveryNodeAnswer,
  'delivery.tenants': delivery.DeliveryTenantAnswer,
  'delivery.mailboxes': delivery.DeliveryMailboxAnswer,
  'delivery.churn': delivery.DeliveryMinuteAnswer,
  'delivery.statuses': delivery.DeliveryStatusAnswer,
}

/** Fields that records of a world may leave out, each `null`, and the numbers of lists that are not known. */
function unknownFields(schema: z.ZodObject): object {
  const optional = Object.entries(schema.shape as Record<string, z.ZodType>).filter(
    ([, field]) => field.safeParse(undefined).success && field.safeParse(null).success,
  )
  return Object.fromEntries(optional.map(([name]) => [name, null]))
}

/** The records of a world with their required fields alone. */
export function bare(world: object, path = ''): FakeWorld {
  const entries = Object.entries(world).map(([name, given]) => {
    const schema = ANSWERS[path + name]
    if (Array.isArray(given)) return [name, schema ? given.map((one) => ({ ...one, ...unknownFields(schema) })) : given]
    return [name, schema ? unknownFields(schema) : bare(given, `${name}.`)]
  })
  return Object.fromEntries(entries)
}

/** `value` without its `null` fields, and without lists that are not known. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) => {
      const isLeftOut = field === null || Reflect.get(value, `${name}_omitted`) === null
      return isLeftOut ? [] : [[name, withoutNulls(field)]]
    }),
  )
}

/** Inspectors whose records lack the fields that are `null`. */
export function leavingOut(inspectors: Inspectors): Inspectors {
  const wrap = (inspector: object) =>
    Object.fromEntries(
      Object.entries(inspector).map(([name, method]) => {
        const whole = (returned: { items?: unknown } | null) =>
          returned && 'items' in returned
            ? { ...returned, items: withoutNulls(returned.items) }
            : (withoutNulls(returned) as object)
        const isRecord = !['currentInstances', 'checkInstance'].includes(name)
        return [name, isRecord ? (...given: unknown[]) => whole(method(...given)) : method]
      }),
    )
  return Object.fromEntries(Object.entries(inspectors).map(([name, inspector]) => [name, wrap(inspector)]))
}
