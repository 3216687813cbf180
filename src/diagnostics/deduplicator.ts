/** The routes of the deduplicator family. */
import { DeduplicatorSummary, DeduplicatorUserSummary } from '../contract/deduplicator.js'
import { CLAIMS, USER_CLAIMS } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

export const DEDUPLICATOR_ROUTES = routeSection('deduplicator', 'Messages that have been seen.', [
  diagnosticsRoute({
    path: '/deduplicator/summary',
    operationId: 'getDeduplicatorSummary',
    summary: 'How many messages are remembered, and how many were duplicates',
    needs: ['deduplicator'],
    response: DeduplicatorSummary,
    example: CLAIMS,
    read: ({ deduplicator }, _input, { ctx }) => deduplicator.summary(ctx),
  }),
  diagnosticsRoute({
    path: '/deduplicator/users/{user_id}',
    operationId: 'getDeduplicatorUserSummary',
    record: true,
    summary: 'The same for one user',
    needs: ['dedup_per_user'],
    scopable: true,
    response: DeduplicatorUserSummary,
    example: USER_CLAIMS,
    read: ({ deduplicator }, { params }, { ctx }) => deduplicator.userSummary?.(params.user_id, ctx),
  }),
])
