import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { columnsOf, rowsOf as heightOf, shorten, widthOf } from '../../src/cli/text/table.js'
import { COLOURS, type Frame, frameOf, NO_COLOURS, PLAIN } from '../../src/cli/top/frame.js'
import { handleKey, initialState, type Key, rowsOf, type TopState, withResult } from '../../src/cli/top/state.js'
import { top } from '../../src/cli/top/top.js'
import { apiKeyAuth, createDiagnosticsRouter } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { buildCommand, COMMAND } from './process.js'
import { describeTerminal, openTerminal } from './terminal.js'

const KEY = 'k-1'
const NOW = Date.UTC(2026, 0, 1)

const answers = {
  '/capabilities': { extensions: { deployment_id: 'prod', mode: 'shared_store' } },
  '/sources': { items: [{ source: 'registry', answered: true, code: null }] },
  '/findings?limit=100': { items: [], has_more: false, completeness: { complete: true } },
  '/connections?limit=200': {
    items: Array.from({ length: 40 }, (_, i) => ({
      connection_id: `conn-${String(i).padStart(2, '0')}`,
      user_id: i % 2 ? 'ann' : '日本語',
      status: i === 7 ? 'disconnected' : 'connected',
      metadata: { said: '\u001b[31m\u202e' },
    })),
    has_more: true,
  },
}

const known = (): TopState =>
  Object.entries(answers).reduce((state, [route, value]) => withResult(state, route, { value }, NOW), initialState())

const keys = (state: TopState, ...pressed: (string | Key)[]): TopState =>
  pressed.reduce<TopState>((now, key) => {
    const next = handleKey(now, typeof key === 'string' ? { name: key, sequence: key } : key)
    if (next === null) throw new Error('it ended')
    return next
  }, state)

