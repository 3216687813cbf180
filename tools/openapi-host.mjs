/** A live host over HTTP in which every route of the diagnostics router has something to answer. */
import { apiKeyAuth, createDiagnosticsRouter } from 'relayscope'
import { startNodeServer } from 'relayscope/node'
import { createFakeInspectors } from 'relayscope/testing'

export const KEY = 'clients-of-the-document'
export const PREFIX = '/ops/diagnostics'

/** One record of everything; what is not said of it is as the fakes have it: `user-1`, `client-1`, `connection-1`. */
const WORLD = {
  connections: [{ actions: ['open_report'] }],
  actions: [{ name: 'open_report' }],
  connectionEvents: [{ connection_id: 'connection-1' }],
  clientEvents: [{}],
  connectionChurn: [{}],
  contexts: [{ task_id: 'task-1', client_type: 'browser' }],
  browserWindows: [{}],
  calls: [{}],
  endedCalls: [{}],
  callSummary: {},
  instances: [{}],
  messages: [{ stream: 'users/user-1/log', payload: { text: 'hello' } }],
  streams: [{ stream: 'users/user-1/log' }],
  deduplicator: { summary: {}, users: [{ user_id: 'user-1' }] },
  delivery: {
    summary: {},
    // The second is of a system that knows of its nodes only that they are there.
    nodes: [{}, { updated_at: null, stale: null, staleness_ms: null, metadata: { queue: 'reports' } }],
    tenants: [{}],
    mailboxes: [{}],
    churn: [{}],
    statuses: [{}],
  },
  sites: [{}],
  sessions: [{}],
  subscriptions: [{}],
}

/** Values of required path and query parameters, by name. */
export const GIVEN = {
  user_id: 'user-1',
  client_id: 'client-1',
  instance_id: 'instance-1',
  connection_id: 'connection-1',
  context_id: 'context-1',
  window_id: 'window-1',
  task_id: 'task-1',
  q: 'user',
  correlation_id: 'call-1',
  command_id: 'command-1',
  site_id: 'site-1',
  session_id: 'session-1',
  subscription_id: 'subscription-1',
  stream: 'users/user-1/log',
}

/** @returns where it listens, the router’s prefix included, and its end. */
export async function startHost() {
  const router = createDiagnosticsRouter({
    inspectors: createFakeInspectors(WORLD),
    auth: apiKeyAuth(KEY),
    prefix: PREFIX,
    onError: console.error,
  })
  const { url, close } = await startNodeServer(router, { allowedHosts: ['loopback'] })
  return { origin: url, url: `${url}${PREFIX}`, close }
}
