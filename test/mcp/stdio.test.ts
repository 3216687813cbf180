import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { buildCommand, startCommand } from '../cli/process.js'
import { createSubject, KEY } from '../diagnostics/subject.js'
import { call, callMessage, connectStdio, fenced, serveRouter } from './subject.js'

beforeAll(buildCommand)

/** Messages as a program of 2025 sends them, which calls `tool` so many times. */
const spoken = (tool: string, given: object, times = 1) =>
  [
    {
      jsonrpc: '2.0',
      id: 'hello',
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    ...Array.from({ length: times }, (_, i) => ({ ...callMessage(tool, { ...given }), id: `call-${i}` })),
  ]
    .map((each) => `${JSON.stringify(each)}\n`)
    .join('')

describe('relayscope mcp', () => {
  it('takes its key from a file, and from no argument', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'relayscope-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const file = join(folder, 'key')
    writeFileSync(file, `${KEY}\n`)
    const client = await connectStdio(['--url', await serveRouter(), '--key-file', file])
    expect((await call(client, 'relay_overview')).content?.complete).toBe(true)
    const { code, err } = await startCommand(['mcp', '--url', 'http://localhost', '--key', KEY]).ended
    expect([code, err]).toEqual([2, expect.stringContaining("Unknown option '--key'")])
    expect(err).not.toContain(KEY)
  })

  it('reports in every answer a wrong key, or an unreachable router', async () => {
    const { url, close } = await startNodeServer(createSubject())
    const address = `${url}/ops/diagnostics`
    const client = await connectStdio(['--url', address], { SERVICE_ADMIN_KEY: 'wrong' })
    for (const [tool, given] of [
      ['relay_overview', {}],
      ['find_records', { family: 'sites' }],
      ['user_summary', { user_id: 'alice' }],
    ] as const)
      expect(await call(client, tool, given)).toMatchObject({ isError: true, text: '403 forbidden: Not allowed' })
    await close()
    expect(await call(client, 'relay_overview')).toMatchObject({ isError: true, text: 'no response' })
    expect((await client.listTools()).tools).toHaveLength(8)
  })

  it('shows payloads only with --payloads', async () => {
    const given = { family: 'messages', filters: { stream: 'users/alice/log' } }
    const url = await serveRouter()
    const env = { SERVICE_ADMIN_KEY: KEY }
    const without = await call(await connectStdio(['--url', url], env), 'find_records', given)
    const shown = await call(await connectStdio(['--url', url, '--payloads'], env), 'find_records', given)
    expect(fenced(without.text)[0]).not.toHaveProperty('payload')
    expect(fenced(shown.text)[0]).toMatchObject({ payload: { text: 'hello' } })
  })

  it.each([
    [[], 'expected the URL of the router'],
    [['http://localhost/'], 'pass the URL as --url'],
    [['--url', 'http://a:b@localhost/'], 'do not put credentials in the URL'],
    [['--url', 'http://localhost/', '--key-file', '/nowhere'], '--key-file cannot be read'],
  ])('%j is wrong usage', async (args, words) => {
    const { code, out, err } = await startCommand(['mcp', ...args]).ended
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(words)
    expect(err).toContain('relayscope mcp --help shows its usage')
  })

  it('exits after a message that is too long, and on a signal', async () => {
    const args = ['mcp', '--url', 'http://localhost/']
    expect(await startCommand(args, {}, 'x'.repeat(300_000)).ended).toEqual({
      code: 1,
      out: '',
      err: 'relayscope: ended at a message of more than 262144 bytes\n',
    })
    const told = startCommand(args, {}, `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })}\n`)
    await told.said('"id":1')
    told.signal('SIGTERM')
    expect(await told.ended).toMatchObject({ code: 0, err: '' })
  })

  it('answers what was asked before its input ended', async () => {
    const held: (() => void)[] = []
    const router = createSubject()
    const { url, close } = await startNodeServer(async (request) => {
      await new Promise<void>((resolve) => held.push(resolve))
      return router(request)
    })
    onTestFinished(async () => void (await close()))
    const args = ['mcp', '--url', `${url}/ops/diagnostics//`]
    const result = startCommand(args, { SERVICE_ADMIN_KEY: KEY }, spoken('user_summary', { user_id: 'alice' }, 3))
    result.end()
    // Three questions are on their way and the input has ended: nothing more comes that could keep it.
    await vi.waitFor(() => expect(held).toHaveLength(3), { timeout: 300_000 })
    for (const letGo of held) letGo()
    const { code, out, err } = await result.ended
    expect([code, err]).toEqual([0, ''])
    const ids = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).id)
    expect(ids.sort()).toEqual(['call-0', 'call-1', 'call-2', 'hello'])
    expect(out).toContain('One user.')
  })

  it('answers a last line that ends where its input does', async () => {
    const result = startCommand(
      ['mcp', '--url', 'http://localhost/'],
      {},
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    )
    result.end()
    expect(await result.ended).toMatchObject({ code: 0, out: expect.stringContaining('"id":1'), err: '' })
  })

  it('waits for no question that was taken back', async () => {
    const { url, close } = await startNodeServer(() => new Promise<never>(() => {}), { closeTimeoutMs: 1 })
    onTestFinished(async () => void (await close()))
    const back = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'call-0' } }
    const said = `${spoken('user_summary', { user_id: 'alice' })}${JSON.stringify(back)}\n`
    const result = startCommand(['mcp', '--url', url], {}, said)
    result.end()
    const { code, out } = await result.ended
    expect([code, out]).toEqual([0, expect.not.stringContaining('call-0')])
  })

  it('logs once on stderr why the router is unreachable, without the key', async () => {
    const { url, close } = await startNodeServer(() => new Response())
    await close()
    const said = spoken('user_summary', { user_id: 'alice' }, 3)
    const result = startCommand(['mcp', '--url', url], { SERVICE_ADMIN_KEY: KEY }, said)
    result.end()
    const { out, err } = await result.ended
    expect(out.match(/no response/g)).toHaveLength(3)
    expect(err).toBe('relayscope: no answer at --url: ECONNREFUSED\n')
  })

  it.each(['a\nb', 'ключ'])('refuses a key that no header carries, and does not repeat it: %j', async (key) => {
    const { code, err } = await startCommand(['mcp', '--url', 'http://localhost/'], { SERVICE_ADMIN_KEY: key }).ended
    expect([code, err]).toEqual([2, expect.stringContaining('the key of SERVICE_ADMIN_KEY must be one line of')])
    expect(err).not.toContain(key)
  })

  it('ends with its input, and says how it is called', async () => {
    expect(await startCommand(['mcp', '--url', 'http://localhost/']).ended).toEqual({ code: 0, out: '', err: '' })
    const { code, out } = await startCommand(['mcp', '--help']).ended
    expect([code, out]).toEqual([0, expect.stringContaining('--payloads')])
  })
})
