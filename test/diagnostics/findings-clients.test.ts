/** The findings about a client that is connected and acknowledges nothing, about commands of one that is not, and since when. */
import { describe, expect, it } from 'vitest'
import type { Finding, FindingKind, FindingSummary } from '../../src/internal/views/findings/finding.js'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/kits.js'
import {
  acknowledged,
  at,
  attempted,
  command,
  confirmed,
  desk,
  findingsOf,
  gone,
  leftUnanswered,
  timedOut,
} from './finding-worlds.js'
import { createSubject, get } from './subject.js'
import { call, connection, context, node } from './world.js'

describe('a client that acknowledges nothing', () => {
  const of = async (statuses: object[], query = '?kind=client_not_acknowledging') => {
    const delivery = { statuses, nodes: [node()] } as FakeWorld['delivery']
    return (await findingsOf({ connections: [desk], delivery } as FakeWorld, query)).items
  }

  it('is one finding, since the first end in a row, however many pages its commands fill', async () => {
    const answer = { acknowledgement: { ...acknowledged, at: at(-800_000) } }
    const statuses = [
      leftUnanswered('before', 900_000),
      leftUnanswered('answered', 800_000, {
        ...answer,
        terminal: { state: 'resulted', at: at(-799_000), reason: null },
      }),
      ...Array.from({ length: 8 }, (_, i) => leftUnanswered(`cmd-${i}`, 80_000 - i * 1_000)),
    ]
    const found: Finding[] = []
    let cursor = ''
    do {
      const page = await findingsOf(
        { connections: [desk], delivery: { statuses, nodes: [node()] } } as FakeWorld,
        `?kind=client_not_acknowledging&limit=3${cursor}`,
      )
      found.push(...page.items)
      cursor = page.has_more ? `&cursor=${page.next_cursor}` : ''
    } while (cursor !== '')
    expect(found.map(({ subject, since }) => [subject, since])).toEqual([
      [{ user_id: 'alice', client_id: 'desk' }, at(-80_000)],
    ])
    expect(found[0]?.evidence[0]?.fields).toMatchObject({ unacknowledged_in_a_row: 8, ended_at: at(-73_000) })
  })

  it('is found too where its commands expired, and not where the host settled the last one', async () => {
    const expired = { terminal: { state: 'expired', at: at(-9_000), reason: 'deadline_passed' } }
    const settled = { terminal: { state: 'failed', at: at(-8_000), reason: null } }
    expect(await of([leftUnanswered('cmd-1', 9_000, expired)])).toHaveLength(1)
    expect(await of([leftUnanswered('cmd-1', 9_000, expired), leftUnanswered('cmd-2', 8_000, settled)])).toEqual([])
  })

  it('is not found if one of its commands was acknowledged after the last had ended', async () => {
    const late = { ...acknowledged, at: at(-1_000) }
    const earlier = command({ command_id: 'cmd-0', attempts: confirmed, acknowledgement: late }, at(-90_000))
    expect(await of([earlier, leftUnanswered('cmd-1', 9_000)])).toEqual([])
  })

  it('is counted from the first of its latest 500 commands if more ended so', async () => {
    const statuses = Array.from({ length: 600 }, (_, i) => leftUnanswered(`cmd-${i}`, 80_000 - i * 100))
    const [found] = await of(statuses)
    const first = (statuses as { terminal: { at: string } | null }[]).at(-500)?.terminal?.at
    expect([found?.since, found?.evidence[0]?.fields.unacknowledged_in_a_row]).toEqual([first, 500])
  })

  it('is counted, however many later commands failed at others that had acknowledged them', async () => {
    const failed = { acknowledgement: acknowledged, terminal: { state: 'failed', at: at(-1_000), reason: 'x1' } }
    const others = Array.from({ length: 260 }, (_, i) =>
      leftUnanswered(`x-${i}`, 2_000, { ...failed, client_id: 'tab' }),
    )
    const delivery = { statuses: [leftUnanswered('cmd-1', 9_000), ...others], nodes: [node()] } as FakeWorld['delivery']
    const router = createSubject({ inspectors: createFakeInspectors({ connections: [desk], delivery } as FakeWorld) })
    const { kinds } = (await get(router, '/findings/summary')).body as FindingSummary
    expect(kinds.find(({ kind }) => kind === 'client_not_acknowledging')?.count).toBe(1)
  })
})

describe('a command that was attempted', () => {
  it('is found once its client is not connected', async () => {
    const statuses = [
      command({ command_id: 'cmd-1', client_id: 'gone', attempts: confirmed, recovery: timedOut }),
      command({ command_id: 'cmd-2', client_id: 'gone', attempts: attempted }),
      command({ command_id: 'cmd-3', client_id: 'gone', attempts: confirmed, acknowledgement: acknowledged }),
    ]
    const { items } = await findingsOf({ connections: [desk], delivery: { statuses, nodes: [node()] } } as FakeWorld)
    expect(items.map(({ kind, subject }) => [kind, subject.command_id])).toEqual([
      ['command_waiting_for_nobody', 'cmd-1'],
      ['command_waiting_for_nobody', 'cmd-2'],
    ])
  })
})

describe('since when a client is not connected', () => {
  const ended = connection({
    client_id: 'gone',
    status: 'disconnected',
    disconnected_at: at(-5_000),
    ended_reason: 'client_closed',
  })
  const sinceOf = async (world: FakeWorld, kind: FindingKind) =>
    (await findingsOf(world, `?kind=${kind}`)).items.map(({ since }) => since)

  it('is the time of its disconnect, or of a later report', async () => {
    const contexts = [-9_000, -1_000].map((ms, i) =>
      context({ ...gone, context_id: `ctx-${i}`, status: 'active', updated_at: at(ms) }),
    )
    const since = await sinceOf({ connections: [desk, ended], contexts }, 'context_of_disconnected_client')
    expect(since).toEqual([at(-5_000), at(-1_000)])
  })

  it('is null where no connection of the client is kept', async () => {
    const contexts = [context({ ...gone, status: 'active' })]
    expect(await sinceOf({ connections: [desk], contexts }, 'context_of_disconnected_client')).toEqual([null])
  })

  it('is the time when another instance took over, of a call', async () => {
    const calls = [call({ instance_id: 'inst-0', started_at: at(-60_000) })]
    const taken = { ...desk, connected_at: at(-7_000) }
    expect(await sinceOf({ connections: [taken], calls }, 'call_to_superseded_instance')).toEqual([at(-7_000)])
  })

  it('is looked up for some clients only', async () => {
    const clients = Array.from({ length: 30 }, (_, i) => ({ user_id: 'alice', client_id: `gone-${i}` }))
    const connections = clients.map((client, i) =>
      connection({ ...ended, ...client, connection_id: `ended-${i}`.padEnd(32, 'x') }),
    )
    const contexts = clients.map((client, i) =>
      context({ ...client, context_id: `ctx-${i}`, status: 'active', updated_at: at(-9_000) }),
    )
    const since = await sinceOf({ connections, contexts }, 'context_of_disconnected_client')
    expect(since.filter((time) => time === at(-5_000))).toHaveLength(20)
    expect(since.filter((time) => time === null)).toHaveLength(10)
  })
})
