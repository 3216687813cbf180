/** The routes of the deduplicator family. */
import { readSummary } from '../contract/answer.js'
import { DeduplicatorSummaryAnswer, DeduplicatorUserSummaryAnswer } from '../contract/deduplicator.js'
import { CLAIMS, USER_CLAIMS } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

export const DEDUPLICATOR_ROUTES = routeSection('deduplicator', 'Messages that have been seen.', [
  diagnosticsRoute({
    path: '/deduplicator/summary',
    operationId: 'getDeduplicatorSummary',
    summary: 'How many messages are remembered, and how many were duplicates',
    requires: ['deduplicator'],
    response: DeduplicatorSummaryAnswer,
    example: CLAIMS,
    read: async ({ deduplicator }, _input, { ctx }) =>
      readSummary(DeduplicatorSummaryAnswer, await deduplicator.summary(ctx), ctx.onError),
  }),
  diagnosticsRoute({
    path: '/deduplicator/users/{user_id}',
    operationId: 'getDeduplicatorUserSummary',
    record: true,
    summary: 'The same for one user',
    requires: ['dedup_per_user'],
    scopable: true,
    response: DeduplicatorUserSummaryAnswer,
    example: USER_CLAIMS,
    read: async ({ deduplicator }, { params }, { ctx }) => {
      const summary = await deduplicator.userSummary?.(params.user_id, ctx)
      return summary && readSummary(DeduplicatorUserSummaryAnswer, summary, ctx.onError)
    },
  }),
])
