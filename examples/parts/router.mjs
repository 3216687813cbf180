/** The diagnostics router over an inspector of one method pair, called without a server. */

// #region part
import { apiKeyAuth, createDiagnosticsRouter } from 'relayscope'

const tabs = [{ context_id: 'tab-1', user_id: 'ada', status: 'active' }]
const router = createDiagnosticsRouter({
  inspectors: {
    contextRegistry: {
      listContexts: () => ({ items: tabs, next_cursor: null, has_more: false }),
      getContext: (id) => tabs.find(({ context_id }) => context_id === id) ?? null,
    },
  },
  auth: apiKeyAuth('secret'),
})

const response = await router(new Request('http://localhost/contexts/tab-1', { headers: { 'x-admin-key': 'secret' } }))
const { status, task_id } = await response.json()
console.log(response.status, status, task_id) // 200 active null
// #endregion
