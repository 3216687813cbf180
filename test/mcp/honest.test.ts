import { describe, expect, it } from 'vitest'
import { noopAuth } from '../../src/index.js'
import type { Connection } from '../../src/internal/contract/connections.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { createSubject, createWatched, never } from '../diagnostics/subject.js'
import { connection, createWorld, message } from '../diagnostics/world.js'
import { callMessage, fenced, fetchRoute, message as post, subject } from './subject.js'

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).byteLength

/** A router over so many connections, each with metadata of so many characters. */
function withConnections(count: number, metadata: (i: number) => Connection['metadata'] = () => ({})) {
  const connections = Array.from({ length: count }, (_, i) =>
    connection({ connection_id: `c-${i}`, client_id: `client-${i}`, metadata: metadata(i) }),
  )
  return createSubject({ inspectors: createFakeInspectors({ ...createWorld(), connections }) })
}

describe('a page', () => {
  it('is twenty records unless asked otherwise, says that it is no total, and leads to the end by its cursors', async () => {
    const router = withConnections(45)
    const seen: unknown[] = []
    let cursor: unknown
    for (const size of [20, 20, 5]) {
      const given = { family: 'connections', ...(cursor === undefined ? {} : { cursor }) }
      const { content, text } = await fetchRoute({ router }, 'find_records', given)
      const records = (content as unknown as { untrusted: { connection_id: string }[] }).untrusted
      expect(records).toHaveLength(size)
      expect(content?.complete).toBe(false)
      expect(text).toContain('NOT COMPLETE: a part, never a total.')
      seen.push(...records.map((record) => record.connection_id))
      cursor = content?.next_cursor
      if (cursor !== null) expect(text).toContain(`next_cursor ${cursor}`)
    }
    expect(cursor).toBeNull()
    expect(new Set(seen).size).toBe(45)
  })

  it('is complete where it is the whole list', async () => {
    const { content, text } = await fetchRoute({ router: withConnections(20) }, 'find_records', {
      family: 'connections',
    })
    expect(content).toMatchObject({ complete: true, notes: [], next_cursor: null })
    expect(text).toContain('Complete.')
    expect(text).not.toContain('NOT COMPLETE')
  })

  it('says what it left out, and what was cut short', async () => {
    const inspectors = createFakeInspectors(createWorld())
    const connections = [connection(), { connection_id: 7 } as never]
    const broken = createFakeInspectors({ ...createWorld(), connections })
    const omitted = await fetchRoute(
      { router: createSubject({ inspectors: { ...inspectors, registry: broken.registry } }) },
      'find_records',
      { family: 'connections' },
    )
    expect(omitted.content).toMatchObject({ complete: false, notes: ['1 record of this range cannot be shown.'] })
    const messages = Array.from({ length: 30 }, (_, i) => message({ message_id: `m-${i}`, sequence: i + 1 }))
    const sampled = await fetchRoute(
      { router: createSubject({ inspectors: createFakeInspectors({ ...createWorld(), messages }) }) },
      'find_records',
      { family: 'messages', filters: { stream: 'users/alice/log' }, limit: 5 },
    )
    expect(sampled.content).toMatchObject({
      complete: false,
      notes: expect.arrayContaining([expect.stringMatching(/^A sample/)]),
    })
  })
})

describe('an aggregate', () => {
  it.each(['users', 'user'])('over a source that fails is a sample, and names it: %s', async (what) => {
    const { router } = createWatched({ deadlineMs: 8_000 }, (result) => {
      if (result.name.startsWith('rpc.')) throw new Error('down')
      return result.proceed()
    })
    const { content, text } =
      what === 'users'
        ? await fetchRoute({ router }, 'find_records', { family: 'users' })
        : await fetchRoute({ router }, 'user_summary', { user_id: 'alice' })
    expect(content).toMatchObject({ complete: false })
    expect(text).toContain('A sample: cut short in rpc.')
    expect(text).toContain('NOT COMPLETE')
    if (what === 'user') expect(content).toMatchObject({ untrusted: { pending_rpc: null } })
  })

  it('that is bounded is a sample', async () => {
    const router = createSubject({ limits: { examined: 2 } })
    const { content, text } = await fetchRoute({ router }, 'user_summary', { user_id: 'alice' })
    expect(content?.complete).toBe(false)
    expect(text).toContain('counts are lower bounds')
  })
})

