import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { openRecordingDirectory, segmentsIn } from '../../src/adapters/recording-directory.js'
import { INCIDENT_BYTES, type Incident } from '../../src/incident/format.js'
import { IncidentRefused } from '../../src/incident/read.js'
import { createFlightRecorder } from '../../src/incident/recorder.js'
import { openRecording } from '../../src/incident/recording.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { createSubject } from '../diagnostics/subject.js'
import { connection, createWorld, NOW } from '../diagnostics/world.js'
import { until } from '../end-to-end/live-host-process.js'
import { askRouter, createOriginal, HEADERS, questionsAbout, timeless } from '../incident/subject.js'
import { buildCommand, startCommand } from './process.js'

const KEY = HEADERS['x-admin-key']

function directory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'relayscope-incident-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** A router on a port of its own. */
async function startOriginal() {
  const router = createOriginal()
  const server = await startNodeServer(router, { port: 0, closeTimeoutMs: 1 })
  onTestFinished(async () => void (await server.close()))
  return { prefix: server.url + router.prefix, fetch: (request: Request) => fetch(request) }
}

/** `relayscope open`, and how to ask it. */
async function openFile(args: string[]) {
  const command = startCommand(['open', ...args])
  onTestFinished(async () => {
    command.signal('SIGTERM')
    await command.ended
  })
  const url = (await command.ready()).replace(/\/$/, '')
  return { command, router: { prefix: url, fetch: (request: Request) => fetch(request) } }
}

beforeAll(buildCommand)

