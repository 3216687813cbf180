/** The chain of links that explains why a command has not arrived. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { Refusal } from '../../src/internal/refusal.js'
import { explainDelivery } from '../../src/internal/views/why.js'
import { DeliveryWhy } from '../../src/internal/views/why-links.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { eventually } from '../contract/delivery-commands.js'

const client = { user_id: 'ada', client_id: 'tab' }
const key = { ...client, command_id: 'c1' }
const instance = { ...client, instance_id: 'i1' }

async function why(inspectors: Inspectors, asked = key) {
  const errors: unknown[] = []
  const view = {
    ctx: { signal: new AbortController().signal },
    now: Date.now,
    onError: (source: string, error: unknown) => errors.push([source, error]),
  }
  const answer = DeliveryWhy.strict().parse(await explainDelivery(inspectors, asked, view))
  const holds = Object.fromEntries(answer.links.map(({ link, holds }) => [link, holds]))
  return { ...answer, holds, errors }
}

/** A relay of one process with one client and one command for it. */
function live() {
  const facilities = createMemoryFacilities()
  onTestFinished(async () => void (await facilities.close()))
  const { connections, dispatcher } = facilities
  const { inspectors } = memoryComposition(facilities)
  return {
    inspectors,
    connections,
    dispatcher,
    connect: () => connections.connect({ ...instance, client_type: 'web' }),
    dispatch: (more: object = {}) => dispatcher.dispatch({ ...key, action: 'sync', ...more }),
  }
}