describe('the overview', () => {
  it('lists what is unknown and what is absent, and shows neither as 0', async () => {
    const { router } = createWatched({ deadlineMs: 8_000 }, (result) =>
      result.name.startsWith('delivery.') ? never() : result.proceed(),
    )
    const { content, text } = await fetchRoute({ router }, 'relay_overview')
    expect(content).toMatchObject({
      complete: false,
      untrusted: { delivery: null, nodes: null, connections: { total: 6 } },
    })
    expect(text).toContain('delivery: unknown: 504 inspector_timeout')
    expect(text).toContain('Unknown: delivery did not respond.')
    const { registry } = createFakeInspectors(createWorld())
    const small = await fetchRoute({ router: createSubject({ inspectors: { registry } }) }, 'relay_overview')
    expect(small.content).toMatchObject({ complete: true, untrusted: { calls: null, delivery: null } })
    expect(small.text).toContain('calls: not part of this deployment.')
  })

  it('says which numbers are those of a sample, and that of nothing is missing', async () => {
    const { delivery, ...rest } = createWorld()
    const sampled = {
      ...rest,
      delivery: { ...delivery, summary: { ...delivery.summary, tracked_commands: 9, sample_size: 4 } },
    }
    const { text, content } = await fetchRoute(
      { router: createSubject({ inspectors: createFakeInspectors(sampled) }) },
      'relay_overview',
    )
    expect(text).toContain('those of a sample of 4, not of all tracked commands')
    expect(content?.complete).toBe(true)
  })

  it('counts the findings of each kind, and says of which there may be more', async () => {
    const calls = Array.from({ length: 130 }, (_, i) => ({
      ...createWorld().calls[0],
      correlation_id: `call-${i}`,
      client_id: 'desk-1',
      instance_id: 'old',
    }))
    const inspectors = createFakeInspectors({ ...createWorld(), calls: calls as never })
    const overviewOf = (options: object) =>
      fetchRoute({ router: createSubject({ inspectors, ...options }) }, 'relay_overview')
    const { content } = await overviewOf({})
    expect(content?.untrusted).toMatchObject({
      findings: { call_to_superseded_instance: { count: 130 } },
    })
    const { text } = await overviewOf({ limits: { examined: 100 } })
    expect(text).toMatch(/findings: at least this many of .*call_to_superseded_instance/)
  })
})

describe('an overview without all inspectors', () => {
  it('names the kinds of findings that could not be checked, and is complete for what the deployment has', async () => {
    const { sessions, ...rest } = createFakeInspectors(createWorld())
    const router = createSubject({ inspectors: rest })
    const { content } = await fetchRoute({ router }, 'relay_overview')
    const { content: findings } = await fetchRoute({ router }, 'explain_findings')
    expect(content?.complete).toBe(true)
    const [note = ''] = findings?.notes.filter((each) => each.startsWith('No source here can show these kinds')) ?? []
    expect(note).not.toBe('')
    expect(content?.notes).toContain(`findings: ${note}`)
  })

  it('counts the nodes that cannot be shown', async () => {
    const world = createWorld()
    const { delivery } = createFakeInspectors({
      ...world,
      delivery: { ...world.delivery, nodes: [...(world.delivery?.nodes ?? []), { node_id: 7 } as never] },
    })
    const router = createSubject({ inspectors: { ...createFakeInspectors(world), delivery } as never })
    const { content } = await fetchRoute({ router }, 'relay_overview')
    expect(content).toMatchObject({
      complete: false,
      notes: expect.arrayContaining(['nodes: 1 record of this range cannot be shown.']),
    })
  })
})

