/** The routes of the deduplicator family. */
import { DeduplicatorSummary, DeduplicatorUserSummary } from '../contract/deduplicator.js'
import { diagnosticsRoute, routesAbout } from './route.js'

export const DEDUPLICATOR_ROUTES = routesAbout('deduplicator', 'Messages that have been seen.', [
  diagnosticsRoute({
    path: '/deduplicator/summary',
    summary: 'How many messages are remembered, and how many were duplicates',
    needs: ['deduplicator'],
    response: DeduplicatorSummary,
    read: ({ deduplicator }, _input, { ask }) => deduplicator.summary(ask),
  }),
  diagnosticsRoute({
    path: '/deduplicator/users/{user_id}',
    record: true,
    summary: 'The same for one user',
    needs: ['dedup_per_user'],
    narrows: true,
    response: DeduplicatorUserSummary,
    read: ({ deduplicator }, { params }, { ask }) => deduplicator.userSummary?.(params.user_id, ask),
  }),
])