describe('relayscope capture and open', () => {
  it('make a file, and a router on another port that answers every route as the original did', async () => {
    const original = await startOriginal()
    const file = join(directory(), 'incident.json')
    const captured = await startCommand(['capture', original.prefix, '-o', file], { SERVICE_ADMIN_KEY: KEY }).ended
    expect([captured.code, captured.out]).toEqual([0, ''])
    expect(captured.err).toMatch(/deployment without an id at 2026-01-02T03:04:05.678Z: \d+ records of \d+ routes/)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const text = readFileSync(file, 'utf8')
    expect(text).not.toContain(KEY)
    const incident = JSON.parse(text) as Incident
    const { command, router } = await openFile([file])
    for (const question of questionsAbout(incident, await askRouter(original, '/openapi.json', HEADERS))) {
      const [then, now] = [await askRouter(original, question, HEADERS), await askRouter(router, question)]
      expect({ question, ...now, body: timeless(now.body) }).toEqual({ question, ...then, body: timeless(then.body) })
    }
    const page = await fetch(`${router.prefix}/dashboard/`)
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('data-api="../"')])
    command.signal('SIGTERM')
    expect(await command.ended).toMatchObject({ code: 0 })
  })

  it('keep the file of an earlier capture, and answer only requests from this machine, under their own names', async () => {
    const original = await startOriginal()
    const file = join(directory(), 'incident.json')
    await startCommand(['capture', original.prefix, '-o', file], { SERVICE_ADMIN_KEY: KEY }).ended
    const text = readFileSync(file, 'utf8')
    const again = await startCommand(['capture', original.prefix, '-o', file], { SERVICE_ADMIN_KEY: KEY }).ended
    expect([again.code, again.err]).toEqual([2, expect.stringContaining('exists, and an incident is not overwritten')])
    expect(readFileSync(file, 'utf8')).toBe(text)
    const { router } = await openFile([file])
    expect(router.prefix).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const { request } = await import('node:http')
    const status = await new Promise((resolve, reject) => {
      request(`${router.prefix}/connections`, { headers: { host: 'evil.example' } }, (response) =>
        resolve(response.statusCode),
      )
        .on('error', reject)
        .end()
    })
    expect(status).toBe(403)
  })

  it('writes a redacted file of one user to the standard output', async () => {
    const original = await startOriginal()
    const args = ['capture', original.prefix, '-o', '-', '--redact', '--user', 'alice', '--since', '1h']
    const { code, out } = await startCommand(args, { SERVICE_ADMIN_KEY: KEY }).ended
    expect(code).toBe(0)
    expect(out).not.toContain('alice')
    expect(JSON.parse(out)).toMatchObject({ user: expect.stringMatching(/^user-/), since: expect.any(String) })
  })

  it.each<[string[], RegExp]>([
    [['capture'], /expected the URL of the router/],
    [['capture', 'http://127.0.0.1:1/'], /Missing required option --output FILE/],
    [
      ['capture', 'http://127.0.0.1:1/', '-o', 'x', '--since', 'noon'],
      /--since must be a time such as 30m, 6h or 2d, not "noon"/,
    ],
    [
      ['capture', 'http://127.0.0.1:1/', '-o', 'x', '--max-bytes', '0'],
      /--max-bytes must be a number from 1 to 67108864/,
    ],
    [['capture', 'http://127.0.0.1:1/', 'http://127.0.0.1:2/', '-o', 'x'], /capture takes one URL/],
    [['diff', 'a.json'], /diff takes two files or URLs/],
    [['open'], /open takes one file or directory/],
    [['open', 'x', '--port', 'many'], /--port must be a number/],
  ])('refuses %j with exit code 2', async (args, message) => {
    const { code, err } = await startCommand(args).ended
    expect(err).toMatch(message)
    expect(code).toBe(2)
  })

  it('reports why nothing was captured, with exit code 1, and leaves no file', async () => {
    const original = await startOriginal()
    const file = join(directory(), 'incident.json')
    const refused = await startCommand(['capture', original.prefix, '-o', file], { SERVICE_ADMIN_KEY: 'another-key' })
      .ended
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('nothing was captured: 403 forbidden')])
    expect(() => statSync(file)).toThrow()
  })

  it.each<[string, string, RegExp]>([
    ['a damaged file', '{"format":"relayscope-incident","vers', /cannot open .*: the file is damaged/],
    ['a file of another kind', '{"log":{}}', /is not an incident/],
    ['a file of another version', '{"format":"relayscope-incident","version":9}', /has version 9 of the format/],
  ])('refuses to open %s, with exit code 1', async (_what, text, message) => {
    const file = join(directory(), 'incident.json')
    writeFileSync(file, text)
    const { code, err } = await startCommand(['open', file]).ended
    expect([code, err]).toEqual([1, expect.stringMatching(message)])
  })

  it('refuses to open a file of more than 64 MiB and an endless device, with exit code 1', async () => {
    const huge = join(directory(), 'incident.json')
    writeFileSync(huge, '')
    truncateSync(huge, INCIDENT_BYTES + 1)
    for (const file of [huge, '/dev/zero']) {
      const { code, err } = await startCommand(['open', file]).ended
      expect([code, err]).toEqual([1, `relayscope: cannot open ${file}: the file has more than 67108864 bytes\n`])
    }
  })

  it('compares a file and a router', async () => {
    const original = await startOriginal()
    const file = join(directory(), 'incident.json')
    await startCommand(['capture', original.prefix, '-o', file], { SERVICE_ADMIN_KEY: KEY }).ended
    const same = await startCommand(['diff', file, original.prefix], { SERVICE_ADMIN_KEY: KEY }).ended
    expect([same.code, same.err]).toEqual([0, ''])
    expect(same.out).toMatch(/\nno difference\n$/)
    const incident = JSON.parse(readFileSync(file, 'utf8')) as Incident
    const parts = incident.parts.map((part) => (part.route === '/contexts' ? { ...part, rows: [] } : part))
    const other = join(directory(), 'other.json')
    writeFileSync(other, JSON.stringify({ ...incident, parts }))
    const { out } = await startCommand(['diff', other, file, '--json']).ended
    const { routes } = JSON.parse(out)
    expect(routes.find(({ route }: { route: string }) => route === '/contexts').added).toHaveLength(8)
  })

  it('compares the last instant of a recording, and names a recording that has another name', async () => {
    const original = await startOriginal()
    const dir = directory()
    const [file, other, recorded] = [join(dir, 'incident.json'), join(dir, 'last.json'), join(dir, 'recording')]
    await startCommand(['capture', original.prefix, '-o', file], { SERVICE_ADMIN_KEY: KEY }).ended
    const record = startCommand(['record', original.prefix, '-o', recorded], { SERVICE_ADMIN_KEY: KEY })
    await until('a snapshot', async () => {
      try {
        return openRecording(segmentsIn(recorded)).to
      } catch {
        return undefined
      }
    })
    record.signal('SIGTERM')
    await record.ended
    const segment = join(recorded, segmentsIn(recorded)[0]?.name as string)
    for (const path of [recorded, segment]) {
      const { code, out, err } = await startCommand(['diff', file, path]).ended
      expect([code, err]).toEqual([0, ''])
      expect(out).not.toMatch(/[1-9]\d* (?:new|gone)/)
    }
    copyFileSync(segment, other)
    for (const args of [
      ['diff', file, other],
      ['open', other],
    ]) {
      const { code, err } = await startCommand(args).ended
      expect([code, err]).toEqual([1, expect.stringContaining('is a recording: give it a name that ends in .ndjson')])
    }
    const empty = await startCommand(['diff', file, directory()]).ended
    expect([empty.code, empty.err]).toEqual([1, expect.stringContaining('no segment that can be read')])
    writeFileSync(segment, `${readFileSync(segment, 'utf8')}x\n`)
    const { command } = await openFile([recorded])
    command.signal('SIGTERM')
    expect((await command.ended).err).toMatch(/segment-\S+ is damaged: line \d+ and what follows is not shown\n/)
  })

  it('reports a missing file, with exit code 1', async () => {
    const { code, err } = await startCommand(['open', '/nowhere/incident.json']).ended
    expect([code, err]).toEqual([1, expect.stringContaining('cannot open /nowhere/incident.json: ENOENT')])
  })
})