const frame = (width: number, height: number | null, paint = PLAIN, now = NOW): Frame => ({
  width,
  height,
  paint,
  url: 'http://h/ops',
  now,
})
const bare = (line: string) => line.replace(/\u001b\[[0-9;]*m/g, '')

describe('the frame of top', () => {
  it.each([
    [80, 24],
    [200, 60],
    [20, 8],
    [1, 3],
  ])('fills %i×%i, and no line is wider', (width, height) => {
    for (const paint of [COLOURS, NO_COLOURS, PLAIN])
      for (const state of [known(), keys(known(), '4'), keys(known(), '4', 'return'), keys(known(), '?')]) {
        const lines = frameOf(state, frame(width, height, paint))
        expect(lines).toHaveLength(height)
        for (const line of lines) expect(widthOf(bare(line))).toBeLessThanOrEqual(width)
      }
  })

  it('sends no control characters of clients to the terminal', () => {
    const text = frameOf(keys(known(), '4', 'return'), frame(120, null)).join('\n')
    expect(text).toContain('<U+001B>[31m<U+202E>')
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/)
  })

  it('marks a frame as stale, and says why there is no answer', () => {
    const old = withResult(known(), '/capabilities', { problem: 'no answer there' }, NOW + 9_000)
    const [title] = frameOf(old, frame(120, 24, PLAIN, NOW + 9_000))
    expect(title).toMatch(/NO ANSWER, as of .* no answer there/)
    expect(frameOf(known(), frame(120, 24, PLAIN, NOW + 9_000))[0]).toMatch(/NO ANSWER/)
    expect(frameOf(known(), frame(120, 24))[0]).not.toMatch(/NO ANSWER/)
  })

  it('marks each part without an answer as stale or unknown', () => {
    const headers = {
      '/delivery/summary': { tracked_commands: 3, due_commands: 0, waiting_for_client: 2 },
      '/delivery/nodes?limit=200': { items: [{ node_id: 'n', stale: false, counters: { outcome: { resulted: 5 } } }] },
    }
    const whole = Object.entries(headers).reduce(
      (state, [route, value]) => withResult(state, route, { value }, NOW),
      known(),
    )
    const parts = (state: TopState, at: number) => frameOf(state, frame(200, 24, PLAIN, at)).slice(1, 5)
    const [findings, sources, flow, ended] = parts(whole, NOW)
    expect([sources, findings]).toEqual(['all 1 sources answer   0 of 1 nodes silent', 'no findings'])
    expect(flow).toMatch(/ 3 in delivery, 0 due, 2 waiting for client$/)
    // After a restart of nodes their counters differ from the table of commands.
    expect(ended).toMatch(/^ended since the nodes started {2}5 resulted, /)
    // From the summary where it has them, as on the overview of the dashboard.
    const by_state = {
      waiting: 1,
      attempted: 2,
      acknowledged: 0,
      resulted: 7,
      failed: 1,
      expired: 0,
      cancelled: 0,
      rejected: 0,
    }
    const counted = withResult(
      whole,
      '/delivery/summary',
      { value: { ...headers['/delivery/summary'], by_state } },
      NOW,
    )
    expect(parts(counted, NOW)[3]).toBe('ended, still kept  7 resulted, 1 failed, 0 expired, 0 cancelled, 0 rejected')

    const lost = ['/sources', '/findings?limit=100', ...Object.keys(headers)].reduce(
      (state, route) => withResult(state, route, { problem: '504 inspector_timeout' }, NOW + 2_000),
      whole,
    )
    const [oldFindings, oldSources, unknownFlow, unknownEnded] = parts(lost, NOW + 2_000)
    expect(oldSources).toMatch(
      /^as of [\d:]{8} {2}all 1 sources answer {2}504 inspector_timeout {3}silent nodes unknown$/,
    )
    expect(unknownFlow).toMatch(/ \? in delivery, \? due, \? waiting for client$/)
    expect(unknownEnded).toMatch(/ \? resulted, /)
    expect(oldFindings).toMatch(/^as of [\d:]{8} {2}no findings {2}504 inspector_timeout$/)

    // There is no error either.
    const hanging = withResult(whole, '/capabilities', { value: answers['/capabilities'] }, NOW + 9_000)
    expect(parts(hanging, NOW + 9_000)[1]).toMatch(/^as of [\d:]{8} {2}all 1 sources answer {3}0 of 1 nodes silent$/)
  })

  it('never shows a sample as a total, nor unknown values as 0', () => {
    const text = frameOf(keys(known(), '4'), frame(200, 60)).join('\n')
    expect(text).toContain('40 rows, and more follow')
    expect(text).toContain('? waiting > ? attempted > ? acknowledged')
    expect(text).toContain('? resulted')
  })

  it('shows the reason, the age and the wait of commands before their owners, and marks what failed', () => {
    const route = '/delivery/commands?limit=200'
    const at = (ms: number) => new Date(NOW - ms).toISOString()
    const items = [
      {
        command_id: 'c-2',
        state: 'waiting',
        waits_for: 'client_not_attached',
        user_id: 'ann',
        admission: { at: at(4_000) },
      },
      {
        command_id: 'c-1',
        state: 'expired',
        user_id: 'ann',
        admission: { at: at(180_000), deadline_at: at(-60_000) },
        terminal: { reason: 'deadline_passed' },
      },
    ]
    const state = withResult(keys(known(), '3'), route, { value: { items, has_more: false } }, NOW)
    const [head = '', newest = '', oldest = ''] = frameOf(state, frame(120, null)).slice(-3)
    expect(head).toMatch(/^command_id +state +because +admitted +user_id/)
    expect(newest).toMatch(/^c-2 +waiting +waits for client not attached +4 s +ann/)
    expect(oldest).toMatch(/^c-1 +expired +deadline passed +3 min +ann.* in 1 min/)
    const coloured = frameOf(state, frame(120, null, COLOURS)).slice(-1)
    expect(coloured[0]).toMatch(/^\u001b\[1;31mc-1/)
  })

  it('shows the age of a command in 80 columns, with the ends of its id', () => {
    const command_id = 'count-109a2f00-5b6c-4d1e-8f7a-0c3e49a481ba'
    const item = {
      command_id,
      state: 'acknowledged',
      waits_for: 'outcome',
      admission: { at: new Date(NOW - 4_000).toISOString() },
      attempts: { count: 2 },
      action: 'count_words',
    }
    const value = { items: [item], has_more: false }
    const state = withResult(keys(known(), '3'), '/delivery/commands?limit=200', { value }, NOW)
    expect(frameOf(state, frame(80, null)).at(-1)).toMatch(
      /^count-109a2…49a481ba +acknowledged +waits for outcome +4 s +2/,
    )
    expect(frameOf(state, frame(200, null)).at(-1)).toContain('count-109a2f00-5b6c-4d1e-8f7a-0…49a481ba')
    expect(frameOf(keys(state, 'return'), frame(80, null)).join('\n')).toContain(command_id)
    const narrow = frameOf(keys(state, 'return'), frame(30, null)).map((line) => line.trim())
    expect(narrow.join('')).toContain(command_id)
    // What is typed or copied from the screen is found.
    for (const text of ['waits for out', 'outcome', 'count-109a2…49a481ba', '5b6c', 'count_words'])
      expect([text, rowsOf(keys(state, '/', ...text))]).toEqual([text, [item]])
    expect(rowsOf(keys(state, '/', ...'delivered'))).toEqual([])
    expect(frameOf(keys(state, 's', 's', 's'), frame(120, null)).join('\n')).toContain(', by because')
  })

  it('shortens an id between whole characters, and counts their columns', () => {
    expect(shorten('👍🏽'.repeat(20), 20)).toBe(`${'👍🏽'.repeat(5)}…${'👍🏽'.repeat(4)}`)
    expect(widthOf(shorten('日本語'.repeat(9), 20))).toBeLessThanOrEqual(20)
    expect(shorten('conn-07', 20)).toBe('conn-07')
  })

  it('says how many nodes are silent, and that it is unknown where it is', () => {
    const seen = (...items: object[]) =>
      frameOf(withResult(known(), '/delivery/nodes?limit=200', { value: { items } }, NOW), frame(120, null))[2]
    const node = (node_id: string, stale: boolean | null) => ({ node_id, stale, counters: {} })
    expect(seen(node('a', false), node('b', true))).toBe('all 1 sources answer   1 of 2 nodes silent')
    expect(seen(node('a', false), node('b', null))).toBe('all 1 sources answer   silent nodes unknown')
    const value = { items: [node('b', null)] }
    const listed = withResult(keys(known(), '1'), '/delivery/nodes?limit=200', { value }, NOW)
    expect(frameOf(listed, frame(80, null)).at(-1)).toMatch(/^b +unknown/)
    expect(seen(node('a', true), node('b', null))).toBe('all 1 sources answer   1+ of 2 nodes silent')
    expect(frameOf(known(), frame(120, null))[2]).toBe('all 1 sources answer   silent nodes unknown')
  })

  it('lists findings by kind in its header, and each of them in a table', () => {
    const finding = (finding_id: string, kind: string, subject: object) => ({ finding_id, kind, subject, since: null })
    const items = [
      finding('1', 'call_overdue', { correlation_id: 'call-1' }),
      finding('2', 'command_overdue', { command_id: 'c-1', user_id: 'ann' }),
      finding('3', 'command_overdue', { command_id: 'c-2', user_id: 'ann' }),
    ]
    const value = { items, has_more: true, completeness: { complete: true } }
    const lines = frameOf(withResult(keys(known(), '7'), '/findings?limit=100', { value }, NOW), frame(120, null))
    expect(lines).toContain('3+ findings: 2 command overdue, 1 call overdue')
    expect(lines.slice(-4)[0]).toMatch(/^kind +user_id +command_id +correlation_id/)
    expect(lines.slice(-3).join()).toMatch(/call overdue.*call-1.*command overdue +ann +c-1/)
  })

  it('writes states of nodes as words', () => {
    const items = [
      {
        counters: {},
        node_id: 'a',
        stale: false,
        staleness_ms: 200,
        reconciliation_loop_alive: true,
        mailbox_listener_alive: null,
      },
      { counters: {}, node_id: 'b', stale: true, staleness_ms: 40_000, reconciliation_loop_alive: null },
    ]
    const state = withResult(keys(known(), '1'), '/delivery/nodes?limit=200', { value: { items } }, NOW)
    const [a, b] = frameOf(state, frame(120, null)).slice(-2)
    expect(a).toMatch(/^a +active +0 s +alive/)
    expect(b).toMatch(/^b +SILENT +40 s +-/)
  })

  it('has no colour when colours are disabled', () => {
    const text = frameOf(withResult(known(), '/sources', { problem: 'x' }, NOW), frame(80, 24, NO_COLOURS)).join('')
    expect(text).not.toMatch(/\[[0-9;]*3[0-7]m/)
  })
})

it('uses the default width in a terminal that reports 0', async () => {
  const facilities = createMemoryFacilities()
  onTestFinished(async () => void (await facilities.close()))
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: apiKeyAuth(KEY) })
  const server = await startNodeServer(router, { port: 0 })
  onTestFinished(async () => void (await server.close()))
  let out = ''
  const stdout = { columns: 0, write: (text: string) => (out += text) }
  await top([server.url, '--once'], { env: { SERVICE_ADMIN_KEY: KEY }, stdout } as never)
  expect(out).toMatch(/sources answer/)
  expect(columnsOf(stdout)).toBe(80)
  expect(heightOf({ rows: 0 })).toBe(24)
})

