/** Findings about entries that look active although their client is not connected, and about workers that were lost. */
import { BrowserWindowAnswer } from '../../contract/browser-windows.js'
import type { SourceName } from '../../contract/capabilities.js'
import type { ClientOfUser } from '../../contract/connections.js'
import { ContextAnswer, isLost } from '../../contract/contexts.js'
import { PendingCallAnswer } from '../../contract/rpc.js'
import { SessionRowAnswer } from '../../contract/sessions.js'
import type { Holder } from '../clients.js'
import { createListDetector, type ScanContext } from './detector.js'
import { type Evidence, type Finding, type FindingKind, fieldsOf, finding, requestOf } from './finding.js'

/** Evidence that a client is not connected, or which instance holds it. */
export function holderEvidence(scan: ScanContext, { user_id, client_id }: ClientOfUser, current: Holder): Evidence {
  const route = requestOf('/connections', { user_id, client_id, status: 'connected' })
  return scan.evidence('registry', route, { connected: current !== null, current_instance_id: current ?? null })
}

/** A record that may belong to a client. */
interface Of {
  user_id: string
  client_id: string | null
  updated_at: string | null
}

const isOfClient = <T extends Of>(record: T): record is T & ClientOfUser => record.client_id !== null

/** A finding for each of these whose client is known and not connected. */
async function ofDisconnected<T extends Of>(
  all: readonly T[],
  scan: ScanContext,
  definition: {
    kind: FindingKind
    source: SourceName
    id: keyof T & string
    path: string
    fields: (keyof T & string)[]
  },
): Promise<Finding[]> {
  const { kind, source, id, path, fields } = definition
  const records = all.filter(isOfClient)
  const holderOf = await scan.holders(records)
  const alone = records.filter((record) => holderOf(record) === null)
  return Promise.all(
    alone.map(async (record) => {
      const { user_id, client_id } = record
      const own = String(record[id])
      const since = later(await scan.changedAt(record, null), record.updated_at)
      return finding(kind, { [id]: own, user_id, client_id }, since, [
        scan.evidence(
          source,
          requestOf(`${path}/${encodeURIComponent(own)}`),
          fieldsOf(record, 'updated_at', ...fields),
        ),
        holderEvidence(scan, record, null),
      ])
    }),
  )
}

/** The later of two times if both are known: what holds after both has held since then. */
function later(change: string | null, reported: string | null): string | null {
  if (change === null || reported === null) return null
  return Date.parse(change) >= Date.parse(reported) ? change : reported
}

const isWorking = ({ ownership, task_id, status }: ContextAnswer) =>
  ownership === 'worker' && task_id !== null && (status === 'active' || status === 'idle')

const CONTEXT = { source: 'context_registry', id: 'context_id', path: '/contexts' } as const

export const WORKERS_OF_DISCONNECTED = createListDetector<ContextAnswer>({
  kinds: ['worker_of_disconnected_client'],
  requires: ['context_registry', 'registry'],
  source: 'context_registry',
  entry: ContextAnswer,
  list: ({ contextRegistry }, page, ctx) => contextRegistry.listContexts({ ownership: 'worker' }, page, ctx),
  find: (contexts, scan) =>
    ofDisconnected(contexts.filter(isWorking), scan, {
      ...CONTEXT,
      kind: 'worker_of_disconnected_client',
      fields: ['status', 'task_id', 'task_assigned_at'],
    }),
})

export const WORKERS_LOST = createListDetector<ContextAnswer>({
  kinds: ['worker_lost_with_task'],
  requires: ['context_registry'],
  source: 'context_registry',
  entry: ContextAnswer,
  list: ({ contextRegistry }, page, ctx) =>
    contextRegistry.listContexts({ ownership: 'worker', status: 'closed' }, page, ctx),
  find: (contexts, scan) =>
    contexts
      .filter((context) => isLost(context) && context.ownership === 'worker' && context.task_id !== null)
      .map((context) => {
        const { context_id, user_id, client_id, updated_at } = context
        const fields = fieldsOf(context, 'status', 'status_reason', 'task_id', 'task_assigned_at', 'updated_at')
        const route = requestOf(`/contexts/${encodeURIComponent(context_id)}`)
        return finding(
          'worker_lost_with_task',
          { context_id, user_id, ...(client_id !== null && { client_id }) },
          updated_at,
          [scan.evidence('context_registry', route, fields)],
        )
      }),
})

export const CONTEXTS_OF_DISCONNECTED = createListDetector<ContextAnswer>({
  kinds: ['context_of_disconnected_client'],
  requires: ['context_registry', 'registry'],
  source: 'context_registry',
  entry: ContextAnswer,
  list: ({ contextRegistry }, page, ctx) => contextRegistry.listContexts({ status: 'active' }, page, ctx),
  find: (contexts, scan) =>
    ofDisconnected(
      contexts.filter((context) => context.status === 'active' && !isWorking(context)),
      scan,
      { ...CONTEXT, kind: 'context_of_disconnected_client', fields: ['status'] },
    ),
})

