/** A dashboard's test without a relay: the router over inspectors made from plain data. */

// #region fake
import { createDiagnosticsRouter, noopAuth } from 'relayscope'
import { createFakeInspectors } from 'relayscope/testing'

const worker = {
  context_id: 'worker-1',
  user_id: 'ada',
  client_id: 'laptop',
  instance_id: 'run-1',
  client_type: 'console',
  status: 'idle',
  ownership: 'worker',
  window_id: null,
  task_id: null,
  task_assigned_at: null,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
}
const inspectors = createFakeInspectors({ contexts: [worker], delivery: {} })
const diagnostics = createDiagnosticsRouter({ inspectors, auth: noopAuth() })

export const ask = async (path) => (await diagnostics(new Request(`http://localhost${path}`))).json()
// #endregion
