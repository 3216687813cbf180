/** A router that also answers what it answered before: `/at/{epoch ms}/connections`. */
import { apiKeyAuth, createDiagnosticsRouter } from 'relayscope'
import { createFlightRecorder } from 'relayscope/incident'

// #region recorder
/** The router over a composition, with its last hour. `started` resolves when there is something to see. */
export function routerWithPast({ inspectors, deployment }, key) {
  const recorder = createFlightRecorder({ inspectors, deployment })
  const router = createDiagnosticsRouter({ inspectors, deployment, recorder, auth: apiKeyAuth(key) })
  return { router, started: recorder.started, close: () => recorder.close() }
}
// #endregion
