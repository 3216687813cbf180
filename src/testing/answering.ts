/** Inspectors as the suites read them: every record has the fields of its answer, `null` where it is not known. */
import { BrowserWindowAnswer } from '../contract/browser-windows.js'
import {
  ActionObservationAnswer,
  ClientEventAnswer,
  ConnectionAnswer,
  ConnectionChurnAnswer,
  ConnectionEventAnswer,
} from '../contract/connections.js'
import { ContextAnswer } from '../contract/contexts.js'
import { DeduplicatorSummaryAnswer, DeduplicatorUserSummaryAnswer } from '../contract/deduplicator.js'
import {
  DeliveryChurnAnswer,
  DeliveryCommandAnswer,
  DeliveryMailboxAnswer,
  DeliveryNodeAnswer,
  DeliveryStatusAnswer,
  DeliverySummaryAnswer,
  DeliveryTenantAnswer,
} from '../contract/delivery.js'
import { HistoryMessageAnswer, HistoryStreamAnswer } from '../contract/history.js'
import { EndedCallAnswer, PendingCallAnswer, RpcSummaryAnswer } from '../contract/rpc.js'
import { SessionRowAnswer } from '../contract/sessions.js'
import { SiteRowAnswer } from '../contract/sites.js'
import { SubscriptionRowAnswer } from '../contract/subscriptions.js'
import type { Schema } from './expect.js'
import type { MakeInspector } from './lists.js'

/** What each method returns: a record, or a page of records. */
const RECORDS: Readonly<Record<string, Schema>> = {
  listConnections: ConnectionAnswer,
  getConnection: ConnectionAnswer,
  listConnectionHistory: ConnectionEventAnswer,
  listConnectionEvents: ClientEventAnswer,
  listActions: ActionObservationAnswer,
  connectionChurn: ConnectionChurnAnswer,
  listContexts: ContextAnswer,
  getContext: ContextAnswer,
  listBrowserWindows: BrowserWindowAnswer,
  getBrowserWindow: BrowserWindowAnswer,
  listPending: PendingCallAnswer,
  getPending: PendingCallAnswer,
  listEnded: EndedCallAnswer,
  getEnded: EndedCallAnswer,
  readMessages: HistoryMessageAnswer,
  listStreams: HistoryStreamAnswer,
  userSummary: DeduplicatorUserSummaryAnswer,
  listNodes: DeliveryNodeAnswer,
  listTenants: DeliveryTenantAnswer,
  getTenant: DeliveryTenantAnswer,
  status: DeliveryStatusAnswer,
  listCommands: DeliveryCommandAnswer,
  listMailboxes: DeliveryMailboxAnswer,
  deliveryChurn: DeliveryChurnAnswer,
  listSites: SiteRowAnswer,
  getSite: SiteRowAnswer,
  listSessions: SessionRowAnswer,
  getSession: SessionRowAnswer,
  listSubscriptions: SubscriptionRowAnswer,
}

/** The methods `summary` of several families. */
const SUMMARIES: readonly (readonly [method: string, Schema])[] = [
  ['listNodes', DeliverySummaryAnswer],
  ['listPending', RpcSummaryAnswer],
  ['summary', DeduplicatorSummaryAnswer],
]

/** An inspector whose methods return answers. */
export type Known<Inspector> = {
  [Name in keyof Inspector]: Inspector[Name] extends ((...given: infer Given) => unknown) | undefined
    ? // biome-ignore lint/suspicious/noExplicitAny: the schema of the method decides
      ((...given: Given) => any) | Extract<Inspector[Name], undefined>
    : Inspector[Name]
}

/** `record` with every field of its answer; one that does not match is left as it is, for the checks of the suite. */
function known(schema: Schema, record: unknown): unknown {
  const read = schema.safeParse(record)
  return read.success && record !== null && typeof record === 'object'
    ? { ...record, ...(read.data as object) }
    : record
}

function answerOfMethod(schema: Schema, returned: unknown): unknown {
  if (returned === null || typeof returned !== 'object') return returned
  const { items, has_more, truncated } = returned as { items?: unknown; has_more?: unknown; truncated?: unknown }
  const isPage = Array.isArray(items) && (has_more !== undefined || truncated !== undefined)
  return isPage ? { ...returned, items: items.map((item) => known(schema, item)) } : known(schema, returned)
}

/** Returns `make` for an inspector that may leave fields out. */
export function answering<Inspector extends object>(make: MakeInspector<Inspector>): MakeInspector<Known<Inspector>> {
  return async () => {
    const inspector = await make()
    if (!inspector) return undefined
    return new Proxy(inspector, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        const summary = SUMMARIES.find(([method]) => method in target)?.[1]
        const schema = name === 'summary' ? summary : RECORDS[String(name)]
        if (typeof value !== 'function' || !schema) return typeof value === 'function' ? value.bind(target) : value
        return async (...given: unknown[]) => answerOfMethod(schema, await value.apply(target, given))
      },
    }) as Known<Inspector>
  }
}
