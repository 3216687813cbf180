/** Inspectors as the suites read them: every record has the fields of its answer, `null` where it is not known. */
import { BrowserWindowAnswer } from '../internal/contract/browser-windows.js'
import {
  ActionObservationAnswer,
  ClientEventAnswer,
  ConnectionAnswer,
  ConnectionChurnAnswer,
  ConnectionEventAnswer,
} from '../internal/contract/connections.js'
import { ContextAnswer } from '../internal/contract/contexts.js'
import { DeduplicatorUserSummaryAnswer } from '../internal/contract/deduplicator.js'
import {
  DeliveryChurnAnswer,
  DeliveryCommandAnswer,
  DeliveryMailboxAnswer,
  DeliveryNodeAnswer,
  DeliveryStatusAnswer,
  DeliveryTenantAnswer,
} from '../internal/contract/delivery.js'
import { HistoryMessageAnswer, HistoryStreamAnswer } from '../internal/contract/history.js'
import { EndedCallAnswer, PendingCallAnswer } from '../internal/contract/rpc.js'
import { SessionRowAnswer } from '../internal/contract/sessions.js'
import { SiteRowAnswer } from '../internal/contract/sites.js'
import { SubscriptionRowAnswer } from '../internal/contract/subscriptions.js'
import type { Schema } from './expect.js'
import type { MakeInspector } from './lists.js'

/** What each method returns: a record, or a page of records. */
const RECORDS = {
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
} as const satisfies Readonly<Record<string, Schema>>
type Records = typeof RECORDS

type OutputOf<S> = S extends { parse(value: unknown): infer Output } ? Output : never

/** What a method that returns `V` returns as answers of the schema `S`. */
type Answered<V, S> = V extends null
  ? null
  : V extends { has_more: boolean } | { truncated: boolean }
    ? Omit<V, 'items'> & { items: OutputOf<S>[] }
    : OutputOf<S>

/** The methods of an inspector that return answers; `Summary` is the schema of its `summary`. */
export type Known<Inspector, Summary extends Schema = never> = {
  [Name in keyof Inspector]: Name extends keyof Records | 'summary'
    ? Inspector[Name] extends ((...given: infer Given) => infer Returned) | undefined
      ?
          | ((
              ...given: Given
            ) => Promise<Answered<Awaited<Returned>, Name extends keyof Records ? Records[Name] : Summary>>)
          | Extract<Inspector[Name], undefined>
      : never
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
export function answering<Inspector extends object, Summary extends Schema = never>(
  make: MakeInspector<Inspector>,
  summary?: Summary,
): MakeInspector<Known<Inspector, Summary>> {
  const schemas: Readonly<Record<string, Schema>> = { ...RECORDS, ...(summary && { summary }) }
  return async () => {
    const inspector = await make()
    if (!inspector) return undefined
    return new Proxy(inspector, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        const schema = schemas[String(name)]
        if (!schema) return value.bind(target)
        return async (...given: unknown[]) => answerOfMethod(schema, await value.apply(target, given))
      },
    }) as Known<Inspector, Summary>
  }
}