describe('why a command has not arrived', () => {
  it('moves the verdict from link to link as each starts to hold', async () => {
    const relay = live()
    expect(await why(relay.inspectors)).toMatchObject({ verdict: { link: 'admitted', holds: null } })
    await relay.dispatch({ deadline_ms: 600_000 })
    expect(await why(relay.inspectors)).toMatchObject({
      verdict: { link: 'client_known', holds: false },
      holds: { admitted: true, client_known: false, connected: false, mailbox_attached: false, handed_over: false },
    })
    const { connection_id } = await relay.connect()
    expect(await why(relay.inspectors)).toMatchObject({
      verdict: { link: 'mailbox_attached', holds: false },
      holds: { client_known: true, connected: true },
    })
    await relay.connections.disconnect(connection_id)
    expect(await why(relay.inspectors)).toMatchObject({
      verdict: { link: 'connected', holds: false },
      holds: { client_known: true },
    })
    await relay.connect()
    await relay.dispatcher.attach(instance, () => {})
    await eventually(async () =>
      expect(await why(relay.inspectors)).toMatchObject({
        verdict: { link: 'acknowledged', holds: false },
        holds: { mailbox_attached: true, handed_over: true, ended: false },
      }),
    )
    await relay.dispatcher.acknowledge({ ...instance, command_id: 'c1' })
    expect(await why(relay.inspectors)).toMatchObject({ verdict: { link: 'ended', holds: false } })
    await relay.dispatcher.settle({ ...key, state: 'resulted' })
    const answer = await why(relay.inspectors)
    expect(answer.verdict).toBeNull()
    expect(answer.not_looked_at).toEqual([])
    expect(answer.errors).toEqual([])
    expect(answer.completeness).toMatchObject({ complete: true })
  })

  it('gives evidence, a meaning and its limit for each link', async () => {
    const relay = live()
    await relay.dispatch()
    const { links } = await why(relay.inspectors)
    for (const { link, means, does_not_mean, evidence } of links) {
      expect([link, means, does_not_mean]).toEqual([link, expect.stringMatching(/\.$/), expect.stringMatching(/\.$/)])
      expect([link, evidence.length]).not.toEqual([link, 0])
    }
    expect(links.find(({ link }) => link === 'connected')?.evidence).toMatchObject([
      {
        source: 'registry',
        route: '/connections?user_id=ada&client_id=tab&status=connected',
        field: 'connections',
        value: 0,
      },
    ])
    expect(links.find(({ link }) => link === 'mailbox_attached')?.evidence).toMatchObject([
      { source: 'delivery', route: '/delivery/mailboxes?user_id=ada&client_id=tab', field: 'mailboxes', value: 0 },
    ])
  })

  it('shows a refused admission with its reason', async () => {
    const relay = live()
    await relay.dispatch({ require_waiter: true })
    const { verdict, links } = await why(relay.inspectors)
    expect(verdict).toEqual({ link: 'admitted', holds: false })
    expect(links[0]?.evidence).toContainEqual(expect.objectContaining({ field: 'terminal.reason', value: 'no_waiter' }))
  })

  it('says that a command was refused, and not that it was not acknowledged', async () => {
    const relay = live()
    await relay.connect()
    await relay.dispatch()
    await relay.dispatcher.attach(instance, () => {})
    const handed = { verdict: { link: 'acknowledged', holds: false } }
    await eventually(async () => expect(await why(relay.inspectors)).toMatchObject(handed))
    await relay.dispatcher.acknowledge({ ...key, instance_id: 'i1', state: 'refused' })
    const { verdict, links } = await why(relay.inspectors)
    expect({ verdict }).toEqual(handed)
    expect(links.find(({ link }) => link === 'acknowledged')?.means).toBe('The client refused the command.')
  })

  it('is unknown while an attempt is pending, and broken if every attempt was rejected', async () => {
    const [open, rejected] = [live(), live()]
    for (const relay of [open, rejected]) {
      await relay.connect()
      await relay.dispatch({ max_attempts: 1 })
    }
    await open.dispatcher.attach(instance, () => new Promise(() => {}))
    await eventually(async () =>
      expect(await why(open.inspectors)).toMatchObject({
        verdict: { link: 'handed_over', holds: null },
        holds: { mailbox_attached: true },
      }),
    )
    await rejected.dispatcher.attach(instance, () => Promise.reject(new Error('gone')))
    await eventually(async () =>
      expect(await why(rejected.inspectors)).toMatchObject({
        verdict: { link: 'handed_over', holds: false },
        // It has ended, so only the attempt proves anything about the client.
        holds: { client_known: true, connected: true, mailbox_attached: true, ended: true },
      }),
    )
  })

  it('does not judge a command that has ended by the present state of its client', async () => {
    const at = '2026-01-01T00:00:00.000Z'
    const statuses = [
      { ...key, terminal: { state: 'expired', at: '2026-01-01T00:01:00.000Z', reason: 'deadline_passed' } },
    ] as const
    const connections = [
      { ...instance, connected_at: '2026-01-01T00:00:30.000Z', disconnected_at: null },
      { ...instance, connected_at: '2026-01-01T00:02:00.000Z', disconnected_at: null },
    ]
    const world = { delivery: { statuses: [...statuses], mailboxes: [] } }
    const then = await why(createFakeInspectors({ ...world, connections }))
    expect(then).toMatchObject({
      verdict: { link: 'mailbox_attached', holds: null },
      holds: { connected: true, ended: true },
    })
    expect(then.not_looked_at).toContainEqual({ link: 'mailbox_attached', source: 'delivery', reason: 'over' })
    for (const others of [connections.slice(1), []]) {
      const never = await why(createFakeInspectors({ ...world, connections: others }))
      expect(never).toMatchObject({ verdict: { holds: null }, holds: { connected: null } })
    }
    expect(at).toBe(then.links[0]?.evidence.find(({ field }) => field === 'admission.at')?.value)
  })

  it('keeps what an attempt proves of an open command after its client has gone', async () => {
    const relay = live()
    const { connection_id } = await relay.connect()
    const waiter = await relay.dispatcher.attach(instance, async () => {})
    await relay.dispatch({ deadline_ms: 600_000 })
    await eventually(async () => expect((await why(relay.inspectors)).holds.handed_over).toBe(true))
    await waiter.detach()
    await relay.connections.disconnect(connection_id)
    expect(await why(relay.inspectors)).toMatchObject({
      verdict: { link: 'acknowledged', holds: false },
      holds: { client_known: true, connected: true, mailbox_attached: true, handed_over: true },
    })
  })

  it('makes links of a missing or failing source unknown, never broken', async () => {
    const statuses = [{ ...key }]
    const broken = () => {
      throw new Refusal('unavailable')
    }
    const absent = await why(createFakeInspectors({ delivery: { statuses } }))
    expect(absent).toMatchObject({
      verdict: { link: 'client_known', holds: null },
      holds: { admitted: true, client_known: null, connected: null, mailbox_attached: null, handed_over: false },
      not_looked_at: [
        { link: 'client_known', source: 'registry', reason: 'absent' },
        { link: 'connected', source: 'registry', reason: 'absent' },
        { link: 'mailbox_attached', source: 'delivery', reason: 'absent' },
      ],
    })
    const whole = createFakeInspectors({ connections: [instance], delivery: { statuses, mailboxes: [] } })
    const { registry, delivery } = whole
    if (!registry || !delivery) throw new Error('the world has no such inspectors')
    const failing = await why({ registry: { ...registry, listConnections: broken }, delivery })
    expect(failing).toMatchObject({
      holds: { admitted: true, client_known: null, connected: null, mailbox_attached: false },
      completeness: { complete: false, truncated_sources: ['registry'] },
    })
    expect(failing.not_looked_at).toContainEqual({ link: 'connected', source: 'registry', reason: 'failed' })
    const deaf = await why({ registry, delivery: { ...delivery, status: broken, listMailboxes: broken } })
    expect(Object.values(deaf.holds)).toEqual([null, true, true, null, null, null, null])
    const all = why({
      registry: { ...registry, listConnections: broken },
      delivery: { ...delivery, status: broken, listMailboxes: broken },
    })
    await expect(all).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('does not call a client connected that was attached at a node that does not report any more', async () => {
    const updated_at = '2026-11-26T07:44:35.000Z'
    const world = (stale: boolean) =>
      createFakeInspectors({
        connections: [{ ...instance, status: 'connected', node_id: 'a' }],
        delivery: {
          statuses: [{ ...key }],
          mailboxes: [],
          nodes: [{ node_id: 'b' }, { node_id: 'a', stale, updated_at }],
        },
      })
    const silent = await why(world(true))
    expect(silent).toMatchObject({ verdict: { link: 'connected', holds: null }, not_looked_at: [] })
    const { evidence } = silent.links.find(({ link }) => link === 'connected') ?? {}
    expect(evidence).toContainEqual(expect.objectContaining({ field: 'node_id', value: 'a' }))
    expect(evidence).toContainEqual(
      expect.objectContaining({ route: '/delivery/nodes', field: 'updated_at', value: updated_at }),
    )
    expect(await why(world(false))).toMatchObject({ verdict: { link: 'mailbox_attached', holds: false } })
    // Scoped callers may not see nodes.
    const { registry, delivery } = world(true)
    if (!registry || !delivery) throw new Error('the world has no such inspectors')
    const refused = () => {
      throw new Refusal('not_narrowable')
    }
    const scoped = await why({ registry, delivery: { ...delivery, listNodes: refused } })
    expect(scoped).toMatchObject({
      verdict: { link: 'mailbox_attached' },
      errors: [],
      completeness: { complete: true },
    })
  })

  it('treats an empty page with more to follow, or entries of another client, as unknown', async () => {
    const { registry, delivery } = createFakeInspectors({
      connections: [instance],
      delivery: { statuses: [{ ...key }], mailboxes: [] },
    })
    if (!registry || !delivery) throw new Error('the world has no such inspectors')
    const empty = { items: [], next_cursor: 'more', has_more: true }
    const others = {
      ...(await registry.listConnections({}, { limit: 1, cursor: null }, { signal: AbortSignal.any([]) })),
    }
    for (const page of [empty, { ...others, items: others.items.map((one) => ({ ...one, client_id: 'another' })) }]) {
      const answer = await why({ registry: { ...registry, listConnections: () => page }, delivery })
      expect(answer).toMatchObject({ holds: { client_known: null, connected: null } })
      expect(answer.not_looked_at).toContainEqual({ link: 'connected', source: 'registry', reason: 'cut_short' })
    }
  })

  it('refuses invalid ids', async () => {
    await expect(why(live().inspectors, { ...key, command_id: 'a/b' })).rejects.toMatchObject({
      code: 'invalid_identity',
    })
  })
})
