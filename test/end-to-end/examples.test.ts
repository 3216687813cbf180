/** Starts the small examples whose code is shown in the docs. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createConnectionRegistry, memoryComposition } from '../../src/memory/index.js'

const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}.mjs`, import.meta.url))

const jsonOf = async (response: Response) => ({ status: response.status, body: await response.json() })

describe('examples/incident/flight-recorder', () => {
  it('answers as of an instant that is over', async () => {
    const { routerWithPast } = await import(example('incident/flight-recorder'))
    const composition = memoryComposition({ connections: createConnectionRegistry() })
    const { router, started, close } = routerWithPast(composition, 'key')
    onTestFinished(close)
    await started
    const request = new Request(`http://localhost/at/${Date.now()}/connections`, { headers: { 'x-admin-key': 'key' } })
    expect(await jsonOf(await router(request))).toMatchObject({ status: 200, body: { items: [] } })
  })
})

describe('examples/custom-inspector', () => {
  const call = (sequence: number, user: string) => ({ sequence, user, client: 'laptop', action: 'load', startedAt: 0 })
  const ask = async (calls: Map<string, object>, path: string) => {
    const { createDiagnostics } = await import(example('custom-inspector'))
    return jsonOf(await createDiagnostics(calls)(new Request(`http://localhost${path}`)))
  }

  it('pages through the host’s own map, filtered, without losing an entry', async () => {
    const calls = new Map(['ada', 'bob', 'ada', 'ada'].map((user, i) => [`c-${i + 1}`, call(i + 1, user)]))
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const query: string = `user_id=ada&limit=2${cursor ? `&cursor=${cursor}` : ''}`
      const { status, body } = await ask(calls, `/rpc/pending?${query}`)
      expect(status).toBe(200)
      seen.push(...body.items.map(({ correlation_id }: { correlation_id: string }) => correlation_id))
      cursor = body.next_cursor
    } while (cursor)
    expect(seen).toEqual(['c-1', 'c-3', 'c-4'])
  })

  it.each([
    ['/rpc/pending?cursor=MTIz', 'invalid_cursor'],
    ['/rpc/pending/c-7', 'not_found'],
    ['/connections', 'inspector_absent'],
  ])('answers %s with %s', async (path, code) => {
    expect((await ask(new Map(), path)).body.code).toBe(code)
  })

  it('keeps its contract', async () => {
    const child = spawn(process.execPath, ['--test', example('custom-inspector-test')], { stdio: 'ignore' })
    expect(await once(child, 'exit')).toEqual([0, null])
  })
})

describe('examples/parts', () => {
  it.each(['router', 'bus', 'ingest', 'gate'])('%s prints in at most 20 lines what its comment says', async (name) => {
    const file = example(`parts/${name}`)
    const code = readFileSync(file, 'utf8')
    const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'ignore'] })
    const [printed, [status]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    expect([status, printed]).toEqual([0, `${/console\.log\(.*\) \/\/ (.*)/.exec(code)?.[1]}\n`])
    expect(/#region part\n(.*\n){1,20}\/\/ #endregion/.test(code)).toBe(true)
  })
})

describe('examples/incident', () => {
  it('replays an incident in a test of the host', async () => {
    const child = spawn(process.execPath, ['--test', example('incident/replay-test')], { stdio: 'ignore' })
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('reports to a support team what the file holds and what it lacks', async () => {
    const { report } = await import(example('incident/support'))
    const lines: string[] = []
    for await (const line of report(example('incident/incident').replace('.mjs', '.json'), 'ada')) lines.push(line)
    expect(lines[0]).toMatch(/^as of 20/)
    expect(lines).toContain('not whole: /delivery/commands (cut)')
    expect(lines.join('\n')).toMatch(/commands of ada that are resulted: \d+/)
  })

  it('captures the router of the own process, redacted, as a file for this user alone', async () => {
    const { captureTo } = await import(example('incident/capture'))
    const { apiKeyAuth, createDiagnosticsRouter } = await import('../../src/index.js')
    const { incidentComposition } = await import('../../src/incident/index.js')
    const whole = readFileSync(example('incident/incident').replace('.mjs', '.json'))
    const key = 'a-key-of-at-least-16-characters'
    const router = createDiagnosticsRouter({ ...incidentComposition(whole), auth: apiKeyAuth(key), onError: null })
    const directory = mkdtempSync(join(tmpdir(), 'relayscope-capture-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const path = join(directory, 'incident.json')
    const missing = await captureTo(path, router, key)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const text = readFileSync(path, 'utf8')
    expect(JSON.parse(text).missing).toEqual(missing)
    for (const secret of ['ada', 'console-1', key]) expect(text).not.toContain(`"${secret}"`)
  })
})
