/** Observed calls in every view of a deployment: search, users, tools of agents, commands of a terminal and incident files. */
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { get } from '../../src/cli/get.js'
import { status } from '../../src/cli/status.js'
import { captureIncident } from '../../src/incident/capture.js'
import { incidentComposition } from '../../src/incident/index.js'
import { createDiagnosticsRouter, type DiagnosticsRouter, noopAuth } from '../../src/index.js'
import { emptyAction } from '../../src/internal/contract/call-counts.js'
import { askRouter, timeless } from '../incident/subject.js'
import { fetchRoute } from '../mcp/subject.js'
import { describeWorlds, type World } from './world.js'

const owner = { user_id: 'ann', client_id: 'desk', instance_id: 'run-1' }

describeWorlds('observed calls', (open) => {
  let world: World
  let router: DiagnosticsRouter
  beforeEach(async () => {
    world = await open()
    router = createDiagnosticsRouter({ inspectors: world.inspectors, auth: noopAuth(), onError: null })
    const { connections, rpc } = world.facilities
    await connections.connect({ ...owner, client_type: 'web' })
    const call = { ...owner, action: 'sync', direction: 'to_client', answered_since: 'none', age_ms: 2_000 } as const
    const lost = { outcome: 'unanswered', ago_ms: 0, connection_reason: 'ping_timeout' } as const
    await rpc.observe({
      observer: 'node-1',
      sequence: 1,
      calls: [
        { ...call, correlation_id: 'call-open' },
        // Of a user without a connection.
        { ...call, user_id: 'bob', correlation_id: 'call-bob' },
        { ...call, correlation_id: 'call-lost', direction: 'to_server', end: lost },
      ],
      actions: [{ ...emptyAction('sync', 'to_client'), succeeded: 7, unanswered: 1 }],
      evicted: 0,
      unrecorded: 0,
    })
  })
  afterEach(() => world.close())

  it('are found by id, and their users by the beginning of theirs', async () => {
    const hits = async (q: string) =>
      (await world.ask<{ hits: { kind: string; route: string }[] }>(`/search?q=${q}`)).hits.map(
        ({ kind, route }) => `${kind} ${route}`,
      )
    expect(await hits('call-open')).toEqual(['call /rpc/pending/call-open'])
    expect(await hits('call-lost')).toEqual(['ended_call /rpc/ended/call-lost'])
    expect(await hits('bo')).toEqual(['user /users/bob/summary'])
  })

  it('are counted in the summary of their user', async () => {
    const summary = { pending_rpc: 1, observed_client_ids: ['desk'] }
    expect(await world.ask('/users/ann/summary')).toMatchObject({ ...summary, observed_connections: 1 })
    expect(await world.ask('/users/bob/summary')).toMatchObject({ ...summary, observed_connections: 0 })
    expect(await world.list('/users')).toMatchObject([{ user_id: 'ann' }, { user_id: 'bob' }])
  })

  it('are in the tools of agents', async () => {
    const records = async (tool: string, given: object) =>
      (await fetchRoute({ router }, tool, given as never)).content?.untrusted as unknown
    const filters = { observed: true, user_id: 'ann' }
    const open = { correlation_id: 'call-open', observed: true, direction: 'to_client', answered_since: 'none' }
    const ended = { correlation_id: 'call-lost', outcome: 'unanswered', connection_reason: 'ping_timeout' }
    expect(await records('find_records', { family: 'calls', filters })).toMatchObject([open])
    expect(await records('find_records', { family: 'ended_calls', filters })).toMatchObject([ended])
    expect(await records('get_record', { family: 'ended_calls', id: 'call-lost' })).toMatchObject(ended)
    expect(await records('relay_overview', {})).toMatchObject({
      calls: { pending: 2, observed: { actions: [{ action: 'sync', succeeded: 7, unanswered: 1 }] } },
      findings: { calls_lost_with_connection: { count: 1 }, client_not_answering: { count: 1 } },
    })
    expect(await records('explain_findings', { kind: 'client_not_answering' })).toMatchObject([
      { subject: { user_id: 'ann', client_id: 'desk' } },
    ])
  })

  it('are in the output of the terminal', async () => {
    const server = await startNodeServer(router)
    onTestFinished(async () => void (await server.close()))
    const url = server.url + router.prefix
    const printed = async (command: typeof get, ...args: string[]) => {
      let text = ''
      const out = { write: (more: string) => (text += more) }
      await command([url, ...args], {}, out, out)
      return text
    }
    expect(await printed(get, '/rpc/pending?observed=true&user_id=ann')).toContain('"correlation_id":"call-open"')
    const shown = await printed(status)
    expect(shown).toContain('1 × client not answering')
    expect(shown).toContain('ann / desk')
    expect(shown).toMatch(/^Calls\n {2}2 open/m)
    expect(shown).toContain('observed, ended: succeeded 7 · failed 0 · cancelled 0 · unanswered 1')
  })

  it('are in an incident file, which answers as the router did', async () => {
    const incident = await captureIncident(router)
    const replay = createDiagnosticsRouter({ ...incidentComposition(JSON.stringify(incident)), auth: noopAuth() })
    for (const path of [
      '/rpc/pending?observed=true&direction=to_client',
      '/rpc/pending/call-open',
      '/rpc/ended?observed=true&outcome=unanswered',
      '/rpc/ended/call-lost',
      '/rpc/summary',
      '/users/ann/summary',
      '/search?q=call-lost',
      '/findings?kind=client_not_answering',
      '/findings?kind=calls_lost_with_connection',
    ]) {
      const [then, now] = [await askRouter(router, path), await askRouter(replay, path)]
      expect(then).toMatchObject({ status: 200 })
      expect({ path, ...now, body: timeless(now.body) }).toEqual({ path, ...then, body: timeless(then.body) })
    }
  })
})
