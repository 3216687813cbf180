import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type ObserveArguments, readArguments, UsageError } from '../../src/cli/arguments.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { openSocket, sendRaw } from '../control-server/wire.js'
import { call as callTool, connectHttp } from '../mcp/subject.js'
import { publishedAcl } from '../redis/observer.js'
import { clients, describeRedis, freePort, type Server, startCluster, startServer } from '../redis/server.js'
import { buildCommand, startCommand } from './process.js'

const context = { context_id: 'ctx', user_id: 'ann', client_id: 'c', client_type: 'web', status: 'idle' } as const

async function get(url: string, key?: string) {
  const response = await fetch(url, key === undefined ? {} : { headers: { 'x-admin-key': key } })
  return { status: response.status, body: await response.json() }
}

describe('the arguments of observe', () => {
  const read = (...args: string[]) => readArguments(['observe', ...args], {}) as ObserveArguments
  const store = ['--redis', 'redis://127.0.0.1', '--deployment', 'prod']

  it('reads the given arguments, and has defaults for the others', () => {
    expect(read(...store)).toEqual({
      redis: 'redis://127.0.0.1',
      deployment: 'prod',
      host: '127.0.0.1',
      port: 4_780,
      prefix: '',
      dashboard: true,
      traceUrl: undefined,
      metrics: false,
      mcp: false,
      allowHosts: [],
      cors: [],
      without: [],
      spill: undefined,
      legacy: undefined,
    })
    const origins = ['https://ops.example.org', 'http://localhost:8080']
    expect(read(...store, ...origins.flatMap((origin) => ['--cors', origin]))).toMatchObject({ cors: origins })
    expect(read(...store, '--without', 'delivery', '--without', 'rpc')).toMatchObject({ without: ['delivery', 'rpc'] })
    expect(read(...store, '--no-dashboard')).toMatchObject({ dashboard: false })
    for (const prefix of ['/dashboards', '/metrics', '/mcp/ops'])
      expect(read(...store, '--prefix', `${prefix}/`)).toMatchObject({ prefix })
    expect(read(...store, '--no-dashboard', '--prefix', '/dashboard')).toMatchObject({ prefix: '/dashboard' })
    expect(read('--redis', 'redis://u:p%25@h/3', '--deployment', 'prod').redis).toBe('redis://u:p%25@h/3')
    expect(read(...store, '--metrics')).toMatchObject({ dashboard: true, metrics: true })
    const traceUrl = 'https://tracing.example/trace/{trace_id}'
    expect(read(...store, '--trace-url', traceUrl)).toMatchObject({ traceUrl })
    expect(read(...store, '--mcp')).toMatchObject({ metrics: false, mcp: true })
    const names = ['--allow-host', 'relay.example.org', '--allow-host', '10.0.0.5:4780']
    expect(read(...store, '--mcp', ...names)).toMatchObject({ allowHosts: ['relay.example.org', '10.0.0.5:4780'] })
    expect(read(...store, '--legacy', 'commands,workers', '--port', '0')).toMatchObject({
      legacy: { stream: 'commands', group: 'workers' },
      port: 0,
    })
    expect(readArguments(['observe', '--deployment', 'd'], { RELAYSCOPE_REDIS_URL: 'rediss://h:1' })).toMatchObject({
      redis: 'rediss://h:1',
    })
  })

  it.each([
    [[], /expected one of observe, get, why, status, mcp/],
    [['watch', ...store], /the commands are observe, get, why, status, mcp/],
    [['observe', '--deployment', 'prod'], /Missing required option --redis/],
    [['observe', '--redis', 'http://u:secret@h', '--deployment', 'prod'], /redis:\/\/ or rediss:\/\//],
    [
      ['observe', ...store, '--trace-url', 'ftp://secret/{trace_id}'],
      /^--trace-url must be an http\(s\) URL with \{trace_id\}/,
    ],
    [
      ['observe', ...store, '--no-dashboard', '--trace-url', 'https://h/{trace_id}'],
      /--trace-url is for the dashboard/,
    ],
    ...['*', 'ops.example.org', 'https://ops.example.org/', 'https://ops.example.org:443', ''].map(
      (origin): [string[], RegExp] => [['observe', ...store, '--cors', origin], /^--cors must be an origin like https/],
    ),
    [['observe', '--redis', 'redis://h'], /Missing required option --deployment/],
    [['observe', '--redis', 'redis://h', '--deployment', 'a:b'], /--deployment must be/],
    [['observe', '--redis', 'redis://h/abc', '--deployment', 'prod'], /--redis may only have a database number/],
    [['observe', '--redis', 'redis://u:secret%ZZ@h', '--deployment', 'prod'], /--redis must have .* percent-encoded/],
    [
      ['observe', ...store, '--prefix', 'ops'],
      /"--prefix": expected an empty string or a path that starts with "\/", got "ops"/,
    ],
    [
      ['observe', ...store, '--prefix', '/a//b'],
      /"--prefix": expected a path without empty or dot segments, got "\/a\/\/b"/,
    ],
    [['observe', ...store, '--prefix', '/dashboard'], /--prefix must not be below \/dashboard/],
    [['observe', ...store, '--prefix', '/%64ashboard/api/'], /--prefix must not be below \/dashboard/],
    [['observe', ...store, '--metrics', '--prefix', '/metrics'], /--prefix must not be below \/metrics/],
    [['observe', ...store, '--mcp', '--prefix', '/mcp/ops'], /--prefix must not be below \/mcp/],
    [['observe', ...store, '--port', '65536'], /--port/],
    [['observe', ...store, '--port', '0x10'], /--port/],
    [['observe', ...store, '--legacy', 'stream'], /--legacy/],
    [['observe', ...store, '--without', 'dispatcher'], /--without must be one of connections, .*delivery/],
    [['observe', ...store, '--allow-host', 'relay.example.org'], /--allow-host is for --mcp/],
    [['observe', ...store, '--mcp', '--allow-host', 'https://relay.example.org'], /--allow-host must be a host name/],
    [['observe', ...store, '--verbose'], /Unknown option '--verbose'/],
    [['observe', 'redis://u:secret@h'], /"observe redis:\/\/…" is unknown/],
    [['redis://:secret/with?all#of@it in@h'], /"redis:\/\/…" is unknown/],
    [['observe', `redis://u:${'secret'.repeat(99)}@h`], /"observe redis:\/\/…" is unknown/],
    [['observe', '--redsi', 'redis://u:secret@h', '--deployment', 'prod'], /Unknown option '--redsi'/],
    [['observe', '--redsi=redis://u:secret@h', '--deployment', 'prod'], /Unknown option '--redsi/],
    [['observe', '--redis://u:secret@h', '--deployment', 'prod'], /Unknown option '--redis:\/\/…/],
    [['observe', '--redis', 'redis://h', '--deployment', 'redis://u:secret@h'], /not "redis:\/\/…"/],
    [['observe', ...store, '--port', 'redis://u:secret@h'], /not "redis:\/\/…"/],
    [['observe', ...store, '--legacy', 'redis://u:secret@h'], /not "redis:\/\/…"/],
    [['observe', ...store, '--mcp', '--allow-host', 'redis://u:secret@h'], /not "redis:\/\/…"/],
    [['observe', ...store, 'more'], /the commands are observe, get, why, status, mcp, .*one at a time/],
  ] as const)('refuses %j', (args, message) => {
    expect(() => readArguments(args, {})).toThrow(UsageError)
    expect(() => readArguments(args, {})).toThrow(message)
    expect(() => readArguments(args, {})).not.toThrow(/secret/)
  })
})

/** A store whose errors carry an escape sequence that renames a terminal, a C1 control and a bidi override. */
async function startHostileStore(isBrokenAtOnce: boolean): Promise<number> {
  const answers: Record<string, string> = { HELLO: '%0', CLIENT: '+OK', INFO: '$17\r\ncluster_enabled:0', GET: '$-1' }
  const store = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const [, name] of String(data).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        const answer = isBrokenAtOnce && name === 'INFO' ? undefined : answers[(name as string).toUpperCase()]
        socket.write(`${answer ?? '-ERR \u001b]0;owned\u0007 \u009b31m \u202e end'}\r\n`)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(store, 'listening')
  onTestFinished(() => void store.close())
  return (store.address() as { port: number }).port
}

describe('relayscope observe over a hostile store', () => {
  beforeAll(buildCommand)
  const STEERING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/

  it('escapes control characters of an error when it cannot start', async () => {
    const port = await startHostileStore(true)
    const args = ['observe', '--port', '0', '--redis', `redis://127.0.0.1:${port}`, '--deployment', 'prod']
    const { code, err } = await startCommand(args).ended
    expect([code, err]).toEqual([1, expect.stringContaining('<U+001B>]0;owned<U+0007>')])
    expect(err).not.toMatch(STEERING)
  })

  it('escapes them in its logs while it serves', async () => {
    const port = await startHostileStore(false)
    const args = ['observe', '--port', '0', '--redis', `redis://127.0.0.1:${port}`, '--deployment', 'prod']
    const command = startCommand(args)
    expect((await get(`${await command.ready()}contexts`)).status).toBeGreaterThanOrEqual(500)
    command.signal('SIGTERM')
    const { out, err } = await command.ended
    expect(err).toContain('<U+001B>]0;owned<U+0007> <U+009B>31m <U+202E> end')
    expect(out + err).not.toMatch(STEERING)
  })
})

describeRedis('relayscope observe', () => {
  let server: Server
  const running: { signal(name: NodeJS.Signals): unknown; ended: Promise<unknown> }[] = []
  beforeAll(async () => {
    ;[server] = await Promise.all([startServer(), buildCommand()])
  })
  afterAll(async () => {
    for (const { signal } of running) signal('SIGKILL')
    await Promise.all(running.map(({ ended }) => ended))
    await server.stop()
  })

  function observe(args: string[], env: Record<string, string> = {}) {
    const command = startCommand(['observe', '--port', '0', ...args], env)
    running.push(command)
    return command
  }
  const at = (port: number, who = '') => ['--redis', `redis://${who}127.0.0.1:${port}`, '--deployment', 'prod']

  it('serves a deployment to callers with the key, under its read-only permissions, and exits on SIGTERM', async () => {
    const { client, close } = await clients['node-redis']([server.port])
    await createRedisFacilities({ client, deploymentId: 'prod', onError: null }).contexts.report(context)
    await close()
    await server.cli(...(await publishedAcl('prod')))
    const command = observe([...at(server.port, 'observer:change-me@'), '--prefix', '/ops'], {
      SERVICE_ADMIN_KEY: 'k-1',
    })
    const url = await command.ready()
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/ops\/$/)
    expect((await get(`${url}contexts`)).status).toBe(403)
    expect((await get(`${url}contexts`, 'k-1')).body).toMatchObject({ items: [{ context_id: 'ctx' }] })
    expect((await get(`${url}capabilities`, 'k-1')).body.extensions).toMatchObject({
      deployment_id: 'prod',
      mode: 'shared_store',
    })
    command.signal('SIGTERM')
    expect(await command.ended).toMatchObject({ code: 0, err: '' })
  })

  it('lets pages of the origins of --cors read the routes', async () => {
    const origin = 'https://ops.example.org'
    const command = observe([...at(server.port), '--cors', origin], { SERVICE_ADMIN_KEY: 'k-1' })
    const url = await command.ready()
    const allowed = async (headers: Record<string, string>, method = 'GET') =>
      (await fetch(`${url}contexts`, { method, headers })).headers.get('access-control-allow-origin')
    expect(await allowed({ origin, 'access-control-request-method': 'GET' }, 'OPTIONS')).toBe(origin)
    expect(await allowed({ origin, 'x-admin-key': 'k-1' })).toBe(origin)
    expect(await allowed({ origin: 'https://else.example.org', 'x-admin-key': 'k-1' })).toBeNull()
  })

  it('serves a dashboard, unless --no-dashboard is given', async () => {
    const [command, bare] = [
      observe([...at(server.port), '--prefix', '/ops', '--trace-url', 'https://tracing.example/{trace_id}']),
      observe([...at(server.port), '--no-dashboard']),
    ]
    const origin = new URL(await command.ready()).origin
    const page = await fetch(`${origin}/dashboard/`)
    expect(page.status).toBe(200)
    const shell = await page.text()
    expect(shell).toContain('data-api="../ops"')
    expect(shell).toContain('data-trace="https://tracing.example/{trace_id}"')
    expect((await fetch(`${origin}/elsewhere`)).status).toBe(404)
    expect((await fetch(`${await bare.ready()}dashboard/`)).status).toBe(404)
    for (const each of [command, bare]) each.signal('SIGTERM')
    expect((await command.ended).out).toContain(`dashboard: ${origin}/dashboard/`)
    expect((await bare.ended).out).not.toContain('dashboard')
  })

  it('serves metrics with --metrics, to callers that send the key as a bearer token', async () => {
    const [command, bare] = [
      observe([...at(server.port), '--metrics'], { SERVICE_ADMIN_KEY: 'k-2' }),
      observe(at(server.port), { SERVICE_ADMIN_KEY: 'k-2' }),
    ]
    const scrape = (base: string, token: string) =>
      fetch(new URL('/metrics', base), { headers: { authorization: `Bearer ${token}` } })
    const url = await command.ready()
    expect((await scrape(url, 'k-1')).status).toBe(403)
    const answer = await scrape(url, 'k-2')
    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('relayscope_source_up{source="delivery"} 1\n')
    // Without --metrics the path does not exist.
    expect((await fetch(new URL('/metrics', await bare.ready()), { headers: { 'x-admin-key': 'k-2' } })).status).toBe(
      404,
    )
    for (const each of [command, bare]) each.signal('SIGTERM')
    expect((await command.ended).out).toContain(`metrics (key as a bearer token): ${new URL('/metrics', url)}\n`)
    expect((await bare.ended).out).not.toContain('/metrics')
  })

  it('serves MCP with --mcp, to agents that send the key', async () => {
    const [command, bare] = [
      observe([...at(server.port), '--mcp'], { SERVICE_ADMIN_KEY: 'k-2' }),
      observe(at(server.port), { SERVICE_ADMIN_KEY: 'k-2' }),
    ]
    const address = new URL('/mcp', await command.ready())
    const client = await connectHttp(address.href, 'auto', { 'x-admin-key': 'k-2' })
    expect((await callTool(client, 'relay_overview')).content).toMatchObject({
      untrusted: { router: { deployment_id: 'prod', mode: 'shared_store' }, delivery: { deployment_id: 'prod' } },
    })
    for (const [name, given] of Object.entries({
      find_records: { family: 'contexts' },
      get_record: { family: 'contexts', id: 'ctx' },
      user_summary: { user_id: 'ann' },
      explain_findings: {},
    }))
      expect(JSON.stringify((await callTool(client, name, given)).content), name).toContain(
        name === 'explain_findings' ? '"untrusted":[' : '"ann"',
      )
    const command_id = { user_id: 'ann', client_id: 'c', command_id: 'none' }
    expect((await callTool(client, 'command_evidence', command_id)).text).toContain('404 not_found')
    const asked = (headers: Record<string, string>) => fetch(address, { method: 'POST', headers })
    expect((await asked({ 'x-admin-key': 'k-1' })).status).toBe(403)
    expect(await (await asked({ 'x-admin-key': 'k-2', origin: 'http://evil.example' })).json()).toMatchObject({
      code: 'bad_origin',
    })
    expect((await fetch(new URL('/mcp', await bare.ready()), { headers: { 'x-admin-key': 'k-2' } })).status).toBe(404)
    for (const each of [command, bare]) each.signal('SIGTERM')
    expect((await command.ended).out).toContain(`MCP over streamable HTTP: ${address}\n`)
    expect((await bare.ended).out).not.toContain('/mcp')
  })

  it('serves agents on other machines under the allowed host names, and no others', async () => {
    const names = ['--allow-host', 'relay.example.org', '--allow-host', 'ops.example.org']
    const command = observe([...at(server.port), '--mcp', ...names], { SERVICE_ADMIN_KEY: 'k-2' })
    const { port } = new URL(await command.ready())
    const said = async (host: string) => {
      const lines = [
        'POST /mcp HTTP/1.1',
        `Host: ${host}`,
        'X-Admin-Key: k-2',
        'Content-Length: 0',
        'Connection: close',
      ]
      return (await sendRaw(Number(port), lines)).status
    }
    // Let in, and without a message.
    for (const host of ['relay.example.org', `ops.example.org:${port}`, `127.0.0.1:${port}`])
      expect(await said(host), host).toBe(415)
    expect(await said('other.example.org')).toBe(403)
    command.signal('SIGTERM')
    await command.ended
  })

  it('returns 503 while the store is down, and recovers when it is back', async () => {
    const port = await freePort()
    let own = await startServer({ port })
    const command = observe(at(port))
    const url = await command.ready()
    expect((await get(`${url}contexts`)).status).toBe(200)
    await own.kill()
    expect((await get(`${url}contexts`)).status).toBe(503)
    expect((await get(`${url}capabilities`)).status).toBe(200)
    own = await startServer({ port })
    await expect.poll(async () => (await get(`${url}contexts`)).status).toBe(200)
    command.signal('SIGINT')
    expect((await command.ended).code).toBe(0)
    await own.stop()
  })

  it('exits on SIGTERM while the store does not answer and clients stall', async () => {
    const own = await startServer()
    onTestFinished(async () => {
      own.resume()
      await own.stop()
    })
    const command = observe(at(own.port))
    const url = await command.ready()
    const { port, host } = new URL(url)
    own.pause()
    const asked = [
      `GET /contexts HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(8),
      `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 9\r\n\r\nx`,
      `GET / HTTP/1.1\r\nHost: ${host}\r\n`,
    ]
    // They let go when the test is over, and not before.
    for (const text of asked) {
      const { socket } = await openSocket(Number(port))
      await new Promise((resolve) => socket.pause().write(text, resolve))
    }
    command.signal('SIGTERM')
    expect(await command.ended).toMatchObject({ code: 0 })
  })

  it('without a key answers only requests that name this machine', async () => {
    const url = await observe(at(server.port)).ready()
    const { port, host } = new URL(url)
    const said = async (...headers: string[]) =>
      (await sendRaw(Number(port), ['GET /capabilities HTTP/1.1', ...headers, 'Connection: close'])).status
    expect(await said(`Host: ${host}`)).toBe(200)
    expect(await said(`Host: localhost:${port}`, `Origin: http://localhost:${port}`)).toBe(200)
    expect(await said(`Host: evil.test:${port}`)).toBe(403)
    expect(await said('Host: 127.0.0.1:1')).toBe(403)
    expect(await said(`Host: ${host}`, 'Origin: http://evil.test')).toBe(403)
    expect(await said(`Host: ${host}`, 'Origin: null')).toBe(403)
  })

  it('detects a Redis Cluster', async () => {
    const cluster = await startCluster()
    const ports = cluster.servers.map(({ port }) => port)
    const { client, close } = await clients['ioredis cluster'](ports)
    const { contexts } = createRedisFacilities({ client, deploymentId: 'prod', shards: 6, onError: null })
    for (let i = 0; i < 12; i++) await contexts.report({ ...context, context_id: `ctx-${i}`, user_id: `u${i}` })
    const command = observe(at(ports[0] as number))
    expect((await get(`${await command.ready()}contexts?limit=20`)).body.items).toHaveLength(12)
    command.signal('SIGTERM')
    await command.ended
    await close()
    await cluster.stop()
  })

  it('warns about an unknown deployment, and observes it', async () => {
    const command = observe(['--redis', `redis://127.0.0.1:${server.port}`, '--deployment', 'elsewhere'])
    await command.ready()
    command.signal('SIGTERM')
    const { code, err } = await command.ended
    expect([code, err]).toEqual([0, expect.stringMatching(/nothing of deployment "elsewhere" is in this store/)])
    expect(err).toMatch(/SERVICE_ADMIN_KEY is not set/)
  })

  it('reports that the store is down, without the password', async () => {
    const port = await freePort()
    const { code, err, out } = await observe(at(port, 'me:s3cret@')).ended
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(new RegExp(`cannot use the store at redis://127.0.0.1:${port}: `))
    expect(err).not.toMatch(/s3cret|\n {4}at /)
  })

  it('reports missing permissions, and where they are documented', async () => {
    await server.cli(
      'ACL',
      'SETUSER',
      'other',
      'on',
      '>x',
      'resetkeys',
      '~relayscope:{other:*',
      '-@all',
      '+@connection',
      '+info',
      '+get',
    )
    const { code, err } = await observe(at(server.port, 'other:x@')).ended
    expect([code, err]).toEqual([1, expect.stringMatching(/may not read the deployment .*docs\/redis-keys\.md/)])
    const wrong = await observe(at(server.port, 'other:y@')).ended
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringMatching(/wants a user and a password/)])
  })

  it('refuses to be reachable without a key, before it connects to the store', async () => {
    const store = createServer().listen(0, '127.0.0.1')
    await once(store, 'listening')
    // A client of another test may still look for a store where this one listens now: ours says its name.
    const named: string[] = []
    store.on('connection', (socket) => {
      socket.on('error', () => {})
      socket.on('data', (said) => /too-early/.test(String(said)) && named.push(String(said)))
    })
    const { port } = store.address() as { port: number }
    for (const host of ['0.0.0.0', '::', '192.168.0.1']) {
      const { code, err } = await observe([...at(port, 'too-early:x@'), '--host', host]).ended
      expect([code, err]).toEqual([2, expect.stringMatching(/SERVICE_ADMIN_KEY must be set to listen on/)])
    }
    expect(named).toEqual([])
    // It would say it here.
    const early = observe(at(port, 'too-early:x@'))
    await expect.poll(() => named.length).toBeGreaterThan(0)
    early.signal('SIGKILL')
    await early.ended
    store.close()
  })

  it('reports that the port is in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const { code, err } = await observe([...at(server.port), '--port', String(port)]).ended
    expect([code, err]).toEqual([1, expect.stringMatching(new RegExp(`cannot listen on 127.0.0.1 port ${port}`))])
    taken.close()
  })

  it('prints its usage', async () => {
    const all = await startCommand(['--help']).ended
    expect(all).toMatchObject({ code: 0, err: '' })
    for (const command of ['observe', 'get', 'status', 'mcp']) expect(all.out).toContain(`relayscope ${command} `)
    expect((await startCommand(['watch']).ended).err).toMatch(/\nrelayscope --help shows its usage\n$/)
    const help = await startCommand(['observe', '--help']).ended
    expect(help).toMatchObject({ code: 0, err: '' })
    for (const word of ['--redis', '--deployment', '--host', '--port', '--prefix', 'SERVICE_ADMIN_KEY'])
      expect(help.out).toContain(word)
    expect(await startCommand(['--version']).ended).toMatchObject({ code: 0, out: '0.0.0-test\n' })
    expect((await startCommand(['observe']).ended).code).toBe(2)
  })
})
