/** The finding about a client that is connected and acknowledges nothing. */
import { describe, expect, it } from 'vitest'
import type { FakeWorld } from '../../src/testing/kits.js'
import type { Finding } from '../../src/views/findings/finding.js'
import { acknowledged, at, command, confirmed, desk, findingsOf, leftUnanswered } from './finding-worlds.js'
import { node } from './world.js'

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
})