describe('the keys of top', () => {
  const rows = (state: TopState) => frameOf(state, frame(120, null)).filter((line) => line.startsWith('conn-'))

  it('filter, sort, reverse, and move from row to row', () => {
    const state = keys(known(), '4')
    expect(rows(keys(state, '/', 'a', 'n', 'n', { name: 'return' }))).toHaveLength(20)
    expect(rows(keys(state, '/', 'z', { name: 'backspace' }))).toHaveLength(40)
    expect(rows(keys(state, '/', 'z', { name: 'escape' }))).toHaveLength(40)
    expect(rows(keys(state, 's', 'r'))[0]).toMatch(/^conn-39/)
    expect(rows(keys(state, 's', 's', 'r'))[0]).toMatch(/disconnected/)
    expect(keys(state, 'j', 'j', 'k').selected).toBe(1)
    expect(keys(state, 'end', 'j').selected).toBe(39)
    expect(keys(state, 'end', 'home', 'k').selected).toBe(0)
  })

  it('show an opened record until it is closed, and mark it when it has left its list', () => {
    const route = '/delivery/commands?limit=200'
    const command = (client_id: string, state = 'waiting') => ({ user_id: 'ann', client_id, command_id: 'c', state })
    const hear = (before: TopState, ...items: object[]) => withResult(before, route, { value: { items } }, NOW)
    const shown = (state: TopState) => frameOf(state, frame(120, null)).join('\n')
    const open = keys(hear(keys(initialState(), '3'), command('a'), command('b')), 'j', 'return')
    expect(shown(open)).toMatch(/client_id +b\n/)
    const changed = hear(open, command('b', 'attempted'), command('a'))
    expect(shown(changed)).toMatch(/client_id +b\n[\s\S]*attempted/)
    expect(shown(changed)).not.toContain('no more')
    const gone = hear(changed, command('a'))
    expect(shown(gone)).toMatch(/1 row, this record no more among them: as it last was/)
    expect(shown(gone)).toMatch(/client_id +b\n[\s\S]*attempted/)
    expect(shown(hear(gone, command('b')))).toMatch(/client_id +b\n[\s\S]*waiting/)
    expect(shown(keys(gone, 'escape'))).not.toContain('no more')
  })

  it('are text while a filter is typed', () => {
    expect(keys(known(), '4', '/', 'q', 'p', '?').filter).toBe('qp?')
    expect(handleKey(keys(known(), '/'), { name: 'c', ctrl: true })).toBeNull()
    expect(handleKey(known(), { name: 'q', sequence: 'q' })).toBeNull()
  })
})

