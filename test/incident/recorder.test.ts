/** The flight recorder: `/at/{epoch ms}` answers as the router did then, within bounded memory. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRecordingDirectory } from '../../src/adapters/recording-directory.js'
import { captureLast } from '../../src/incident/capture-last.js'
import { createFlightRecorder, type FlightRecorderOptions } from '../../src/incident/recorder.js'
import { openRecording } from '../../src/incident/recording.js'
import type { AccessRecord } from '../../src/internal/diagnostics/hooks.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/kits.js'
import { createSubject, type RouterOptions } from '../diagnostics/subject.js'
import { connection, createWorld, NOW } from '../diagnostics/world.js'
import { soon } from '../redis/wait-for.js'
import { askRouter, HEADERS, timeless } from './subject.js'

type World = ReturnType<typeof createWorld>

/** The commands of the world, with one more for each id: it failed, or was acknowledged. */
const commands = (world: World, failed: readonly string[], waiting: readonly string[] = []) => {
  const [pattern] = createWorld().delivery.statuses ?? []
  const of = (command_id: string, terminal: object | null) => ({ ...pattern, command_id, terminal })
  const end = { state: 'failed', at: new Date(NOW).toISOString(), reason: 'crashed' }
  const statuses = [...failed.map((id) => of(id, end)), ...waiting.map((id) => of(id, null))]
  Object.assign(world.delivery, { statuses })
}

/** A recorder over a world that changes, and a router that has it. */
function recorded(options: FlightRecorderOptions = {}, routerOptions: RouterOptions = {}) {
  const world: World = createWorld()
  const inspectors = createFakeInspectors(world as FakeWorld)
  const startedAt = performance.now()
  const now = () => NOW + Math.round(performance.now() - startedAt)
  const live = createSubject({ inspectors, now })
  const recorder = createFlightRecorder({
    router: live,
    headers: HEADERS,
    everyMs: 5,
    onError: null,
    ...options,
  })
  onTestFinished(() => recorder.close())
  const router = createSubject({ inspectors, now, recorder, ...routerOptions })
  /** Resolves when what is true now has been recorded; returns the latest recorded instant. */
  async function settled(): Promise<number> {
    const at = now()
    await soon(() => expect(recorder.span()?.to).toBeGreaterThan(at + 1))
    const to = recorder.span()?.to as number
    await soon(() => expect(recorder.span()?.to).toBeGreaterThan(to))
    return recorder.span()?.to as number
  }
  const ask = (path: string, headers: Record<string, string> = HEADERS) => askRouter(router, path, headers)
  return { world, recorder, router, live, now, settled, ask }
}

const pick = <T>(list: readonly T[], random: () => number): T => list[Math.floor(random() * list.length)] as T

