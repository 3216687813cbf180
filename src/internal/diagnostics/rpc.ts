/** The routes of the rpc family. */

import * as z from 'zod'
import { readSummary } from '../contract/answer.js'
import { idField, idInput, Timestamp, toTimestamp } from '../contract/ids.js'
import { pageSchema } from '../contract/page.js'
import {
  EndedCallAnswer,
  EndedCallFilter,
  PendingCallAnswer,
  PendingCallFilter,
  RpcSummaryAnswer,
} from '../contract/rpc.js'
import { CALL, CALLS, ENDED_CALL, exampleTime, lastPage } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

/** Whether an instance held its client at `checked_at`. An unknown instance is not current; it is no 404. */
export const InstanceStatus = z
  .object({
    instance_id: idField('instance_id'),
    current: z.boolean().describe('Whether it held its client then; an unknown instance does not.'),
    current_instance_id: z.string().nullable().describe('The instance that did; `null` if none did.'),
    checked_at: Timestamp.describe('When this was read.'),
  })
  .describe('Whether an instance held its client at `checked_at`.')

export const RPC_ROUTES = routeSection('rpc', 'Calls that wait for their reply, and instance fencing.', [
  diagnosticsRoute({
    path: '/rpc/summary',
    operationId: 'getRpcSummary',
    summary: 'Number of pending calls, and how the others ended',
    requires: ['rpc_summary'],
    response: RpcSummaryAnswer,
    example: CALLS,
    read: async ({ rpc }, _input, { ctx }) => readSummary(RpcSummaryAnswer, await rpc.summary?.(ctx), ctx.onError),
  }),
  diagnosticsRoute({
    path: '/rpc/pending',
    compared: ({ age_ms, ...call }: PendingCallAnswer) => call,
    operationId: 'listPendingCalls',
    summary: 'Calls that wait for their reply, the oldest first unless `order` says otherwise',
    requires: ['rpc'],
    scopable: true,
    page: 'paged',
    order: 'oldest',
    query: PendingCallFilter,
    response: pageSchema(PendingCallAnswer),
    example: lastPage(CALL),
    read: ({ rpc }, { filter, page }, { ctx }) => rpc.listPending(filter, page, ctx),
  }),
  diagnosticsRoute({
    path: '/rpc/pending/{correlation_id}',
    operationId: 'getPendingCall',
    record: true,
    summary: 'One call that waits for its reply',
    requires: ['rpc'],
    scopable: true,
    response: PendingCallAnswer,
    example: CALL,
    read: ({ rpc }, { params }, { ctx }) => rpc.getPending(params.correlation_id, ctx),
  }),
  diagnosticsRoute({
    path: '/rpc/ended',
    operationId: 'listEndedCalls',
    summary: 'Calls that ended in the last hour, the newest first unless `order` says otherwise',
    requires: ['rpc_ended'],
    scopable: true,
    page: 'paged',
    order: 'newest',
    query: EndedCallFilter,
    response: pageSchema(EndedCallAnswer),
    example: lastPage(ENDED_CALL),
    read: ({ rpc }, { filter, page }, { ctx }) => rpc.listEnded?.(filter, page, ctx),
  }),
  diagnosticsRoute({
    path: '/rpc/ended/{correlation_id}',
    operationId: 'getEndedCall',
    record: true,
    summary: 'One call that ended in the last hour',
    requires: ['rpc_ended'],
    scopable: true,
    response: EndedCallAnswer,
    example: ENDED_CALL,
    read: ({ rpc }, { params }, { ctx }) => rpc.getEnded?.(params.correlation_id, ctx),
  }),
  diagnosticsRoute({
    path: '/rpc/instances/{instance_id}',
    operationId: 'checkInstance',
    summary: 'Whether an instance holds its client now',
    requires: ['rpc_instance_check'],
    scopable: true,
    query: z.object({ user_id: idInput('user_id'), client_id: idInput('client_id') }),
    response: InstanceStatus,
    example: {
      instance_id: 'laptop-7f3a',
      current: true,
      current_instance_id: 'laptop-7f3a',
      checked_at: exampleTime(30),
    },
    read: async ({ rpc }, { params: { instance_id }, filter }, view) => {
      const check = await rpc.checkInstance?.({ ...filter, instance_id }, view.ctx)
      return check && { ...check, instance_id, checked_at: toTimestamp(view.now()) }
    },
  }),
])