describe('messages that find no room', () => {
  const messages = Array.from({ length: 20 }, (_, i) =>
    message({ message_id: `m-${i}`, sequence: i + 1, payload: { text: 'x'.repeat(3_000) } }),
  )
  const router = createSubject({ inspectors: createFakeInspectors({ ...createWorld(), messages }) })
  const given = { family: 'messages', filters: { stream: 'users/alice/log' } }

  it('are the oldest ones: it says that it shows the newest', async () => {
    const { content, text } = await fetchRoute({ router, payloads: true }, 'find_records', given)
    const shown = (content as unknown as { untrusted: { message_id: string }[] }).untrusted
    expect(shown.length).toBeGreaterThan(1)
    expect(shown.length).toBeLessThan(20)
    expect(shown.map(({ message_id }) => message_id)).toEqual(
      messages.slice(-shown.length).map(({ message_id }) => message_id),
    )
    expect(text).toMatch(new RegExp(`^messages: ${shown.length} records\\.`))
    expect(content?.notes).toContain('A sample: the newest ones. There may be older ones.')
    expect(text).toContain(`${shown.length} of 20 shown`)
    // This list has no cursor.
    expect(text).not.toContain('next_cursor is withheld')
  })
})

describe('the bytes of an answer', () => {
  it('are bounded where a record has many members, of which some are named', async () => {
    const record = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, i) => [`m${'x'.repeat(58)}${i}`, 'y'.repeat(20)]),
    )
    const router = { prefix: '', fetch: async () => Response.json(record) }
    const { content, text } = await fetchRoute({ router, auth: noopAuth(), answerBytes: 8_192 }, 'user_summary', {
      user_id: 'alice',
    })
    expect(new TextEncoder().encode(text).byteLength).toBeLessThanOrEqual(8_192)
    expect(bytesOf(content)).toBeLessThanOrEqual(8_192)
    expect(text).toMatch(/ and \d+ more left out\./)
  })

  it.each([
    [
      'filters',
      { filters: Object.fromEntries(Array.from({ length: 14_000 }, (_, i) => [`k${i}`, i])) },
      'Invalid input',
    ],
    ['names of filters', { filters: { ['長'.repeat(60_000)]: 7 } }, 'Invalid input'],
    ['names of arguments', { ['長'.repeat(60_000)]: 7 }, 'Unrecognized key'],
  ])('are bounded where it is refused for its %s, and say what is wrong with them', async (_, given, words) => {
    const response = await subject({})(post(callMessage('find_records', { family: 'connections', ...given })))
    const text = await response.text()
    expect(text).toContain('Invalid arguments for tool find_records')
    expect(text).toContain(words)
    expect(new TextEncoder().encode(text).byteLength).toBeLessThanOrEqual(8_192)
  })

  it('are bounded where there is no such tool', async () => {
    for (const headers of [
      undefined,
      { 'mcp-protocol-version': '2026-07-28', 'mcp-name': 'x', 'mcp-method': 'tools/call' },
    ]) {
      const response = await subject({})(post(callMessage('x'.repeat(200_000)), headers))
      expect((await response.text()).length).toBeLessThan(1_000)
    }
  })

  it('are bounded; what is cut is said, and no cursor passes over it', async () => {
    const router = withConnections(60, () => ({ note: 'x'.repeat(1_500) }))
    const answerBytes = 8_192
    const { content, text } = await fetchRoute({ router, answerBytes }, 'find_records', { family: 'connections' })
    const shown = fenced(text)
    expect(shown.length).toBeGreaterThan(0)
    expect(shown.length).toBeLessThan(20)
    expect(bytesOf(text)).toBeLessThanOrEqual(answerBytes * 1.2)
    expect(new TextEncoder().encode(text).byteLength).toBeLessThanOrEqual(answerBytes)
    expect(bytesOf(content)).toBeLessThanOrEqual(answerBytes)
    expect(content).toMatchObject({ complete: false, next_cursor: null })
    expect(text).toContain(
      `Cut at ${answerBytes} bytes: ${shown.length} of 20 shown. Retry with limit ${shown.length}.`,
    )
    const again = await fetchRoute({ router, answerBytes }, 'find_records', {
      family: 'connections',
      limit: shown.length,
    })
    expect(again.content?.untrusted).toEqual(shown)
    expect(again.content?.next_cursor).toEqual(expect.any(String))
  })

  it('of an overview leave parts of it out', async () => {
    const nodes = Array.from({ length: 20 }, (_, i) => ({
      ...createWorld().delivery?.nodes?.[0],
      node_id: `${'<'.repeat(200)}${i}`,
    }))
    const { delivery, ...rest } = createWorld()
    const inspectors = createFakeInspectors({ ...rest, delivery: { ...delivery, nodes: nodes as never } })
    const { content, text, isError } = await fetchRoute(
      { router: createSubject({ inspectors }), answerBytes: 8_192 },
      'relay_overview',
    )
    expect(isError).toBe(false)
    expect(content).toMatchObject({ complete: false, untrusted: { connections: { total: 6 } } })
    expect(content?.untrusted).not.toHaveProperty('nodes')
    expect(text).toContain('nodes left out')
  })

  it('are bounded where what answers is as long as it can be', async () => {
    const long = '<'.repeat(20_000)
    const names = Array.from({ length: 5_000 }, (_, i) => `name_${i}`)
    const items = Array.from({ length: 100 }, (_, i) => ({
      kind: `kind_${i}`,
      means: long,
      does_not_mean: long,
      subject: { long },
    }))
    const page = { items, has_more: true, next_cursor: 'c'.repeat(1_000), not_looked_for: names }
    const groups = items.map((item) => ({ ...item, count: 1, exact: false, oldest_since: long }))
    const answers: Record<string, object> = {
      '/findings/summary': {
        kinds: groups,
        not_looked_for: names,
        completeness: { complete: false, truncated_sources: names },
      },
      '/search': { hits: items, more: names, cut: names },
      '/findings': { ...page, completeness: { complete: false, truncated_sources: names } },
      '/': { deployment_id: long, mode: long, version: long },
    }
    const router = {
      prefix: '',
      fetch: async ({ url }: Request) => {
        const answer = answers[new URL(url).pathname]
        return answer ? Response.json(answer) : Response.json({ code: 'x', title: long }, { status: 503 })
      },
    }
    for (const tool of ['explain_findings', 'relay_overview', 'search', 'user_summary']) {
      const given = { user_summary: { user_id: 'alice' }, search: { q: 'x' } }[tool] ?? {}
      const { content, text } = await fetchRoute({ router, auth: noopAuth(), answerBytes: 8_192 }, tool, given)
      expect(new TextEncoder().encode(text).byteLength, tool).toBeLessThanOrEqual(8_192)
      // The last one is refused.
      expect(content === undefined, tool).toBe(tool === 'user_summary')
      if (content) expect(bytesOf(content), tool).toBeLessThanOrEqual(8_192)
      expect(text).not.toMatch(/<(?!U\+[0-9A-F]{4,6}>|\/?untrusted-data>)/)
    }
  })

  it('of one record leave its largest members out, and name them', async () => {
    const router = withConnections(1, () => ({ note: 'x'.repeat(30_000) }))
    const { content, text } = await fetchRoute({ router }, 'get_record', { family: 'connections', id: 'c-0' })
    expect(content).toMatchObject({ complete: false, untrusted: { connection_id: 'c-0', status: 'connected' } })
    expect(content?.untrusted).not.toHaveProperty('metadata')
    expect(text).toContain('of the first record metadata left out')
    expect(new TextEncoder().encode(text).byteLength).toBeLessThanOrEqual(16_384)
  })
})
