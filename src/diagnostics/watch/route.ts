/** The route of watches. It returns no JSON and is therefore not part of the table of routes that do. */

import * as z from 'zod'
import { SourceName } from '../../contract/capabilities.js'
import { Timestamp } from '../../contract/ids.js'
import { type JsonObject, JsonRecord } from '../../contract/json.js'
import { eventContent, problemResponses, ref } from '../../http/operations-document.js'
import type { ProblemCode } from '../../http/problem.js'
import { exampleTime } from '../examples.js'

export const WATCH = {
  route: {
    path: '/watch',
    operationId: 'watchLists',
    summary: 'The changes of lists, live, as server-sent events',
    needs: SourceName.options,
    operation: 'watch',
    // Each view is checked by itself.
    scopable: true,
  },
} as const

/** The problems of a watch before it begins: those of its views, and too many watches. */
export const WATCH_PROBLEMS: readonly ProblemCode[] = [
  'forbidden',
  'admin_key_required',
  'not_narrowable',
  'method_not_allowed',
  'deployment_mismatch',
  'uri_too_long',
  'invalid_query',
  'invalid_cursor',
  'share_exceeded',
  'internal',
  'inspector_absent',
  'operation_absent',
  'inspector_unavailable',
  'inspector_timeout',
]

const EXAMPLE = `event: sync\ndata: ${JSON.stringify({ view: '/connections', version: 7, observed_at: exampleTime(30), refresh_ms: 1_000 })}\n\n`

/** The operation of the OpenAPI document. */
export function watchOperation(): JsonObject {
  const { operationId, summary, needs } = WATCH.route
  const frames = {
    snapshot: 'WatchSnapshot',
    delta: 'WatchDelta',
    sync: 'WatchSync',
    reset: 'WatchReset',
    end: 'WatchEnd',
  }
  return {
    operationId,
    summary,
    tags: ['watch'],
    'x-capability': needs[0] as string,
    'x-any-capability': [...needs],
    parameters: [
      {
        name: 'view',
        in: 'query',
        required: true,
        description: 'Path and query of a list below the prefix, at most 2,048 characters. Repeatable.',
        schema: { type: 'array', items: { type: 'string', maxLength: 2_048 }, minItems: 1, maxItems: 8 },
        explode: true,
        example: ['/connections?status=connected'],
      },
      ref('ExpectedDeploymentId', 'parameters'),
    ],
    responses: {
      '200': { description: summary, ...eventContent(frames, EXAMPLE) },
      ...problemResponses(WATCH_PROBLEMS),
    },
  }
}

// Schemas of the frames of a watch, for its OpenAPI description.

const view = z.string().describe('The view, as the request named it.')
const version = z.int().min(1).describe('Number of the state of the view; it increases by one with each change.')
const observed_at = Timestamp.describe('When the view was read last.')
const refresh_ms = z
  .int()
  .min(1_000)
  .describe(
    'Ms between two readings of the view: 1,000, or more where the watches of a principal cost more than its share.',
  )
const rows = z.array(JsonRecord)

/** The current state. Replaces the previous state. */
export const WatchSnapshot = z
  .object({
    view,
    version,
    observed_at,
    refresh_ms,
    row_id: z.array(z.string()).describe('The fields that name a row: the value of one, or the JSON list of several.'),
    page: JsonRecord.describe('The page that a GET of the view returns.'),
  })
  .describe('The current state of the view. Replaces any previous state.')

/** A change. Clients reject one whose `from` is not their own version. */
export const WatchDelta = z
  .object({
    view,
    from: z
      .int()
      .min(1)
      .describe('The version that the change applies to. Clients reject a change to a version other than their own.'),
    version,
    observed_at,
    refresh_ms,
    upsert: rows.describe('New and changed rows, complete.'),
    remove: z.array(z.string()).describe('Ids of removed rows.'),
    order: z
      .array(z.string())
      .nullable()
      .describe(
        'Ids of all rows in order; `null` if the remaining rows keep their order. Then `new_rows` says where new rows are inserted.',
      ),
    new_rows: z
      .enum(['last', 'first'])
      .describe('Where new rows are inserted while `order` is `null`, in the order of `upsert`.'),
    page: JsonRecord.describe('The page without its items.'),
  })
  .describe('The changes since a version.')

/** Nothing changed up to `observed_at`. Sent at least every 15 s while the sources answer. */
export const WatchSync = z
  .object({ view, version, observed_at, refresh_ms })
  .describe(
    'Nothing changed up to `observed_at`. Sent at least every 15 s while the sources answer. The same `observed_at` again: the view was not read since, because of its `refresh_ms`.',
  )

/** The server does not know what this client missed: a snapshot follows. */
export const WatchReset = z
  .object({ view })
  .describe('The server does not know what this client missed. A snapshot follows.')

/** The last frame. */
export const WatchEnd = z
  .object({
    reason: z
      .enum(['forbidden', 'scope_changed'])
      .describe('`forbidden`: the caller no longer has access. `scope_changed`: the caller may see other users now.'),
    retry: z.int().min(0).nullable().describe('Milliseconds after which to reconnect; `null` if the client must not.'),
  })
  .describe('The last frame.')
