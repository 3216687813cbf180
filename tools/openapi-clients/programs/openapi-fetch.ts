/** A client of openapi-fetch over the types of openapi-typescript: what it sends and reads is checked as it is written. */
import { deepEqual, equal } from 'node:assert/strict'
import createClient from 'openapi-fetch'
import type { components, paths } from '../made/diagnostics.js'

const [baseUrl = '', key = ''] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl, headers: { 'X-Admin-Key': key } })

const { data: connections } = await client.GET('/connections', { params: { query: { user_id: 'user-1', limit: 5 } } })
const [connection] = connections?.items ?? []
equal(connection?.connection_id, 'connection-1')

const { data: history } = await client.GET('/connections/{connection_id}/history', {
  params: { path: { connection_id: connection.connection_id } },
})
equal(history?.has_more, false)

const { data: nodes } = await client.GET('/delivery/nodes')
const stale: (boolean | null)[] = nodes?.items.map((node) => node.stale) ?? []
deepEqual(stale, [false, null])

const { error, response } = await client.GET('/connections/{connection_id}', {
  params: { path: { connection_id: 'no-such-connection' } },
})
const code: components['schemas']['ProblemCode'] | undefined = error?.code
deepEqual([response.status, code], [404, 'not_found'])

// @ts-expect-error: none of the statuses
await client.GET('/contexts', { params: { query: { status: 'IDLE' } } })
// @ts-expect-error: a stream is required
await client.GET('/history/messages', {})
