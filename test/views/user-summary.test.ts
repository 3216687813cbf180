/** What all sources together say of one user. */
import { describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { summarizeUser } from '../../src/internal/views/user-observation.js'
import { createFakeInspectors as fakes } from '../../src/testing/kits.js'
import { browserWindow, call, connection, context, stream } from '../diagnostics/world.js'
import { createInspectionContext, listOf } from './subject.js'

describe('/users/{user_id}/summary', () => {
  const whole = {
    connections: [connection(), connection({ connection_id: 'c-2', client_id: 'phone', client_type: 'mobile' })],
    contexts: [context(), context({ context_id: 'x-2', status: 'stale' })],
    browserWindows: [browserWindow()],
    calls: [call()],
    streams: [stream()],
    deduplicator: { users: [{ user_id: 'alice', entries: 3, accepted: 3, duplicates: 1, oldest_at: null }] },
  }

  it('says what every source knows', async () => {
    expect(await summarizeUser(fakes(whole), 'alice', createInspectionContext().ctx)).toEqual({
      user_id: 'alice',
      sources: ['registry', 'context_registry', 'browser_window_registry', 'rpc', 'history', 'deduplicator'],
      observed_connections: 2,
      observed_client_types: ['browser', 'mobile'],
      observed_action_types: ['close', 'open'],
      observed_contexts: 1,
      observed_browser_windows: 1,
      last_seen_at: connection().last_seen_at,
      observed_client_ids: ['desk', 'phone'],
      contexts_by_status: { active: 0, idle: 1, closed: 0, stale: 1 },
      browser_windows_by_status: { open: 1, stale: 0, closed: 0 },
      observed_streams: 1,
      pending_rpc: 1,
      deduplicator: whole.deduplicator.users[0],
      completeness: expect.objectContaining({ complete: true, truncated_sources: [] }),
    })
  })

  it('has zeros for sources that do not know the user, and null for sources that are not there', async () => {
    const empty = { ...whole, contexts: [], browserWindows: [], calls: [], streams: [], deduplicator: { users: [] } }
    expect(await summarizeUser(fakes(empty), 'alice', createInspectionContext().ctx)).toMatchObject({
      observed_contexts: 0,
      contexts_by_status: { active: 0, idle: 0, closed: 0, stale: 0 },
      browser_windows_by_status: { open: 0, stale: 0, closed: 0 },
      observed_streams: 0,
      pending_rpc: 0,
      deduplicator: null,
    })
    expect(
      await summarizeUser(fakes({ connections: [connection()] }), 'alice', createInspectionContext().ctx),
    ).toMatchObject({
      sources: ['registry'],
      observed_contexts: null,
      contexts_by_status: null,
      browser_windows_by_status: null,
      observed_streams: null,
      pending_rpc: null,
      deduplicator: null,
    })
  })

  it('is null only when every source was examined in full and none knows the user', async () => {
    expect(await summarizeUser(fakes(whole), 'missing', createInspectionContext().ctx)).toBeNull()
    const cut: Inspectors = {
      ...fakes(whole),
      rpc: {
        listPending: (_, { cursor }) => ({ items: [], next_cursor: `${cursor}x`.slice(-50), has_more: true }),
        getPending: () => null,
      },
    }
    const failed: Inspectors = {
      ...fakes(whole),
      rpc: { listPending: () => Promise.reject(new Error('down')), getPending: () => null },
    }
    const deduplicator = {
      summary: () => Promise.reject(new Error('down')),
      userSummary: () => Promise.reject(new Error('down')),
    }
    for (const [inspectors, source] of [
      [cut, 'rpc'],
      [failed, 'rpc'],
      [{ ...fakes(whole), deduplicator }, 'deduplicator'],
    ] as const) {
      const summary = await summarizeUser(inspectors, 'missing', createInspectionContext().ctx)
      expect(summary).toMatchObject({
        sources: [],
        observed_connections: 0,
        completeness: { complete: false, truncated_sources: [source] },
      })
      if (source === 'rpc') expect(summary?.pending_rpc).toBeNull()
    }
  })

  it('does not take entries of others for those of the user when a source ignores its filter', async () => {
    const { list } = listOf([connection({ connection_id: 'b', user_id: 'bob' }), connection()])
    const registry = {
      listConnections: (_: object, page: { limit: number; cursor: string | null }) => list({}, page),
      getConnection: () => null,
    }
    expect(await summarizeUser({ registry }, 'alice', createInspectionContext().ctx)).toMatchObject({
      observed_connections: 1,
    })
  })
})
