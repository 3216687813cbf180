/** Finds ids of current records through the diagnostics routes. */
import { delay } from './client/relay-client.mjs'

// Long enough for all processes to start and do their first work on a slow machine.
const SETTLE_MS = 30_000
const ASK_MS = 5_000

/**
 * Resolves to `{ connection, context, command, message, correlation_id, ended }`, as soon as there is one of each and `isReady()`;
 * to `undefined` when `signal` aborts. Fails when that never comes.
 */
export async function findLiving({ diagnostics, key, isReady, signal }) {
  async function ask(path, query) {
    const until = AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)])
    const url = `${diagnostics}${path}?${new URLSearchParams(query)}`
    const response = await fetch(url, { headers: { 'x-admin-key': key }, signal: until })
    return response.ok ? response.json() : undefined
  }
  const list = async (path, query) => (await ask(path, query))?.items ?? []

  async function look() {
    const context = (await list('/contexts', { ownership: 'worker' })).find(({ task_id }) => task_id !== null)
    if (!context) return undefined
    const { user_id, client_id, task_id } = context
    const command = { user_id, client_id, command_id: task_id }
    const [connection] = await list('/connections', { client_id, status: 'connected' })
    const streams = await list('/history/streams', { user_id })
    const message = streams.find(({ stream }) => stream.includes('/documents/'))
    // The youngest of the slow calls: it is still pending when you paste the request.
    const [call] = (await list('/rpc/pending', { action: 'watch_load' })).sort((a, b) => a.age_ms - b.age_ms)
    const [ended] = await list('/rpc/ended', { limit: 1 })
    const isThere = connection && message && call && ended && (await ask('/delivery/status', command))
    return isThere
      ? { connection, context, command, message, correlation_id: call.correlation_id, ended: ended.correlation_id }
      : undefined
  }

  const until = Date.now() + SETTLE_MS
  while (!signal.aborted) {
    const living = await look().catch(() => undefined)
    if (living && isReady()) return living
    if (Date.now() > until) throw new Error('the clients did not come to life')
    await delay(100, signal)
  }
}
