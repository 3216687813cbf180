/** The routes of the users and actions views. */
import { ActionFilter } from '../contract/connections.js'
import type { Capability } from '../contract/inspectors.js'
import { ActionPage, listActions } from '../views/actions.js'
import { summarizeUser, UserSummary } from '../views/user-summary.js'
import { listUsers, UserPage } from '../views/users.js'
import { type DiagnosticsRoute, diagnosticsRoute } from './route.js'

const USER_SOURCES: readonly Capability[] = [
  'registry',
  'context_registry',
  'browser_window_registry',
  'rpc',
  'history_list_streams',
]

export const USER_ROUTES: readonly DiagnosticsRoute[] = [
  diagnosticsRoute({
    path: '/users',
    summary: 'Users known to any source, in the order of their ids',
    needs: USER_SOURCES,
    page: 'paged',
    response: UserPage,
    tokenOf: ({ user_id }: UserPage['items'][number]) => user_id,
    ask: (inspectors, { page }, view) => listUsers(inspectors, page, view),
  }),
  diagnosticsRoute({
    path: '/users/{user_id}/summary',
    record: true,
    summary: 'What all sources together know of one user',
    needs: [...USER_SOURCES, 'dedup_per_user'],
    response: UserSummary,
    ask: (inspectors, { params }, view) => summarizeUser(inspectors, params.user_id, view),
  }),
]

export const ACTION_ROUTES: readonly DiagnosticsRoute[] = [
  diagnosticsRoute({
    path: '/actions',
    summary: 'Actions offered by connected clients, in the order of their names',
    needs: ['registry'],
    page: 'paged',
    query: ActionFilter,
    response: ActionPage,
    tokenOf: ({ name }: ActionPage['items'][number]) => name,
    ask: ({ registry }, { filter, page }, view) => listActions(registry, filter, page, view),
  }),
]
