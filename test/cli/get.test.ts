import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { UsageError } from '../../src/cli/arguments.js'
import { get } from '../../src/cli/get.js'
import { apiKeyAuth, createDiagnosticsRouter } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { buildCommand, COMMAND, startCommand } from './process.js'

const KEY = 'k-1'

async function startRouter(users: readonly string[], commands: readonly string[] = []) {
  const facilities = createMemoryFacilities()
  onTestFinished(async () => void (await facilities.close()))
  for (const user_id of users)
    await facilities.connections.connect({
      user_id,
      client_id: 'c',
      instance_id: 'i',
      client_type: 'web',
      metadata: { said: '\u001b[31m \u202e \u009b31m' },
    })
  for (const command_id of commands)
    await facilities.dispatcher.dispatch({
      user_id: 'ada@example.com',
      client_id: 'laptop',
      command_id,
      action: 'sync',
    })
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: apiKeyAuth(KEY), prefix: '/ops' })
  const server = await startNodeServer(router, { port: 0 })
  onTestFinished(async () => {
    await server.close()
  })
  return `${server.url}/ops`
}

/** Calls it as a terminal of `columns` would, or as a pipe. */
async function call(args: readonly string[], { env = { SERVICE_ADMIN_KEY: KEY }, columns = 0 } = {}) {
  let [out, err] = ['', '']
  const stream = (add: (text: string) => void) => ({ isTTY: columns > 0, columns, write: add })
  const code = await get(
    args,
    env as Record<string, string>,
    stream((text) => {
      out += text
    }),
    stream((text) => {
      err += text
    }),
  )
  return { code, out, err }
}

