import { describe, expect, it, onTestFinished } from 'vitest'
import { createDiagnosticsRouter, noopAuth, openApiDocument } from '../../src/index.js'
import { RECORD_FAMILIES } from '../../src/mcp/tools/records.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { call, connectHttp, ERAS, fetchRoute, serve } from './subject.js'
import { describeTools, router } from './tools.js'

type Json = Record<string, unknown>

/** The first record of a family. */
async function itemIn(agent: Parameters<typeof call>[0], family: string): Promise<Json> {
  const { content } = await call(agent, 'find_records', { family, limit: 1 })
  return (content as unknown as { untrusted: [Json] }).untrusted[0]
}

describeTools(ERAS.map((era) => [`streamable HTTP, ${era}`, async () => connectHttp(await serve({ router }), era)]))

describe('what a tool does not know', () => {
  it.each([
    ['relay_overview', { user_id: 'bob' }],
    ['find_records', { family: 'connections', user_id: 'bob' }],
    ['find_records', { family: 'connections', filter: { user_id: 'bob' } }],
    ['get_record', { family: 'sites', id: 'notes-1', user_id: 'bob' }],
    ['user_summary', { user_id: 'alice', client_id: 'desk' }],
    ['command_evidence', { user_id: 'alice', client_id: 'desk', command_id: 'cmd-1', state: 'failed' }],
    ['explain_command', { user_id: 'alice', client_id: 'desk', command_id: 'cmd-1', state: 'failed' }],
    ['explain_findings', { kinds: 'counts_disagree' }],
  ])('is refused, and not left out: %s %j', async (tool, given) => {
    const { isError, text } = await fetchRoute({ router }, tool, given)
    expect([isError, text]).toEqual([true, expect.stringContaining('Unrecognized key')])
  })

  it.each([
    ['find_records', { family: 'connections', filters: JSON.parse('{"__proto__":"x"}') }, '__proto__ is no filter'],
    // The name after unescaping.
    ['find_records', { family: 'connections', filters: { '<U+005F>_proto__': 'x' } }, '__proto__ is no filter'],
    ['find_records', { family: 'connections', filters: { constructor: 'x' } }, '422 invalid_query'],
    ['explain_findings', { kind: '' }, '422 invalid_query'],
    ['explain_findings', { cursor: '' }, '422 invalid_'],
  ])('is refused under whatever name: %s %j', async (tool, given, words) => {
    const { isError, text } = await fetchRoute({ router }, tool, given)
    expect([isError, text]).toEqual([true, expect.stringContaining(words)])
  })
})

describe('the tools over the facilities in memory', () => {
  it('show a command that waits, whose it is, and nothing of what it carries', async () => {
    const facilities = createMemoryFacilities()
    onTestFinished(async () => void (await facilities.close()))
    const { connections, dispatcher } = facilities
    const client = { user_id: 'ann', client_id: 'laptop', instance_id: 'run' }
    await connections.connect({ ...client, client_type: 'web' })
    const command = { user_id: 'ann', client_id: 'laptop', command_id: 'sync-1' }
    await dispatcher.dispatch({
      ...command,
      scope_id: 'ann',
      payload: { text: 'secret of ann' },
      action: 'sync',
      deadline_ms: 60_000,
    })
    const diagnostics = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth() })
    const agent = await connectHttp(await serve({ router: diagnostics }))
    const answers = [
      await call(agent, 'relay_overview'),
      await call(agent, 'find_records', { family: 'commands', filters: { state: 'waiting' } }),
      await call(agent, 'get_record', {
        family: 'connections',
        id: (await itemIn(agent, 'connections')).connection_id,
      }),
      await call(agent, 'user_summary', { user_id: 'ann' }),
      await call(agent, 'command_evidence', command),
      await call(agent, 'explain_findings'),
    ]
    expect(answers.map(({ content }) => content)).toMatchObject([
      { untrusted: { connections: { total: 1 }, delivery: { tracked_commands: 1 } } },
      { complete: true, untrusted: [{ ...command, state: 'waiting' }] },
      { untrusted: { user_id: 'ann', status: 'connected' } },
      { untrusted: { observed_connections: 1 } },
      { untrusted: { ...command, attempts: { count: 0 }, terminal: null } },
      { untrusted: expect.any(Array) },
    ])
    // On a busy machine it has waited for so long by then that this is one; nothing else is.
    const findings = answers.at(-1)?.content as { untrusted: { kind: string }[] }
    expect(findings.untrusted.filter(({ kind }) => kind !== 'command_waiting_though_listened')).toEqual([])
    expect(JSON.stringify(answers)).not.toContain('secret of ann')
  })
})

describe('the list of tools', () => {
  it('takes fewer than 2300 tokens', async () => {
    const { tools } = await (await connectHttp(await serve())).listTools()
    // Three bytes to a token: tokenizers of today make fewer tokens of such text, four bytes and more to each.
    const tokens = Math.ceil(new TextEncoder().encode(JSON.stringify(tools)).byteLength / 3)
    expect(tokens).toBeLessThan(2_300)
  })

  it('is the same each time', async () => {
    const list = async () => JSON.stringify((await (await connectHttp(await serve())).listTools()).tools)
    expect(await list()).toBe(await list())
  })
})

describe('the families', () => {
  const { paths, components } = openApiDocument() as {
    paths: Record<string, { get: { responses: Record<string, { content?: Json }> } }>
    components: { schemas: Record<string, { properties?: Json }> }
  }
  /** Whether its answer is a page, or a counted sample. */
  const isList = (path: string) => {
    const [, name = ''] = /schemas\/(\w+)"/.exec(JSON.stringify(paths[path]?.get.responses['200']?.content ?? {})) ?? []
    const members = Object.keys(components.schemas[name]?.properties ?? {})
    return members.includes('items') && ['has_more', 'count'].some((member) => members.includes(member))
  }

  it('are all that the router lists', () => {
    const lists = Object.keys(paths).filter(isList)
    const result = Object.values(RECORD_FAMILIES).map(({ list }) => list as string)
    // What findings are has a tool of its own.
    expect(lists.filter((path) => path !== '/findings').sort()).toEqual(result.sort())
  })

  it('can be asked for one record wherever the router can', () => {
    const single = Object.values(RECORD_FAMILIES).flatMap((family) => ('one' in family ? [family.one] : []))
    const whole = Object.values(RECORD_FAMILIES).flatMap(({ list }) =>
      Object.keys(paths).filter((path) => path.startsWith(`${list}/{`) && !path.slice(list.length + 2).includes('/')),
    )
    expect(whole.sort()).toEqual(single.sort())
  })
})