describe('relayscope record', () => {
  it('reports once that the router is lost, and begins a segment when it is back', async () => {
    const router = createSubject({ inspectors: createFakeInspectors(createWorld()), now: Date.now })
    const first = await startNodeServer(router, { port: 0, closeTimeoutMs: 1 })
    const { port } = new URL(first.url)
    const dir = directory()
    const errors: unknown[] = []
    const recorder = createFlightRecorder({
      router: { prefix: first.url + router.prefix, fetch: (request) => fetch(request) },
      headers: { 'x-admin-key': KEY },
      files: openRecordingDirectory({ path: dir }),
      everyMs: 10,
      onError: (error) => errors.push(error),
    })
    await recorder.started
    await first.close()
    await until('the loss', async () => errors.length > 0 || undefined)
    const second = await startNodeServer(router, { port: Number(port), closeTimeoutMs: 1 })
    await until('the next segment', async () => openRecording(segmentsIn(dir)).gaps.length === 1 || undefined)
    await recorder.close()
    await second.close()
    expect(errors).toEqual([expect.objectContaining({ name: 'CaptureFailed' })])
    expect(recorder.span()?.gaps).toHaveLength(1)
  })

  it('continues after kill -9 with a new snapshot, and shows the time between as a gap, and no instant outside', async () => {
    const world = createWorld()
    let now = NOW
    const startedAt = performance.now()
    const router = createSubject({
      inspectors: createFakeInspectors(world),
      now: () => now + Math.round(performance.now() - startedAt),
    })
    const server = await startNodeServer(router, { port: 0, closeTimeoutMs: 1 })
    onTestFinished(async () => void (await server.close()))
    const url = server.url + router.prefix
    const dir = directory()
    const open = () => openRecording(segmentsIn(dir))
    // A segment whose first snapshot is being written cannot be opened yet.
    const isOpen = (matches: (recording: ReturnType<typeof open>) => boolean | undefined) => async () => {
      try {
        return matches(open()) || undefined
      } catch (error) {
        if (error instanceof IncidentRefused) return undefined
        throw error
      }
    }
    const idsIn = (incident: Incident) =>
      incident.parts.find(({ route }) => route === '/connections')?.rows?.map((row) => row.connection_id)

    const first = startCommand(['record', url, '-o', dir, '--keep', '1h'], { SERVICE_ADMIN_KEY: KEY })
    await until(
      'a snapshot',
      isOpen(({ from }) => from > 0),
    )
    world.connections = [...(world.connections ?? []), connection({ connection_id: 'while-recorded' })]
    await until(
      'the change',
      isOpen(({ at }) => idsIn(at(null))?.includes('while-recorded')),
    )
    first.signal('SIGKILL')
    expect((await first.ended).code).toBe(null)
    const crashedAt = open().to

    // A minute of which nothing is known.
    now += 60_000
    world.connections = [connection({ connection_id: 'while-dead' })]
    const second = startCommand(['record', url, '-o', dir], { SERVICE_ADMIN_KEY: KEY })
    await until(
      'the next snapshot',
      isOpen(({ gaps }) => gaps.length > 0),
    )
    world.connections = [...world.connections, connection({ connection_id: 'after' })]
    await until(
      'the change',
      isOpen(({ at }) => idsIn(at(null))?.includes('after')),
    )
    second.signal('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0 })

    const recording = open()
    expect(recording.gaps).toHaveLength(1)
    const [[from, to]] = recording.gaps as [[number, number]]
    expect(from).toBe(crashedAt)
    expect(to - from).toBeGreaterThan(59_000)
    expect(idsIn(recording.at(from + 30_000))).toContain('while-recorded')
    expect(idsIn(recording.at(to))).toEqual(['while-dead'])
    expect(idsIn(recording.at(null))).toEqual(['while-dead', 'after'])

    const { router: replay, command } = await openFile([dir, '--at', new Date(from + 30_000).toISOString()])
    const { body } = await askRouter(replay, '/capabilities')
    const { incident } = (body as { extensions: { incident: { recording: { at: string; gaps: unknown[] } } } })
      .extensions
    expect(incident.recording).toMatchObject({
      at: new Date(from + 30_000).toISOString(),
      gaps: [{ from: new Date(from).toISOString(), to: new Date(to).toISOString() }],
    })
    command.signal('SIGTERM')
    expect((await command.ended).err).toContain(
      `nothing was recorded from ${new Date(from).toISOString()} to ${new Date(to).toISOString()}`,
    )
    const outside = await startCommand(['open', dir, '--at', new Date(from - 3_600_000).toISOString()]).ended
    expect([outside.code, outside.err]).toEqual([2, expect.stringContaining('--at must be within the recording')])
    for (const name of readdirSync(dir)) expect(readFileSync(join(dir, name), 'utf8')).not.toContain(KEY)
  })

  it.each<[string, string[], number[]]>([
    ['segments that ended before --keep', ['--keep', '1h'], [120, 30]],
    ['the oldest segments beyond --max-bytes', ['--max-bytes', '190000'], [30]],
  ])('deletes %s', async (_what, bounds, expected) => {
    const original = await startOriginal()
    const dir = directory()
    const nameOf = (minutes: number) => `segment-${String(startedAt - minutes * 60_000).padStart(15, '0')}-1.ndjson`
    const startedAt = Date.now()
    // Started that many minutes ago; each ended when the next one began.
    for (const minutes of [180, 120, 30]) writeFileSync(join(dir, nameOf(minutes)), 'x'.repeat(100_000))
    writeFileSync(join(dir, 'notes.txt'), 'of another application')
    const command = startCommand(['record', original.prefix, '-o', dir, ...bounds], { SERVICE_ADMIN_KEY: KEY })
    onTestFinished(async () => {
      command.signal('SIGTERM')
      await command.ended
    })
    const kept = () => [180, 120, 30].filter((minutes) => readdirSync(dir).includes(nameOf(minutes)))
    await until('the deletion', async () => kept().length === expected.length || undefined)
    expect([kept(), readdirSync(dir).includes('notes.txt')]).toEqual([expected, true])
  })

  it('fails when the router refuses the first snapshot, with exit code 1', async () => {
    const original = await startOriginal()
    const { code, err } = await startCommand(['record', original.prefix, '-o', directory()], {
      SERVICE_ADMIN_KEY: 'no',
    }).ended
    expect([code, err]).toEqual([1, expect.stringContaining('403 forbidden')])
  })

  it('refuses a directory that another process records to, and takes over the lock of one that was killed', async () => {
    const original = await startOriginal()
    const dir = directory()
    const lock = join(dir, 'recording.lock')
    const start = () => startCommand(['record', original.prefix, '-o', dir], { SERVICE_ADMIN_KEY: KEY })
    const recorded = () => until('a snapshot', async () => segmentsIn(dir).length > 0 || undefined)
    const first = start()
    await recorded()
    const refused = await start().ended
    const holder = readFileSync(lock, 'utf8')
    expect([refused.code, refused.err]).toEqual([
      1,
      `relayscope: ${dir} is already being recorded to by process ${holder}. If it is not, delete ${lock}, or wait a minute\n`,
    ])
    first.signal('SIGKILL')
    await first.ended
    expect(readFileSync(lock, 'utf8')).toBe(holder)
    const second = start()
    // The old lock is deleted before the new one is written.
    const text = () => readFile(lock, 'utf8').catch(() => holder)
    await until('the lock', async () => (await text()) !== holder || undefined)
    await second.said('recording')
    second.signal('SIGTERM')
    expect((await second.ended).code).toBe(0)
    expect(readdirSync(dir).filter((name) => name.includes('lock'))).toEqual([])
  })

  it('refuses a directory without a recording', async () => {
    const empty = await startCommand(['open', directory()]).ended
    expect([empty.code, empty.err]).toEqual([1, expect.stringContaining('no segment that can be read')])
  })
})
