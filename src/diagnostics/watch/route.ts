/** The route of watches. It returns no JSON and is therefore not part of the table of routes that do. */
import { SourceName } from '../../contract/capabilities.js'
import type { JsonObject } from '../../contract/json.js'
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