export const WINDOWS_OF_DISCONNECTED = createListDetector<BrowserWindowAnswer>({
  kinds: ['window_of_disconnected_client'],
  requires: ['browser_window_registry', 'registry'],
  source: 'browser_window_registry',
  entry: BrowserWindowAnswer,
  list: ({ browserWindowRegistry }, page, ctx) =>
    browserWindowRegistry.listBrowserWindows({ status: 'open' }, page, ctx),
  find: (windows, scan) =>
    ofDisconnected(
      windows.filter(({ status }) => status === 'open'),
      scan,
      {
        kind: 'window_of_disconnected_client',
        source: 'browser_window_registry',
        id: 'window_id',
        path: '/browser-windows',
        fields: ['status'],
      },
    ),
})

const callEvidence = (scan: ScanContext, call: PendingCallAnswer) =>
  scan.evidence(
    'rpc',
    requestOf(`/rpc/pending/${encodeURIComponent(call.correlation_id)}`),
    fieldsOf(call, 'action', 'instance_id', 'started_at', 'deadline_at'),
  )

export const CALLS_TO_SUPERSEDED = createListDetector<PendingCallAnswer>({
  kinds: ['call_to_superseded_instance'],
  requires: ['rpc', 'registry'],
  source: 'rpc',
  entry: PendingCallAnswer,
  list: ({ rpc }, page, ctx) => rpc.listPending({}, page, ctx),
  async find(all, scan) {
    const calls = all.filter(({ instance_id }) => instance_id !== null)
    const holderOf = await scan.holders(calls)
    // Without a holder nothing has taken over: the client may never have been recorded, or be disconnected.
    const lost = calls.flatMap((call) => {
      const holder = holderOf(call)
      return holder == null || holder === call.instance_id ? [] : [{ call, holder }]
    })
    return Promise.all(
      lost.map(async ({ call, holder }) => {
        const { correlation_id, user_id, client_id, started_at } = call
        const since = later(await scan.changedAt(call, holder), started_at)
        return finding('call_to_superseded_instance', { correlation_id, user_id, client_id }, since, [
          callEvidence(scan, call),
          holderEvidence(scan, call, holder),
        ])
      }),
    )
  },
})

export const CALLS_OVERDUE = createListDetector<PendingCallAnswer>({
  kinds: ['call_overdue'],
  requires: ['rpc'],
  source: 'rpc',
  entry: PendingCallAnswer,
  list: ({ rpc }, page, ctx) => rpc.listPending({ overdue: true }, page, ctx),
  find(calls, scan) {
    const now = scan.view.now()
    // An inspector that does not know the filter lists every call. Its own clock goes first: it set the deadline.
    return calls
      .filter(({ overdue, deadline_at }) => overdue ?? (deadline_at !== null && Date.parse(deadline_at) <= now))
      .map((call) => {
        const { correlation_id, user_id, client_id } = call
        return finding('call_overdue', { correlation_id, user_id, client_id }, call.deadline_at, [
          scan.evidence(
            'rpc',
            requestOf('/rpc/pending', { overdue: 'true', user_id, client_id }),
            fieldsOf(call, 'action', 'started_at', 'deadline_at'),
          ),
        ])
      })
  },
})

// Sessions whose application is away.

type Connected = SessionRowAnswer & { connector: ClientOfUser }

const hasConnector = (session: SessionRowAnswer): session is Connected =>
  session.state === 'active' && session.connector !== null && session.connector_connected !== true

export const SESSIONS_WITHOUT_CONNECTOR = createListDetector<SessionRowAnswer>({
  kinds: ['session_without_connector'],
  requires: ['sessions'],
  source: 'sessions',
  entry: SessionRowAnswer,
  list: ({ sessions }, page, ctx) => sessions.listSessions({ state: 'active' }, page, ctx),
  async find(sessions, scan) {
    const asked = sessions.filter(hasConnector)
    const unknown = asked.filter(({ connector_connected }) => connector_connected === null)
    // The connection registry may know what the session registry does not report.
    const canInspect = unknown.length > 0 && Boolean(scan.inspectors.registry)
    const holderOf = canInspect ? await scan.holders(unknown.map(({ connector }) => connector)) : undefined
    const alone = asked.filter(
      ({ connector_connected, connector }) => connector_connected === false || holderOf?.(connector) === null,
    )
    return Promise.all(
      alone.map(async (session) => {
        const { session_id, site_id, connector } = session
        const evidence = scan.evidence(
          'sessions',
          requestOf(`/sessions/${encodeURIComponent(session_id)}`),
          fieldsOf(session, 'state', 'connector', 'updated_at'),
        )
        const since = later(await scan.changedAt(connector, null), session.updated_at)
        return finding('session_without_connector', { session_id, site_id }, since, [
          evidence,
          ...(holderOf ? [holderEvidence(scan, connector, null)] : []),
        ])
      }),
    )
  },
})