/** A generator of numbers from 0 to 1, the same for the same seed. */
function seeded(seed: number) {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

describe('createFlightRecorder', () => {
  it('answers on every recorded route as the router did at that instant', async () => {
    const { world, live, settled, ask } = recorded()
    const random = seeded(7)
    const index = (await askRouter(live, '/', HEADERS)).body as { routes: { path: string; available: boolean }[] }
    const paths = index.routes
      .filter(
        ({ path, available }) =>
          available && !/[{]|openapi|search|findings|^\/$|capabilities|sources|messages|streams/.test(path),
      )
      .map(({ path }) => path)
    expect(paths.length).toBeGreaterThan(15)
    const kept: { at: number; path: string; body: unknown }[] = []
    for (let i = 0; i < 40; i++) {
      const connections = [...(world.connections ?? [])]
      if (random() < 0.5) connections.push(connection({ connection_id: `new-${i}`, client_id: `client-${i}` }))
      if (random() < 0.4) connections.splice(Math.floor(random() * connections.length), 1)
      const changed = pick(connections, random)
      world.connections = connections.map((each) =>
        each === changed ? { ...each, last_seen_at: new Date(NOW + i).toISOString(), metadata: { step: i } } : each,
      )
      if (random() < 0.5)
        commands(
          world,
          [`failed-${i}`],
          Array.from({ length: i % 7 }, (_, j) => `waits-${i + j}`),
        )
      const at = await settled()
      for (let j = 0; j < 5; j++) {
        const path = pick(paths, random)
        kept.push({ at, path, body: (await askRouter(live, path, HEADERS)).body })
      }
    }
    for (const { at, path, body } of kept)
      expect(timeless((await ask(`/at/${at}${path}`)).body), `${path} at ${at}`).toEqual(timeless(body))
  })

  it('filters by a span of time as of an instant', async () => {
    const { world, live, settled, ask } = recorded()
    commands(world, ['failed'], ['waits'])
    const spans = [`from=${NOW - 499}`, `to=${NOW - 501}`, `from=${NOW}&to=${NOW}`, `from=${NOW + 1}`]
    const paths = ['/connections', '/delivery/commands', '/rpc/ended'].flatMap((path) =>
      spans.map((span) => `${path}?${span}`),
    )
    const at = await settled()
    const known: unknown[] = []
    for (const path of paths) known.push((await askRouter(live, path, HEADERS)).body)
    world.connections = [connection({})]
    commands(world, [])
    await settled()
    for (const [i, path] of paths.entries())
      expect(timeless((await ask(`/at/${at}${path}`)).body), path).toEqual(timeless(known[i]))
    const idsOf = async (path: string) =>
      ((await ask(`/at/${at}${path}`)).body as { items: Record<string, string>[] }).items.map(
        ({ command_id, connection_id }) => command_id ?? connection_id,
      )
    expect(await idsOf(`/delivery/commands?from=${NOW}`)).toEqual(['waits', 'failed'])
    expect(await idsOf(`/delivery/commands?from=${NOW + 1}`)).toEqual(['waits'])
    expect(await idsOf(`/delivery/commands?to=${NOW - 501}`)).toEqual([])
    expect(await idsOf(`/connections?from=${NOW - 500}`)).toContain('conn-6')
    expect(await idsOf(`/connections?from=${NOW - 499}`)).not.toContain('conn-6')
  })

  it('keeps what ended badly, however much else is recorded after it', async () => {
    const maxBytes = 100_000
    const { world, settled, recorder, ask } = recorded({ maxBytes, everyMs: 1 })
    commands(world, ['failed-early'])
    world.connections = [connection({ connection_id: 'gone', status: 'disconnected' }), connection({})]
    const at = await settled()
    commands(world, [])
    world.connections = [connection({})]
    const from = await settled()
    // Each reading shows other connections, whose noise cannot be compressed.
    let flooded = 0
    Object.defineProperty(world, 'connections', {
      get: () =>
        Array.from({ length: 4 }, (_, i) => {
          const noise = randomBytes(4_000).toString('base64')
          flooded += noise.length
          return connection({ connection_id: crypto.randomUUID(), client_id: `client-${i}`, metadata: { noise } })
        }),
    })
    await soon(() => expect(flooded).toBeGreaterThan(100 * maxBytes))
    const early = await recorder.incidentAt(at)
    const rowsOf = (route: string) => early.parts.find((part) => part.route === route)?.rows ?? []
    expect(rowsOf('/delivery/commands')).toMatchObject([{ command_id: 'failed-early' }])
    expect(rowsOf('/connections')).toMatchObject([{ connection_id: 'gone' }])
    expect(early.missing).toContainEqual(expect.objectContaining({ route: '/connections', reason: 'cut' }))
    // The minutes of the flood that had to leave say so, too.
    expect((await recorder.incidentAt(from)).missing.some(({ reason }) => reason === 'cut')).toBe(true)
    const page = await ask(`/at/${at}/delivery/commands`)
    expect(page).toMatchObject({ status: 200, body: { items: [{ command_id: 'failed-early' }], has_more: true } })
    expect(recorder.span()?.from).toBeLessThanOrEqual(at)
  })

  it('forgets it after its time', async () => {
    const { world, settled, recorder } = recorded({ keepMs: 200 })
    commands(world, ['failed-early'])
    const at = await settled()
    commands(world, [])
    const gone = await settled()
    await soon(() => expect(recorder.span()?.from).toBeGreaterThan(gone))
    const shown = JSON.stringify(
      (await recorder.incidentAt(at)).parts.find(({ route }) => route === '/delivery/commands'),
    )
    expect(shown).not.toContain('failed-early')
  })

  it('needs the key, answers 422 outside of what is recorded, and 304 for what is known', async () => {
    const records: AccessRecord[] = []
    const { settled, router, ask, recorder, now } = recorded({}, { onAccess: (record) => void records.push(record) })
    const at = await settled()
    expect(await ask(`/at/${at}/connections`, {})).toMatchObject({ status: 403 })
    const outside = await ask(`/at/${(recorder.span()?.from as number) - 1}/connections`)
    expect(outside).toMatchObject({ status: 422, body: { code: 'invalid_path' } })
    expect((await ask(`/at/${now() + 60_000}/connections`)).status).toBe(422)
    expect((await ask('/at/x/connections')).status).toBe(404)
    const request = (headers: Record<string, string>) =>
      router.fetch(new Request(`http://localhost${router.prefix}/at/${at}/connections`, { headers }))
    const first = await request(HEADERS)
    expect([first.status, first.headers.get('x-as-of')]).toEqual([200, new Date(at).toISOString()])
    const again = await request({ ...HEADERS, 'if-none-match': first.headers.get('etag') as string })
    expect([again.status, again.headers.get('x-as-of')]).toEqual([304, new Date(at).toISOString()])
    // Access records say when a caller asked, and not which instant was asked for.
    const last = records.at(-1) as AccessRecord
    expect(last).toMatchObject({ route: '/connections', status: 304, principal: expect.any(String) })
    expect(Math.abs(Date.parse(last.at) - now())).toBeLessThan(300_000)
    expect(records.filter(({ status }) => status === 403)).toHaveLength(1)
    const { body } = await ask('/capabilities')
    expect((body as { extensions: { operations: string[] } }).extensions.operations).toContain('instants')
  })

  it('shows a caller of some users nothing of others', async () => {
    const { world, settled, ask } = recorded({}, { authorize: () => ({ user_ids: ['alice'] }) })
    world.connections = [
      connection({ connection_id: 'hers', user_id: 'alice', client_id: 'a' }),
      connection({ connection_id: 'not-hers', user_id: 'bob', client_id: 'b' }),
    ]
    const at = await settled()
    const live = await ask('/connections?user_id=alice')
    expect(timeless((await ask(`/at/${at}/connections?user_id=alice`)).body)).toEqual(timeless(live.body))
    for (const path of ['/connections', '/connections?user_id=bob', '/delivery/summary', '/users/bob/summary'])
      expect(JSON.stringify(await ask(`/at/${at}${path}`)), path).not.toContain('not-hers')
    expect(JSON.stringify(await ask(`/at/${at}/capabilities`))).not.toContain('bob')
  })

  it('answers 503 for a source that did not answer then, and shows the rest', async () => {
    const world = createWorld()
    const inspectors = createFakeInspectors(world as FakeWorld)
    let isDown = false
    const { delivery } = inspectors
    const failing = new Proxy(delivery as object, {
      get: (target, name) =>
        isDown && typeof name === 'string' && name !== 'then'
          ? () => Promise.reject(new Refusal('unavailable'))
          : Reflect.get(target, name),
    })
    const recorder = createFlightRecorder({
      inspectors: { ...inspectors, delivery: failing as typeof delivery },
      everyMs: 5,
      onError: null,
    })
    onTestFinished(() => recorder.close())
    await recorder.started
    const router = createSubject({ inspectors, recorder })
    const latest = async () => {
      const to = recorder.span()?.to as number
      await soon(() => expect(recorder.span()?.to).toBeGreaterThan(to + 20))
      return recorder.span()?.to as number
    }
    const up = await latest()
    isDown = true
    const down = await latest()
    isDown = false
    const back = await latest()
    const statusAt = async (at: number, path: string) => (await askRouter(router, `/at/${at}${path}`, HEADERS)).status
    expect(await Promise.all([up, down, back].map((at) => statusAt(at, '/delivery/commands')))).toEqual([200, 503, 200])
    expect(await statusAt(down, '/connections')).toBe(200)
  })

  it('gives the last minutes to a capture, as a recording that shows what was true at each instant', async () => {
    const { world, settled, router, recorder } = recorded()
    world.connections = [connection({ connection_id: 'first' })]
    const first = await settled()
    world.connections = [
      connection({ connection_id: 'first', metadata: { step: 2 } }),
      connection({ connection_id: 'second', client_id: 'b' }),
    ]
    const second = await settled()
    world.connections = []
    const third = await settled()
    await recorder.close()
    const progress: number[] = []
    const text = await captureLast(router, {
      headers: HEADERS,
      everyMs: 5,
      onProgress: (captured) => progress.push(captured),
    })
    const recording = openRecording([{ name: 'last', read: () => text }])
    const at = (instant: number) => recording.at(instant).parts.find(({ route }) => route === '/connections')?.rows
    expect(at(first + 5)).toMatchObject([{ connection_id: 'first', metadata: { version: '1' } }])
    expect(at(second + 5)).toMatchObject([
      { connection_id: 'first', metadata: { step: 2 } },
      { connection_id: 'second' },
    ])
    expect(at(third)).toEqual([])
    expect(progress.at(-1)).toBe(progress.length)
    await expect(captureLast(createSubject(), { headers: HEADERS })).rejects.toThrow('no recording of the last minutes')
  })

  it('gives a caller of some users the last minutes of these', async () => {
    const { world, settled, router } = recorded({}, { authorize: () => ({ user_ids: ['alice'] }) })
    world.connections = [
      connection({ connection_id: 'hers', user_id: 'alice', client_id: 'a' }),
      connection({ connection_id: 'not-hers', user_id: 'bob', client_id: 'b' }),
    ]
    await settled()
    const text = await captureLast(router, { headers: HEADERS, everyMs: 5 })
    const { parts } = openRecording([{ name: 'last', read: () => text }]).at(null)
    expect(parts.find(({ route }) => route === '/connections')?.rows).toMatchObject([{ connection_id: 'hers' }])
    expect(text).not.toContain('not-hers')
  })

  it('rejects when the caller cannot read any route with the time', async () => {
    const { settled, router } = recorded({}, { authorize: ({ route }) => !/sources|count/.test(route) })
    await settled()
    await expect(captureLast(router, { headers: HEADERS })).rejects.toThrow('cannot read any route with the time')
  })

  it('continues in memory when the files fail, and reports that once', async () => {
    const errors: unknown[] = []
    const full = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
    let [appended, closed] = [0, 0]
    const files = {
      begin: async () => {},
      append: async () => {
        if (++appended > 3) throw full
      },
      close: async () => void closed++,
    }
    const { world, settled, ask, recorder } = recorded({ files, onError: (error) => errors.push(error) })
    world.connections = [connection({ connection_id: 'in-memory' })]
    const at = await settled()
    expect(JSON.stringify(await ask(`/at/${at}/connections`))).toContain('in-memory')
    expect(errors).toEqual([full])
    await recorder.close()
    expect(closed).toBe(1)
  })

  it('writes the whole segment again when the files can be written', async () => {
    const errors: unknown[] = []
    const full = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
    const texts: string[] = []
    let isFull = false
    const files = {
      begin: async () => void texts.push(''),
      append: async (text: string) => {
        if (isFull) throw full
        texts.push(`${texts.pop()}${text}`)
      },
      close: async () => {},
    }
    const { world, settled, recorder } = recorded({ files, onError: (error) => errors.push(error) })
    const first = await settled()
    isFull = true
    world.connections = [connection({ connection_id: 'while-full' })]
    const second = await settled()
    isFull = false
    await settled()
    await recorder.close()
    const recording = openRecording(texts.map((text, i) => ({ name: `${i}`.padStart(9, '0'), read: () => text })))
    const idsAt = (at: number) =>
      recording
        .at(at)
        .parts.find(({ route }) => route === '/connections')
        ?.rows?.map((row) => row.connection_id)
    expect(idsAt(first)).not.toContain('while-full')
    expect([idsAt(second), recording.gaps, errors]).toEqual([['while-full'], [], [full]])
  })

  it('reports once that its directory was deleted, and continues in memory', async () => {
    const errors: unknown[] = []
    const path = mkdtempSync(join(tmpdir(), 'recorder-'))
    const files = openRecordingDirectory({ path })
    const { settled, recorder } = recorded({ files, onError: (error) => errors.push(error) })
    await settled()
    rmSync(path, { recursive: true })
    await settled()
    await settled()
    await recorder.close()
    expect(errors).toEqual([expect.objectContaining({ message: expect.stringContaining('was deleted') })])
  })

  it('reports once that there is nothing to read, and rejects what waits for its start', async () => {
    const errors: unknown[] = []
    let requests = 0
    const recorder = createFlightRecorder({
      router: {
        prefix: '',
        fetch: async () => {
          requests++
          return new Response('no', { status: 500 })
        },
      },
      onError: (error) => errors.push(error),
    })
    onTestFinished(() => recorder.close())
    await expect(recorder.started).rejects.toThrow('nothing was captured')
    await expect(recorder.incidentAt(null)).rejects.toThrow('nothing is recorded yet')
    await soon(() => expect(requests).toBeGreaterThan(1))
    expect([errors.length, recorder.span()]).toEqual([1, null])
  })

  it('takes either inspectors or a router', () => {
    expect(() => createFlightRecorder({})).toThrow('Pass one of the options')
    expect(() => createFlightRecorder({ inspectors: {}, router: createSubject() })).toThrow('Pass one of the options')
  })
})
