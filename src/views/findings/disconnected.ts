/** What stands as if its client were connected, and it is not. */
import { BrowserWindow } from '../../contract/browser-windows.js'
import type { SourceName } from '../../contract/completeness.js'
import type { ClientOfUser } from '../../contract/connections.js'
import { Context } from '../../contract/contexts.js'
import { PendingCall } from '../../contract/rpc.js'
import { SessionRow } from '../../contract/sessions.js'
import { along, type Looking } from './detector.js'
import { type Evidence, type Finding, type FindingKind, fieldsOf, finding, requestOf } from './finding.js'

/** That nobody, or who else, holds a client. */
export function holderEvidence(
  looking: Looking,
  { user_id, client_id }: ClientOfUser,
  current: string | null,
): Evidence {
  const route = requestOf('/connections', { user_id, client_id, status: 'connected' })
  return looking.evidence('registry', route, { connected: current !== null, current_instance_id: current })
}

/** A finding for each of `records` whose client nobody holds. */
async function ofDisconnected<T extends ClientOfUser & { updated_at: string }>(
  records: readonly T[],
  looking: Looking,
  told: { kind: FindingKind; source: SourceName; id: keyof T & string; path: string; fields: (keyof T & string)[] },
): Promise<Finding[]> {
  const { kind, source, id, path, fields } = told
  const holderOf = await looking.holders(records)
  return records
    .filter((record) => holderOf(record) === null)
    .map((record) => {
      const { user_id, client_id } = record
      const own = String(record[id])
      return finding(kind, { [id]: own, user_id, client_id }, null, [
        looking.evidence(
          source,
          requestOf(`${path}/${encodeURIComponent(own)}`),
          fieldsOf(record, 'updated_at', ...fields),
        ),
        holderEvidence(looking, record, null),
      ])
    })
}

const isWorking = ({ ownership, task_id, status }: Context) =>
  ownership === 'worker' && task_id !== null && (status === 'active' || status === 'idle')

const CONTEXT = { source: 'context_registry', id: 'context_id', path: '/contexts' } as const

export const WORKERS_OF_DISCONNECTED = along<Context>({
  kinds: ['worker_of_disconnected_client'],
  needs: ['context_registry', 'registry'],
  source: 'context_registry',
  entry: Context,
  list: ({ contextRegistry }, page, ask) => contextRegistry.listContexts({ ownership: 'worker' }, page, ask),
  find: (contexts, looking) =>
    ofDisconnected(contexts.filter(isWorking), looking, {
      ...CONTEXT,
      kind: 'worker_of_disconnected_client',
      fields: ['status', 'task_id', 'task_assigned_at'],
    }),
})

export const CONTEXTS_OF_DISCONNECTED = along<Context>({
  kinds: ['context_of_disconnected_client'],
  needs: ['context_registry', 'registry'],
  source: 'context_registry',
  entry: Context,
  list: ({ contextRegistry }, page, ask) => contextRegistry.listContexts({ status: 'active' }, page, ask),
  find: (contexts, looking) =>
    ofDisconnected(
      contexts.filter((context) => context.status === 'active' && !isWorking(context)),
      looking,
      { ...CONTEXT, kind: 'context_of_disconnected_client', fields: ['status'] },
    ),
})

export const WINDOWS_OF_DISCONNECTED = along<BrowserWindow>({
  kinds: ['window_of_disconnected_client'],
  needs: ['browser_window_registry', 'registry'],
  source: 'browser_window_registry',
  entry: BrowserWindow,
  list: ({ browserWindowRegistry }, page, ask) =>
    browserWindowRegistry.listBrowserWindows({ status: 'open' }, page, ask),
  find: (windows, looking) =>
    ofDisconnected(
      windows.filter(({ status }) => status === 'open'),
      looking,
      {
        kind: 'window_of_disconnected_client',
        source: 'browser_window_registry',
        id: 'window_id',
        path: '/browser-windows',
        fields: ['status'],
      },
    ),
})

const callEvidence = (looking: Looking, call: PendingCall) =>
  looking.evidence(
    'rpc',
    requestOf(`/rpc/pending/${encodeURIComponent(call.correlation_id)}`),
    fieldsOf(call, 'action', 'instance_id', 'started_at', 'deadline_at'),
  )

export const CALLS_TO_SUPERSEDED = along<PendingCall>({
  kinds: ['call_to_superseded_instance'],
  needs: ['rpc', 'registry'],
  source: 'rpc',
  entry: PendingCall,
  list: ({ rpc }, page, ask) => rpc.listPending({}, page, ask),
  async find(all, looking) {
    const calls = all.filter(({ instance_id }) => instance_id !== null)
    const holderOf = await looking.holders(calls)
    return calls
      .filter((call) => holderOf(call) !== call.instance_id)
      .map((call) => {
        const { correlation_id, user_id, client_id } = call
        return finding('call_to_superseded_instance', { correlation_id, user_id, client_id }, null, [
          callEvidence(looking, call),
          holderEvidence(looking, call, holderOf(call)),
        ])
      })
  },
})

export const CALLS_OVERDUE = along<PendingCall>({
  kinds: ['call_overdue'],
  needs: ['rpc'],
  source: 'rpc',
  entry: PendingCall,
  list: ({ rpc }, page, ask) => rpc.listPending({ overdue: true }, page, ask),
  find(calls, looking) {
    const now = looking.view.now()
    // An inspector that does not know the filter lists every call.
    return calls
      .filter(({ deadline_at }) => deadline_at !== null && Date.parse(deadline_at) <= now)
      .map((call) => {
        const { correlation_id, user_id, client_id } = call
        return finding('call_overdue', { correlation_id, user_id, client_id }, call.deadline_at, [
          looking.evidence(
            'rpc',
            requestOf('/rpc/pending', { overdue: 'true', user_id, client_id }),
            fieldsOf(call, 'action', 'started_at', 'deadline_at'),
          ),
        ])
      })
  },
})

// Sessions whose application is away.

type Connected = SessionRow & { connector: ClientOfUser }

const hasConnector = (session: SessionRow): session is Connected =>
  session.state === 'active' && session.connector !== null && session.connector_connected !== true

export const SESSIONS_WITHOUT_CONNECTOR = along<SessionRow>({
  kinds: ['session_without_connector'],
  needs: ['sessions'],
  source: 'sessions',
  entry: SessionRow,
  list: ({ sessions }, page, ask) => sessions.listSessions({ state: 'active' }, page, ask),
  async find(sessions, looking) {
    const asked = sessions.filter(hasConnector)
    const unknown = asked.filter(({ connector_connected }) => connector_connected === null)
    // What the registry of sessions does not say itself, that of connections may.
    const canAsk = unknown.length > 0 && Boolean(looking.inspectors.registry)
    const holderOf = canAsk ? await looking.holders(unknown.map(({ connector }) => connector)) : undefined
    return asked
      .filter(({ connector_connected, connector }) => connector_connected === false || holderOf?.(connector) === null)
      .map((session) => {
        const { session_id, site_id, connector } = session
        const evidence = looking.evidence(
          'sessions',
          requestOf(`/sessions/${encodeURIComponent(session_id)}`),
          fieldsOf(session, 'state', 'connector', 'updated_at'),
        )
        return finding('session_without_connector', { session_id, site_id }, null, [
          evidence,
          ...(holderOf ? [holderEvidence(looking, connector, null)] : []),
        ])
      })
  },
})
