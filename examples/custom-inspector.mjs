/** A host that looks at objects of its own: a map of pending calls, shown as the rpc family. */

// #region inspector
import { createDiagnosticsRouter, noopAuth, Refusal } from 'relayscope'

const SEQUENCE = /^[1-9][0-9]{0,14}$/

/**
 * Reads `calls`, the host's own map from ids to `{ sequence, user, client, action, startedAt }` in the order of their
 * sequence. The sequence only grows, so a position in it is a cursor that survives deletes.
 */
export function inspectCalls(calls, now = Date.now) {
  const toRecord = (id, { user, client, action, startedAt }) => ({
    correlation_id: id,
    action,
    user_id: user,
    client_id: client,
    instance_id: null,
    started_at: new Date(startedAt).toISOString(),
    deadline_at: null,
    age_ms: Math.max(0, now() - startedAt),
  })
  return {
    getPending: (id) => (calls.has(id) ? toRecord(id, calls.get(id)) : null),

    listPending(filter, { limit, cursor, order = 'oldest' }) {
      if (cursor !== null && !SEQUENCE.test(cursor)) throw new Refusal('invalid_cursor')
      const isNewest = order === 'newest'
      const items = []
      let position = cursor === null ? (isNewest ? Infinity : 0) : Number(cursor)
      for (const [id, call] of isNewest ? [...calls].reverse() : calls) {
        if (isNewest ? call.sequence >= position : call.sequence <= position) continue
        // The page is full and more follows: continue after its last item.
        if (items.length === limit) return { items, next_cursor: String(position), has_more: true }
        const record = toRecord(id, call)
        if (!Object.entries(filter).every(([name, value]) => record[name] === value)) continue
        items.push(record)
        position = call.sequence
      }
      return { items, next_cursor: null, has_more: false }
    },
  }
}

export function createDiagnostics(calls) {
  return createDiagnosticsRouter({ inspectors: { rpc: inspectCalls(calls) }, auth: noopAuth() })
}
// #endregion
