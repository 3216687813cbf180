/** `relayscope status`, and the bound on what the terminal commands read. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { get } from '../../src/cli/get.js'
import { type StatusAnswers, status, statusOf } from '../../src/cli/status.js'
import { why } from '../../src/cli/why.js'
import { apiKeyAuth, createDiagnosticsRouter } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'

const AT = '2026-01-01T00:01:00.000Z'
const NOTHING: StatusAnswers = {
  findings: null,
  nodes: null,
  sources: null,
  capabilities: null,
  summary: null,
  counts: null,
  churn: null,
  calls: null,
  contexts: null,
  windows: null,
  sites: null,
}

const finding = (oldest_since: string) => ({
  kinds: [{ kind: 'command_overdue', count: 1, exact: true, oldest_since, nodes: [], sample: null, help: '' }],
  observed_at: AT,
  completeness: { complete: true, truncated_sources: [], examined: {} },
  not_looked_for: [],
})

function feedingConnections() {
  const facilities = createMemoryFacilities()
  const { inspectors, deployment } = memoryComposition(facilities)
  return { connections: facilities.connections, inspectors: { registry: inspectors.registry }, deployment }
}

async function call(command: typeof status, args: readonly string[], key = 'k-1') {
  let [out, err] = ['', '']
  const toOut = (text: string) => {
    out += text
  }
  const toErr = (text: string) => {
    err += text
  }
  const code = await command(args, { SERVICE_ADMIN_KEY: key }, { write: toOut }, { write: toErr })
  return { code, out, err }
}

it('needs a person for a finding of ten seconds, and not yet for a younger one', () => {
  const at = (since: string) => statusOf({ ...NOTHING, findings: finding(since) as never })
  expect(at('2026-01-01T00:00:50.000Z')).toMatchObject({ needsPerson: true })
  expect(at('2026-01-01T00:00:50.000Z').lines[3]).toBe('  ▲ 1 × command overdue for 10 s')
  expect(at('2026-01-01T00:00:51.000Z')).toMatchObject({ needsPerson: false })
})

it('calls what was not answered unknown, never 0', () => {
  const text = statusOf(NOTHING).lines.join('\n')
  expect(text).toContain('silent nodes unknown · sources unknown\nfindings unknown\nProblems\n  Unknown: no answer.')
  expect(text).not.toMatch(/\d/)
})

it('exits with 0 for a program that has nothing to look for problems in', async () => {
  const { connections, inspectors, ...rest } = feedingConnections()
  await connections.connect({ user_id: 'ann', client_id: 'c', instance_id: 'i', client_type: 'web' })
  const router = createDiagnosticsRouter({ ...rest, inspectors, auth: apiKeyAuth({ apiKey: 'k-1' }) })
  const server = await startNodeServer(router.fetch)
  onTestFinished(() => void server.close())
  expect(await call(status, [server.url])).toEqual({
    code: 0,
    out: expect.stringMatching(
      /^relayscope · 1 client · all sources answer\n1 client\nProblems\n {2}No part of this deployment has problems/,
    ),
    err: '',
  })
})

it('says that no problems were found only if every kind of finding was looked for', () => {
  const findings = { ...finding(AT), kinds: [], not_looked_for: ['call_overdue'] }
  const lines = statusOf({ ...NOTHING, findings: findings as never, sources: { items: [] } }).lines
  expect(lines[3]).toBe('  No problems in what was read.')
  expect(lines[1]).toMatch(/^no findings in what was read/)
})

it('prints the overview of a router in 80 columns, and exits with 2 if it is refused or unreachable', async () => {
  const facilities = createMemoryFacilities()
  onTestFinished(async () => void (await facilities.close()))
  await facilities.connections.connect({
    user_id: 'u'.repeat(100),
    client_id: 'c',
    instance_id: 'i',
    client_type: 'web',
  })
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: apiKeyAuth('k-1') })
  const server = await startNodeServer(router, { port: 0 })
  onTestFinished(async () => void (await server.close()))
  const { code, out } = await call(status, [server.url])
  expect(code).toBe(0)
  expect(out).toMatch(
    /^relayscope · 1 node · 1 client · all sources answer\nno findings · 1 client · 0 open commands\nProblems\n {2}No problems found · (\d+) of \1 sources read\nCommands\n {2}waiting 0 · [\s\S]*\nCalls\n {2}0 open/,
  )
  for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  expect(await call(status, [server.url], 'wrong')).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining('403'),
  })
  expect(await call(status, ['http://127.0.0.1:2'])).toMatchObject({
    code: 2,
    out: '',
    err: 'relayscope: no answer from http://127.0.0.1:2: ECONNREFUSED\n',
  })
})

it('does not read an answer of more than 16 MiB after decompression', async () => {
  const bomb = gzipSync(Buffer.from(`${' '.repeat(16_777_216)}{}`))
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const err = 'relayscope: the answer is not a JSON object of at most 16777216 bytes\n'
  expect(await call(get, [url, '/connections'])).toMatchObject({ code: 1, out: '', err })
  expect(await call(why, [url, 'x'])).toMatchObject({ code: 1, out: '', err })
  expect(await call(status, [url])).toMatchObject({ code: 2, out: '', err })
})
