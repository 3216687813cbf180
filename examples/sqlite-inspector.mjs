/** An inspector over a table with three columns. */

// #region inspector
import { createDiagnosticsRouter, Refusal, resolveAdminAuth } from 'relayscope'

const COLUMNS = 'rowid, id AS context_id, user AS user_id, status'

/** Reads the table `tabs (id TEXT UNIQUE, user TEXT, status TEXT)` of `db`. */
export function inspectTabs(db) {
  return {
    getContext: (id) => db.prepare(`SELECT ${COLUMNS} FROM tabs WHERE id = ?`).get(id) ?? null,

    listContexts(filter, { limit, cursor, order }) {
      if (cursor !== null && !/^[0-9]{1,15}$/.test(cursor)) throw new Refusal('invalid_cursor')
      const [from, after, direction] = order === 'newest' ? [1e15, '<', 'DESC'] : [0, '>', 'ASC']
      const page = `SELECT ${COLUMNS} FROM tabs WHERE rowid ${after} ? ORDER BY rowid ${direction} LIMIT ?`
      const rows = db.prepare(page).all(Number(cursor ?? from), limit + 1)
      const has_more = rows.length > limit
      const next_cursor = has_more ? String(rows[limit - 1].rowid) : null
      const matches = (row) => Object.entries(filter).every(([name, value]) => row[name] === value)
      return { items: rows.slice(0, limit).filter(matches), next_cursor, has_more }
    },
  }
}

export const createDiagnostics = (db) =>
  createDiagnosticsRouter({
    inspectors: { contextRegistry: inspectTabs(db) },
    auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  })
// #endregion
