/** A host that looks at objects of its own: a map of pending calls, shown as the rpc family. */

// #region inspector
import { createDiagnosticsRouter, noopAuth, Refusal } from 'relayscope'

/** Looks at `calls`, a map whose numeric keys only grow, so that a key is a cursor that survives deletes. */
export function inspectCalls(calls, now = Date.now) {
  const toRecord = (id, { user, client, action, startedAt }) => ({
    correlation_id: String(id),
    action,
    user_id: user,
    client_id: client,
    instance_id: null,
    started_at: new Date(startedAt).toISOString(),
    deadline_at: null,
    age_ms: now() - startedAt,
  })
  return {
    getPending: (id) => (calls.has(Number(id)) ? toRecord(Number(id), calls.get(Number(id))) : null),

    listPending(filter, { limit, cursor }) {
      const after = cursor === null ? 0 : Number(cursor)
      if (!Number.isSafeInteger(after)) throw new Refusal('invalid_cursor')
      const items = []
      for (const [id, call] of calls) {
        if (id <= after) continue
        // Something more is there, and the page is full: go on behind its last item.
        if (items.length === limit) return { items, next_cursor: items.at(-1).correlation_id, has_more: true }
        const record = toRecord(id, call)
        if (Object.entries(filter).every(([name, value]) => record[name] === value)) items.push(record)
      }
      return { items, next_cursor: null, has_more: false }
    },
  }
}

export function createDiagnostics(calls) {
  return createDiagnosticsRouter({ inspectors: { rpc: inspectCalls(calls) }, auth: noopAuth() })
}
// #endregion
