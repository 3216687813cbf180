/** The routes of the workers view: contexts owned by workers, by what they are assigned to. */
import * as z from 'zod'
import { ClientType } from '../contract/connections.js'
import { Context } from '../contract/contexts.js'
import { Id } from '../contract/ids.js'
import type { RouterLimits } from '../contract/limits.js'
import { pageOf } from '../contract/page.js'
import { countWorkers, listWorkers, pageWorkers, WorkerCounts, Workers, workerState } from '../views/workers.js'
import { limitQuery, pageQuery } from './page-query.js'
import { type DiagnosticsRow, diagnosticsRow } from './row.js'

// The user is always named: a legacy default string must never stand in for one.
const OfUser = z.object({ user_id: Id })
const WorkerFilter = OfUser.extend({ client_type: ClientType.optional() })

export function workerRows(limits: RouterLimits): DiagnosticsRow[] {
  return [
    diagnosticsRow({
      path: '/workers',
      summary: "A user's worker contexts, the idle ones apart from the assigned ones",
      needs: ['context_registry'],
      query: limitQuery(limits).extend(WorkerFilter.shape),
      response: Workers,
      ask: ({ contextRegistry }, { filter, page }, view) => listWorkers(contextRegistry, filter, page.limit, view),
    }),
    diagnosticsRow({
      path: '/workers/count',
      summary: 'How many worker contexts a user has',
      needs: ['context_registry'],
      query: WorkerFilter,
      response: WorkerCounts,
      ask: ({ contextRegistry }, { filter }, view) => countWorkers(contextRegistry, filter, view),
    }),
    diagnosticsRow({
      path: '/workers/available',
      summary: "A user's idle worker contexts",
      needs: ['context_registry'],
      query: pageQuery(limits).extend(WorkerFilter.shape),
      response: pageOf(Context),
      ask: ({ contextRegistry }, { filter, page }, view) =>
        pageWorkers(contextRegistry, filter, page, view, (context) => workerState(context) === 'idle'),
    }),
    diagnosticsRow({
      path: '/workers/tasks/{task_id}',
      summary: 'The worker contexts assigned to one task of a user',
      needs: ['context_registry'],
      query: pageQuery(limits).extend(OfUser.shape),
      response: pageOf(Context),
      ask: ({ contextRegistry }, { params, filter, page }, view) =>
        pageWorkers(
          contextRegistry,
          filter,
          page,
          view,
          (context) => workerState(context) === 'assigned' && context.task_id === params.task_id,
        ),
    }),
  ]
}
