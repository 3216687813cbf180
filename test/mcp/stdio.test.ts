import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { buildCommand, startCommand } from '../cli/process.js'
import { createSubject, KEY } from '../diagnostics/subject.js'
import { call, connectStdio, fenced, serveRouter } from './subject.js'

beforeAll(buildCommand)

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

  it('says in every answer that the key is not right, or that nobody answers', async () => {
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
    expect(await call(client, 'relay_overview')).toMatchObject({ isError: true, text: 'nobody answers there' })
    expect((await client.listTools()).tools).toHaveLength(6)
  })

  it('shows payloads only where it is told to', async () => {
    const given = { family: 'messages', filters: { stream: 'users/alice/log' } }
    const url = await serveRouter()
    const env = { SERVICE_ADMIN_KEY: KEY }
    const without = await call(await connectStdio(['--url', url], env), 'find_records', given)
    const shown = await call(await connectStdio(['--url', url, '--payloads'], env), 'find_records', given)
    expect(fenced(without.text)[0]).not.toHaveProperty('payload')
    expect(fenced(shown.text)[0]).toMatchObject({ payload: { text: 'hello' } })
  })

  it.each([
    [[], 'say where the router is'],
    [['http://localhost/'], 'say the address as --url'],
    [['--url', 'http://a:b@localhost/'], 'a key does not belong into an address'],
    [['--url', 'http://localhost/', '--key-file', '/nowhere'], '--key-file cannot be read'],
  ])('%j is wrong usage', async (args, words) => {
    const { code, out, err } = await startCommand(['mcp', ...args]).ended
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(words)
    expect(err).toContain('relayscope mcp --help says how to call it')
  })

  it('ends at a message that is too long, and when it is told to', async () => {
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

  it('ends with its input, and says how it is called', async () => {
    expect(await startCommand(['mcp', '--url', 'http://localhost/']).ended).toEqual({ code: 0, out: '', err: '' })
    const { code, out } = await startCommand(['mcp', '--help']).ended
    expect([code, out]).toEqual([0, expect.stringContaining('--payloads')])
  })
})
