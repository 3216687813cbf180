/** Format of a stored context. */
import * as z from 'zod'
import { Context } from '../../contract/contexts.js'
import type { TableReader } from '../table/rows.js'
import { Millis, timestampOf } from '../table/timestamp.js'

const StoredContext = Context.omit({ status: true, task_assigned_at: true, created_at: true, updated_at: true }).extend(
  {
    status: z.enum(['active', 'idle', 'closed']),
    task_assigned_at: Millis.nullable(),
    created_at: Millis,
    updated_at: Millis,
    ttl_ms: Millis,
  },
)

export const CONTEXTS: TableReader<Context, z.infer<typeof StoredContext>> = {
  name: 'contexts',
  idOf: ({ context_id }) => context_id,
  schema: StoredContext,
  indexes: ['task_id', 'window_id', 'user_id'],
  // Field by field, because spreading the fifty rows of a page costs more than parsing them.
  read(row, now) {
    const silence = now - row.updated_at
    if (silence >= (row.status === 'closed' ? 1 : 2) * row.ttl_ms) return undefined
    return {
      context_id: row.context_id,
      user_id: row.user_id,
      client_id: row.client_id,
      instance_id: row.instance_id,
      client_type: row.client_type,
      status: row.status !== 'closed' && silence >= row.ttl_ms ? 'stale' : row.status,
      ownership: row.ownership,
      window_id: row.window_id,
      task_id: row.task_id,
      task_assigned_at: row.task_assigned_at === null ? null : timestampOf(row.task_assigned_at),
      created_at: timestampOf(row.created_at),
      updated_at: timestampOf(row.updated_at),
    }
  },
}
