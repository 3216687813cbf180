/** The routes of the users and actions views. */
import { ActionFilter } from '../contract/connections.js'
import type { Capability } from '../contract/inspectors.js'
import type { RouterLimits } from '../contract/limits.js'
import { ActionPage, listActions } from '../views/actions.js'
import { summarizeUser, UserSummary } from '../views/user-summary.js'
import { listUsers, UserPage } from '../views/users.js'
import { NoQuery, pageQuery } from './page-query.js'
import { type DiagnosticsRow, diagnosticsRow } from './row.js'

const USER_SOURCES: readonly Capability[] = [
  'registry',
  'context_registry',
  'browser_window_registry',
  'rpc',
  'history_list_streams',
]

export function userRows(limits: RouterLimits): DiagnosticsRow[] {
  return [
    diagnosticsRow({
      path: '/users',
      summary: 'Users known to any source, in the order of their ids',
      needs: USER_SOURCES,
      query: pageQuery(limits),
      response: UserPage,
      tokenOf: ({ user_id }: UserPage['items'][number]) => user_id,
      ask: (inspectors, { page }, view) => listUsers(inspectors, page, view),
    }),
    diagnosticsRow({
      path: '/users/{user_id}/summary',
      record: true,
      summary: 'What all sources together know of one user',
      needs: [...USER_SOURCES, 'dedup_per_user'],
      query: NoQuery,
      response: UserSummary,
      ask: (inspectors, { params }, view) => summarizeUser(inspectors, params.user_id, view),
    }),
  ]
}

export function actionRows(limits: RouterLimits): DiagnosticsRow[] {
  return [
    diagnosticsRow({
      path: '/actions',
      summary: 'Actions offered by connected clients, in the order of their names',
      needs: ['registry'],
      query: pageQuery(limits).extend(ActionFilter.shape),
      response: ActionPage,
      tokenOf: ({ name }: ActionPage['items'][number]) => name,
      ask: ({ registry }, { filter, page }, view) => listActions(registry, filter, page, view),
    }),
  ]
}
