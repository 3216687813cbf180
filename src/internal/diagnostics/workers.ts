/** The routes of the workers view: contexts owned by workers, by their assigned task. */
import * as z from 'zod'
import { ClientType } from '../contract/connections.js'
import { ContextAnswer, isLost } from '../contract/contexts.js'
import { idInput } from '../contract/ids.js'
import { pageSchema } from '../contract/page.js'
import { countWorkers, listWorkers, pageWorkers, WorkerCounts, Workers, workerState } from '../views/workers.js'
import { complete, IDLE_WORKER, lastPage, WORKER } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

// The user is always named: a legacy default string must never stand in for one.
const OfUser = z.object({ user_id: idInput('user_id') })
const WorkerFilter = OfUser.extend({ client_type: ClientType.optional().describe('Only of clients of this type.') })

const COUNTS = {
  user_id: 'ada',
  idle_count: 1,
  assigned_count: 1,
  other_count: 0,
  completeness: complete({ context_registry: 2 }),
}

export const WORKER_ROUTES = routeSection('workers', 'Contexts owned by workers.', [
  diagnosticsRoute({
    path: '/workers',
    operationId: 'listWorkers',
    summary: "A user's worker contexts, the idle ones apart from the assigned ones",
    requires: ['context_registry'],
    scopable: true,
    page: 'limited',
    query: WorkerFilter,
    response: Workers,
    example: { ...COUNTS, idle: [IDLE_WORKER], assigned: [WORKER] },
    read: ({ contextRegistry }, { filter, page }, view) => listWorkers(contextRegistry, filter, page.limit, view),
  }),
  diagnosticsRoute({
    path: '/workers/count',
    operationId: 'countWorkers',
    summary: 'How many worker contexts a user has',
    requires: ['context_registry'],
    scopable: true,
    query: WorkerFilter,
    response: WorkerCounts,
    example: COUNTS,
    read: ({ contextRegistry }, { filter }, view) => countWorkers(contextRegistry, filter, view),
  }),
  diagnosticsRoute({
    path: '/workers/available',
    operationId: 'listAvailableWorkers',
    summary: "A user's idle worker contexts",
    requires: ['context_registry'],
    scopable: true,
    page: 'paged',
    query: WorkerFilter,
    response: pageSchema(ContextAnswer),
    example: lastPage(IDLE_WORKER),
    read: ({ contextRegistry }, { filter, page }, view) =>
      pageWorkers(contextRegistry, filter, page, view, (context) => workerState(context) === 'idle'),
  }),
  diagnosticsRoute({
    path: '/workers/tasks/{task_id}',
    operationId: 'listTaskWorkers',
    summary: 'The worker contexts assigned to one task of a user, and those that crashed with it',
    requires: ['context_registry'],
    scopable: true,
    page: 'paged',
    query: OfUser,
    response: pageSchema(ContextAnswer),
    example: lastPage(WORKER),
    read: ({ contextRegistry }, { params, filter, page }, view) =>
      pageWorkers(
        contextRegistry,
        filter,
        page,
        view,
        (context) => context.task_id === params.task_id && (workerState(context) === 'assigned' || isLost(context)),
      ),
  }),
])
