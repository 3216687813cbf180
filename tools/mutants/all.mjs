/** Every mutant. */
import { ACTIONS } from './actions.mjs'
import { BULLMQ } from './bullmq.mjs'
import { DIAGNOSTICS } from './diagnostics.mjs'
import { EDGES } from './edges.mjs'
import { HTTP } from './http.mjs'
import { INGEST } from './ingest.mjs'
import { MCP } from './mcp.mjs'
import { MEMORY } from './memory.mjs'
import { METRICS } from './metrics.mjs'
import { PLUGS } from './plugs.mjs'
import { REDIS } from './redis.mjs'
import { REDIS_DELIVERY } from './redis-delivery.mjs'
import { REDIS_TABLES } from './redis-tables.mjs'
import { SCOPE } from './scope.mjs'
import { STREAMS } from './streams.mjs'
import { VIEWER } from './viewer.mjs'

export const MUTANTS = [
  ...ACTIONS,
  ...STREAMS,
  ...REDIS_DELIVERY,
  ...INGEST,
  ...REDIS,
  ...REDIS_TABLES,
  ...MEMORY,
  ...DIAGNOSTICS,
  ...HTTP,
  ...SCOPE,
  ...METRICS,
  ...MCP,
  ...EDGES,
  ...VIEWER,
  ...PLUGS,
  ...BULLMQ,
]
