/** A client that @hey-api/openapi-ts has generated: a function for each operation. */
import { deepEqual, equal } from 'node:assert/strict'
import { client } from '../made/hey-api/diagnostics/client.gen.js'
import type { ProblemCode } from '../made/hey-api/diagnostics/index.js'
import * as diagnostics from '../made/hey-api/diagnostics/index.js'

const [baseUrl = '', key = ''] = process.argv.slice(2)
client.setConfig({ baseUrl: baseUrl as never, headers: { 'X-Admin-Key': key } })

const { data: connections } = await diagnostics.listConnections({ query: { user_id: 'user-1', limit: 5 } })
equal(connections?.items[0]?.connection_id, 'connection-1')

const { data: status } = await diagnostics.getDeliveryStatus({
  query: { user_id: 'user-1', client_id: 'client-1', command_id: 'command-1' },
})
equal(status?.admission?.state, 'admitted')

const { error, response } = await diagnostics.getConnection({ path: { connection_id: 'no-such-connection' } })
const code: ProblemCode | undefined = error?.code
deepEqual([response?.status, code], [404, 'not_found'])

// @ts-expect-error: none of the statuses
await diagnostics.listContexts({ query: { status: 'IDLE' } })
// @ts-expect-error: a stream is required
await diagnostics.listHistoryMessages({})