describeTerminal('top in a terminal', () => {
  beforeAll(buildCommand)

  async function start() {
    const facilities = createMemoryFacilities()
    onTestFinished(async () => void (await facilities.close()))
    const router = createDiagnosticsRouter({
      ...memoryComposition(facilities),
      auth: apiKeyAuth(KEY),
      prefix: '/ops',
    })
    const listen = (port: number) => startNodeServer(router, { port, closeTimeoutMs: 100 })
    let server = await listen(0)
    onTestFinished(async () => {
      await server.close()
    })
    const { port } = new URL(server.url)
    return {
      facilities,
      url: `${server.url}/ops`,
      die: () => server.close(),
      comeBack: async () => {
        server = await listen(Number(port))
      },
    }
  }

  it.each([
    [80, 24],
    [200, 60],
  ])('shows the relay, handles keys, and restores the terminal: %i×%i', async (columns, height) => {
    const { facilities, url } = await start()
    await facilities.connections.connect({ user_id: 'ann', client_id: 'c', instance_id: 'i', client_type: 'web' })
    const terminal = await openTerminal(
      [process.execPath, COMMAND, 'top', url],
      { SERVICE_ADMIN_KEY: KEY, TERM: 'xterm-256color' },
      [columns, height],
    )
    onTestFinished(terminal.close)
    await terminal.shows(/as of \d\d:\d\d:\d\d[\s\S]*sources answer/)
    expect(await terminal.isAlternate()).toBe(true)
    await terminal.press('4')
    await terminal.shows(/connection_id[\s\S]*connected +ann/)
    // What happens is seen.
    await facilities.connections.connect({ user_id: 'bob', client_id: 'c', instance_id: 'i', client_type: 'web' })
    await terminal.shows(/connected +bob/)
    await terminal.press('/', 'b', 'o', 'b', 'Enter')
    await terminal.shows(/1 row.*with "bob"/)
    await terminal.press('Enter')
    await terminal.shows(/instance_id +i\b/)
    await terminal.press('Escape')
    await terminal.shows(/connection_id +status/)
    await terminal.press('?')
    await terminal.shows(/Ctrl-C +end/)
    await terminal.press('?', 'p')
    await terminal.shows(/PAUSED/)
    await terminal.resize(60, 15)
    await expect.poll(async () => Math.max(...(await terminal.screen()).map(widthOf))).toBeLessThanOrEqual(60)
    await terminal.press('q')
    await terminal.shows(/ended with 0/)
    expect(await terminal.isAlternate()).toBe(false)
  })

  it('shows that its host is down, and recovers when it is back', async () => {
    const { url, die, comeBack } = await start()
    const terminal = await openTerminal([process.execPath, COMMAND, 'top', url], { SERVICE_ADMIN_KEY: KEY })
    onTestFinished(terminal.close)
    await terminal.shows(/all \d+ sources answer/)
    await die()
    await terminal.shows(/NO ANSWER, as of/)
    await comeBack()
    await expect.poll(async () => (await terminal.screen()).join('\n')).not.toMatch(/NO ANSWER/)
    await terminal.press('C-c')
    await terminal.shows(/ended with 0/)
    expect(await terminal.isAlternate()).toBe(false)
  })
})
