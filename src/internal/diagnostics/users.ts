/** The routes of the users and actions views. */

import * as z from 'zod'
import { ActionQuery } from '../contract/connections.js'
import { Id } from '../contract/ids.js'
import { ActionPage, listActions } from '../views/actions.js'
import { SEARCH_NEEDS, SearchResult, search } from '../views/search.js'
import { summarizeUser, USER_SOURCES, UserSummary } from '../views/user-observation.js'
import { listUsers, UserPage } from '../views/users.js'
import { ACTION, complete, lastPage, USER, USER_CLAIMS } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

export const USER_ROUTES = routeSection('users', 'Users, as all sources together know them.', [
  diagnosticsRoute({
    path: '/users',
    operationId: 'listUsers',
    summary: 'Users known to any source, in the order of their ids',
    requires: USER_SOURCES,
    scopable: true,
    page: 'paged',
    query: z.object({
      user_id_prefix: Id.optional().describe('Only users whose id begins with this text; case-sensitive.'),
    }),
    response: UserPage,
    example: { ...lastPage(USER), completeness: complete({ registry: 1, context_registry: 2 }) },
    tokenOf: ({ user_id }: UserPage['items'][number]) => user_id,
    read: (inspectors, { filter, page }, view) =>
      listUsers(inspectors, { ...page, prefix: filter.user_id_prefix }, view),
  }),
  diagnosticsRoute({
    path: '/users/{user_id}/summary',
    operationId: 'getUserSummary',
    record: true,
    summary: 'What all sources together know of one user',
    requires: [...USER_SOURCES, 'dedup_per_user'],
    scopable: true,
    response: UserSummary,
    example: {
      ...USER,
      observed_client_ids: ['laptop'],
      contexts_by_status: { active: 1, idle: 1, closed: 0, stale: 0 },
      browser_windows_by_status: { open: 1, stale: 0, closed: 0 },
      observed_streams: 1,
      pending_rpc: 1,
      deduplicator: USER_CLAIMS,
      completeness: complete({ registry: 1, context_registry: 2, deduplicator: 0 }),
    },
    read: (inspectors, { params }, view) => summarizeUser(inspectors, params.user_id, view),
  }),
])

export const SEARCH_ROUTES = routeSection('search', 'What has an id in any family.', [
  diagnosticsRoute({
    path: '/search',
    operationId: 'searchIds',
    summary: 'What has this id in any family, and which users and actions begin with it',
    requires: SEARCH_NEEDS,
    operation: 'search',
    reportsFailures: 'of_some',
    scopable: true,
    unversioned: true,
    query: z.object({ q: Id.describe('An exact id, or the beginning of a user id or an action name.') }),
    response: SearchResult,
    example: {
      hits: [
        {
          kind: 'user',
          id: USER.user_id,
          match: 'exact',
          user_id: USER.user_id,
          route: `/users/${USER.user_id}/summary`,
        },
      ],
      more: [],
      cut: [],
    },
    read: (inspectors, { filter }, { deadlineMs, ...view }) => search(inspectors, filter.q, deadlineMs, view),
  }),
])

export const ACTION_ROUTES = routeSection('actions', 'Actions that connected clients offer.', [
  diagnosticsRoute({
    path: '/actions',
    operationId: 'listActions',
    summary: 'Actions offered by connected clients, in the order of their names',
    requires: ['registry'],
    scopable: true,
    page: 'paged',
    query: ActionQuery,
    response: ActionPage,
    example: { ...lastPage(ACTION), completeness: complete({ registry: 1 }) },
    tokenOf: ({ name }: ActionPage['items'][number]) => name,
    read: ({ registry }, { filter, page }, view) => listActions(registry, filter, page, view),
  }),
])