describe('relayscope get', () => {
  it('prints JSON lines for a program, one per record', async () => {
    const url = await startRouter(['ann', 'bob'])
    const { code, out, err } = await call([url, '/connections?order=oldest'])
    expect([code, err]).toEqual([0, ''])
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).user_id),
    ).toEqual(['ann', 'bob'])
  })

  it('sends no control characters of clients to a terminal, in either format', async () => {
    const url = await startRouter(['ann'])
    const steering = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/
    for (const options of [['--json'], []]) {
      const { out } = await call([url, '/connections', ...options], { columns: 2_000 })
      expect(out).not.toMatch(steering)
      expect(out).toMatch(/u\+202e/i.test(out) ? /<U\+202E>/ : /\\u202e/)
    }
    const [line = ''] = (await call([url, '/connections', '--json'])).out.split('\n')
    expect(JSON.parse(line).metadata.said).toBe('\u001b[31m \u202e \u009b31m')
  })

  it('prints an aligned table as wide as the terminal, and names the columns left out', async () => {
    const url = await startRouter(['ann', '日本語'])
    const { out, err } = await call([url, '/users'], { columns: 60 })
    const [head = '', first = '', second = ''] = out.split('\n')
    expect(head).toMatch(/^user_id {2}sources/)
    expect(first).toMatch(/^ann {6}\["registry"/)
    // Three characters, six columns.
    expect(second).toMatch(/^日本語 {3}\["registry"/)
    expect(head.length).toBeLessThanOrEqual(60)
    expect(err).toMatch(/columns not shown: .*last_seen_at.*--json/)
  })

  it('shows in eighty columns the ids and the state of a connection', async () => {
    const url = await startRouter(['ann', 'bob'])
    const { out, err } = await call([url, '/connections?limit=2&order=oldest'], { columns: 80 })
    const [head = '', first = ''] = out.split('\n')
    expect(head).toMatch(/^connection_id +status +user_id +client_id +client_type$/)
    expect(first).toMatch(/^[\w-]{36} {2}connected {2}ann +c +web$/)
    expect(err).toMatch(/columns not shown: .*last_seen_at, connected_at, .*instance_id/)
  })

  it('shows in eighty columns whose a command is and where it stands', async () => {
    const id = '1cd7aeed-df4d-4570-8d20-5c7e17b7f55e'
    const { out } = await call([await startRouter([], [id]), '/delivery/commands'], { columns: 80 })
    expect(out).toMatch(new RegExp(`^user_id +client_id +command_id +state\n.*${id} +waiting\n$`))
  })

  it('prints the lists of one record as tables', async () => {
    const { out } = await call([await startRouter([], ['c-1']), '/findings/summary'], { columns: 80 })
    expect(out).toMatch(/^observed_at +2/m)
    expect(out).toMatch(/^\nkinds\nkind +count +exact .*\ncommand_overdue +0 +true/m)
    expect(out).not.toMatch(/^kinds +\[/m)
  })

  it('uses the default width for a terminal that reports 0', async () => {
    const url = await startRouter(['ann'])
    let out = ''
    const terminal = { isTTY: true, columns: 0, write: (text: string) => (out += text) }
    await get([url, '/users'], { SERVICE_ADMIN_KEY: KEY }, terminal, { write: () => {} })
    expect(out).toMatch(/^user_id {2}sources[\s\S]*\nann +\["registry"/)
  })

  it('prints one field per line for one record', async () => {
    const url = await startRouter([])
    const { out } = await call([url, '/capabilities'], { columns: 80 })
    expect(out).toMatch(/^registry +true$/m)
    expect(out).toMatch(/^extensions\.mode +direct$/m)
  })

  it('follows the cursor with --all, and otherwise says that there are more records', async () => {
    const users = Array.from({ length: 7 }, (_, i) => `user-${i}`)
    const url = await startRouter(users)
    const first = await call([url, '/users?limit=3'])
    expect(first.out.trim().split('\n')).toHaveLength(3)
    expect(first.err).toMatch(/there are more: use --all/)
    const all = await call([url, '/users?limit=3', '--all'])
    expect(
      all.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).user_id),
    ).toEqual(users)
    expect(all.err).toBe('')
  })

  it('marks a partial answer as a sample', async () => {
    const facilities = createMemoryFacilities()
    onTestFinished(async () => void (await facilities.close()))
    const { inspectors } = memoryComposition(facilities)
    const lost = new Proxy(inspectors.registry as object, { get: () => () => Promise.reject(new Error('lost')) })
    const router = createDiagnosticsRouter({
      inspectors: { ...inspectors, registry: lost as never },
      auth: apiKeyAuth(KEY),
      onError: null,
    })
    const server = await startNodeServer(router, { port: 0 })
    onTestFinished(async () => {
      await server.close()
    })
    expect((await call([server.url, '/users'])).err).toMatch(/a sample: incomplete in registry/)
  })

  describe('of an untrusted router', () => {
    /** Answers the page that is asked for: the first without a cursor, the others by theirs. */
    async function startPages(...pages: object[]) {
      const answer = async ({ url }: Request) => {
        const at = Number(new URL(url).searchParams.get('cursor') ?? 0)
        const more = at + 1 < pages.length
        return Response.json({
          items: [{ user_id: `user-${at}` }],
          has_more: more,
          next_cursor: `${at + 1}`,
          ...pages[at],
        })
      }
      const server = await startNodeServer(answer, { port: 0 })
      onTestFinished(async () => {
        await server.close()
      })
      return server.url
    }
    const sample = (...truncated_sources: string[]) => ({ completeness: { complete: false, truncated_sources } })

    it('lists the truncated sources of all pages, each once', async () => {
      const url = await startPages(sample('registry', 'rpc'), sample('rpc', 'delivery'), {})
      const { code, err } = await call([url, '/users', '--all'])
      expect([code, err]).toEqual([0, 'relayscope: a sample: incomplete in registry, rpc, delivery\n'])
      expect((await call([await startPages({}, sample()), '/users', '--all'])).err).toMatch(/incomplete in some source/)
    })

    it('requests each page with the whole query, including a question mark in it', async () => {
      const asked: (string | null)[][] = []
      const server = await startNodeServer(
        async ({ url }: Request) => {
          const query = new URL(url).searchParams
          asked.push(['user_id', 'cursor'].map((name) => query.get(name)))
          return Response.json({ items: [], has_more: asked.length < 2, next_cursor: 'two' })
        },
        { port: 0 },
      )
      onTestFinished(async () => void (await server.close()))
      expect((await call([server.url, '/connections?user_id=a?b', '--all'])).code).toBe(0)
      expect(asked).toEqual([
        ['a?b', null],
        ['a?b', 'two'],
      ])
    })

    it('prints how many records of all pages were omitted', async () => {
      const url = await startPages({ omitted: 3 }, {}, { omitted: 4 })
      expect((await call([url, '/users', '--all'])).err).toBe('relayscope: 7 invalid records omitted\n')
      expect((await call([url, '/users'], { columns: 80 })).err).toMatch(/3 invalid records omitted/)
    })

    it('sends no control characters of it to a terminal', async () => {
      const steering = '\u001b[2J\u001b]0;owned\u0007'
      const { err } = await call([await startPages(sample(steering)), '/users'])
      expect(err).toContain('incomplete in <U+001B>[2J')
      const fields = await startPages({ items: [{ user_id: 'u'.repeat(40), [`x${steering}`]: 'y' }] })
      const { err: left } = await call([fields, '/users'], { columns: 40 })
      expect(left).toContain('columns not shown: x<U+001B>[2J')
      expect(err + left).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/)
    })
  })

  it.each([
    ['/nothing', {}, /^relayscope: 404 route_not_found: No such route\n/],
    ['/conections?limit=1', {}, /^relayscope: 404 route_not_found: .*\. Did you mean \/connections\?\n/],
    ['/Users/ada/sumary/', {}, /Did you mean \/users\/ada\/summary\?\n/],
    ['/delivery/comands', {}, /Did you mean \/delivery\/commands\?\n/],
    ['/connections/cuont', {}, /^relayscope: 404 not_found: .*\. Did you mean \/connections\/count\?\n/],
    ['/connections/c-1', {}, /^relayscope: 404 not_found: No such record\n/],
    ['/users?limit=0', {}, /^relayscope: 422 invalid_query: .*; limit /],
    ['/users', { SERVICE_ADMIN_KEY: 'another' }, /^relayscope: 403 forbidden/],
  ])('exits with 1 and the title of the problem: %s', async (route, env, said) => {
    const url = await startRouter([])
    const { code, out, err } = await call([url, route], { env: { SERVICE_ADMIN_KEY: KEY, ...env } })
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(said)
  })

  it('exits with 1 when the router cannot be reached', async () => {
    expect(await call(['http://127.0.0.1:2', '/users'])).toMatchObject({
      code: 1,
      err: 'relayscope: no answer from http://127.0.0.1:2: ECONNREFUSED\n',
    })
  })

  it('reads the key from a file, and never from an argument', async () => {
    const url = await startRouter(['ann'])
    const folder = await mkdtemp(join(tmpdir(), 'relayscope-key-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    writeFileSync(join(folder, 'key'), `${KEY}\n`)
    expect((await call([url, '/users', '--key-file', join(folder, 'key')], { env: {} as never })).code).toBe(0)
    await expect(call([url, '--key-file', join(folder, 'none')])).rejects.toThrow(/--key-file cannot be read/)
    await expect(call([url.replace('//', '//admin:secret@')])).rejects.toThrow(UsageError)
    await expect(call([url, '--key', KEY])).rejects.toThrow(/Unknown option '--key'/)
  })

  it.each([
    [[]],
    [['relay']],
    [['ftp://h']],
    [['http://h?key=1']],
    [['http://h/?', '/users']],
    [['http://h/#', '/users']],
    [['http://h', 'users']],
    [['http://h', '/a', '/b']],
    [['http://h', '/connections?user_id=ann#1']],
  ])('refuses %j', async (args) => {
    await expect(call(args)).rejects.toThrow(UsageError)
  })
})

describe('the command', () => {
  beforeAll(buildCommand)

  it('reports in one line that its output cannot be written', async () => {
    const url = await startRouter(['ann'])
    const env = { PATH: process.env.PATH, SERVICE_ADMIN_KEY: KEY }
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [COMMAND, 'get', url], { env, stdio: ['ignore', full, 'pipe'] })
    closeSync(full)
    const [err, [code]] = await Promise.all([text(child.stderr as Readable), once(child, 'close')])
    expect([code, err]).toEqual([1, expect.stringMatching(/^relayscope: the output cannot be written: ENOSPC.*\n$/)])
  })

  it('exits quietly when its output is no longer read, and with 2 for invalid arguments', async () => {
    const url = await startRouter(['ann'])
    const env = { SERVICE_ADMIN_KEY: KEY }
    expect(await startCommand(['get', url, '/users'], env).ended).toMatchObject({ code: 0, err: '' })
    expect(await startCommand(['get'], env).ended).toMatchObject({
      code: 2,
      err: expect.stringContaining('get --help'),
    })
    expect(await startCommand(['get', '--help']).ended).toMatchObject({ code: 0, out: expect.stringMatching(/--all/) })
    expect(await startCommand(['status', url], env).ended).toMatchObject({
      code: 0,
      out: expect.stringMatching(/ 1 client /),
    })
    expect(await startCommand(['status', url], {}).ended).toMatchObject({ code: 2 })
  })
})
