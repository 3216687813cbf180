/** The routes of the deduplicator family. */
import { DeduplicatorSummary, DeduplicatorUserSummary } from '../contract/deduplicator.js'
import { NoQuery } from './page-query.js'
import { type DiagnosticsRow, diagnosticsRow } from './row.js'

export function deduplicatorRows(): DiagnosticsRow[] {
  return [
    diagnosticsRow({
      path: '/deduplicator/summary',
      summary: 'How many messages are remembered, and how many were duplicates',
      needs: ['deduplicator'],
      query: NoQuery,
      response: DeduplicatorSummary,
      ask: ({ deduplicator }, _input, { ask }) => deduplicator.summary(ask),
    }),
    diagnosticsRow({
      path: '/deduplicator/users/{user_id}',
      record: true,
      summary: 'The same for one user',
      needs: ['dedup_per_user'],
      query: NoQuery,
      response: DeduplicatorUserSummary,
      ask: ({ deduplicator }, { params }, { ask }) => deduplicator.userSummary?.(params.user_id, ask),
    }),
  ]
}
