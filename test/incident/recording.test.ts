import { beforeAll, describe, expect, it } from 'vitest'
import { captureIncident } from '../../src/incident/capture.js'
import { type Incident, incidentComposition } from '../../src/incident/index.js'
import {
  createReplay,
  openRecording,
  type RecordedLine,
  type Segment,
  snapshotLine,
} from '../../src/incident/recording.js'
import { connection, NOW } from '../diagnostics/world.js'
import { askRouter, createOriginal, HEADERS as headers } from './subject.js'

const at = (seconds: number) => new Date(NOW + 1_000 * seconds).toISOString()

/** An incident at NOW plus `seconds`. */
const moved = (incident: Incident, seconds: number): Incident => ({
  ...incident,
  clocks: { node: { from: at(seconds), to: at(seconds) }, observer: { from: at(seconds + 7), to: at(seconds + 7) } },
})

const rows = (second: number, route: string, line: Partial<RecordedLine & { kind: 'rows' }>): string =>
  JSON.stringify({ kind: 'rows', at: at(second), route, upsert: [], remove: [], order: null, cut: false, ...line })

const segment = (name: string, ...lines: string[]): Segment => ({
  name,
  read: () => lines.map((line) => `${line}\n`).join(''),
})

const idsIn = (incident: Incident, route = '/connections') =>
  incident.parts.find((part) => part.route === route)?.rows?.map((row) => row.connection_id ?? row.context_id)

let incident: Incident
beforeAll(async () => {
  incident = await captureIncident(createOriginal(), { headers })
})

/** A snapshot, and three changes at 1, 2 and 10 s. */
const changes = () => [
  snapshotLine(moved(incident, 0), false),
  rows(1, '/connections', { remove: ['conn-1'], upsert: [connection({ connection_id: 'conn-9' })] }),
  JSON.stringify({ kind: 'seen', at: at(1.5) }),
  rows(2, '/connections', {
    upsert: [connection({ connection_id: 'conn-2', status: 'disconnected', disconnected_at: at(2) })],
  }),
  rows(10, '/connections', { order: ['conn-9', 'conn-2'] }),
]

describe('openRecording', () => {
  it('shows a sum that did not change as of its last confirmation', () => {
    const route = '/delivery/churn'
    const answer = incident.parts.find((part) => part.route === route)?.answer as Record<string, unknown>
    const lines = [
      snapshotLine(moved(incident, 0), false),
      JSON.stringify({ kind: 'seen', at: at(65) }),
      JSON.stringify({ kind: 'answer', at: at(70), route, answer: { ...answer, observed_at: at(70) } }),
    ]
    const recording = openRecording([segment('a', ...lines)])
    const shown = [0, 64, 65, 70].map(
      (seconds) => recording.at(NOW + 1_000 * seconds).parts.find((part) => part.route === route)?.answer?.observed_at,
    )
    expect(shown).toEqual([answer.observed_at, answer.observed_at, at(65), at(70)])
  })

  it('shows the state of each instant', () => {
    const recording = openRecording([segment('a', ...changes())])
    expect([recording.from, recording.to, recording.gaps]).toEqual([NOW, NOW + 10_000, []])
    const idsAt = (seconds: number) => idsIn(recording.at(NOW + 1_000 * seconds))
    expect(idsAt(0)).toEqual(['conn-1', 'conn-2', 'conn-3', 'conn-4', 'conn-5', 'conn-6'])
    expect(idsAt(1)).toEqual(['conn-2', 'conn-3', 'conn-4', 'conn-5', 'conn-6', 'conn-9'])
    expect(idsAt(9)).toEqual(idsAt(2))
    expect(idsAt(10)).toEqual(['conn-9', 'conn-2'])
    expect(recording.at(null).parts).toEqual(recording.at(NOW + 10_000).parts)
    const { clocks, recording: span } = recording.at(NOW + 2_000)
    expect([clocks.node?.to, clocks.observer.to, span?.at]).toEqual([at(2), at(9), at(2)])
  })

  it('reads the complete lines of a segment that a crash cut within a line or at its end', () => {
    const text = segment('a', ...changes()).read()
    const ends = [...text.matchAll(/\n/g)].map(({ index }) => index + 1)
    const idsAfter = ends.map((end) => idsIn(openRecording([{ name: 'a', read: () => text.slice(0, end) }]).at(null)))
    const nearEnds = [0, ...ends].flatMap((end) => [end - 2, end - 1, end, end + 1, end + 2])
    const within = ends.map((end, i) => Math.floor((end + (ends[i - 1] ?? 0)) / 2))
    for (const cut of [...nearEnds, ...within].filter((cut) => cut >= 0 && cut <= text.length)) {
      const torn = { name: 'a', read: () => text.slice(0, cut) }
      const read = ends.findLastIndex((end) => end <= cut)
      if (read < 0) expect(() => openRecording([torn])).toThrow('no segment that can be read')
      else expect(idsIn(openRecording([torn]).at(null)), `cut at ${cut}`).toEqual(idsAfter[read])
    }
  })

  it('shows the time between a crash and the next snapshot as a gap', () => {
    const later = snapshotLine(moved(incident, 300), false)
    const recording = openRecording([segment('b', later), segment('a', ...changes())])
    expect(recording.gaps).toEqual([[NOW + 10_000, NOW + 300_000]])
    expect(idsIn(recording.at(NOW + 200_000))).toEqual(['conn-9', 'conn-2'])
    expect(idsIn(recording.at(NOW + 300_000))).toHaveLength(6)
    expect(recording.at(null).recording?.gaps).toEqual([{ from: at(10), to: at(300) }])
    // Answers within the gap are of the last instant that was observed.
    const within = recording.at(NOW + 200_000)
    const { node, observer } = within.clocks
    expect([(node ?? observer).to, within.recording?.at]).toEqual([at(10), at(200)])
  })

  it('has no gap between a segment and its continuation, and one where recording paused within a segment', () => {
    const next = segment('b', snapshotLine(moved(incident, 12), true), JSON.stringify({ kind: 'seen', at: at(100) }))
    const recording = openRecording([segment('a', ...changes()), next])
    expect(recording.gaps).toEqual([[NOW + 12_000, NOW + 100_000]])
  })

  it('lists the newest of many gaps, counts the others, and names the one that an instant is in', async () => {
    const seen = Array.from({ length: 1_201 }, (_, i) => JSON.stringify({ kind: 'seen', at: at(60 * (i + 1)) }))
    const recording = openRecording([segment('a', snapshotLine(moved(incident, 0), false), ...seen)])
    expect(recording.gaps).toHaveLength(1_201)
    const shown = recording.at(NOW + 30_000)
    const gap = { from: at(0), to: at(60) }
    expect(shown.recording).toMatchObject({ gaps: { length: 1_000 }, gaps_omitted: 201, gap })
    expect(recording.at(NOW + 60_000).recording?.gap).toBeNull()
    const { body } = await askRouter(await createReplay({ at: () => shown }), '/capabilities')
    const banner = (body as { extensions: { incident: { recording: { gaps: unknown[]; gaps_omitted: number } } } })
      .extensions.incident.recording
    expect(banner).toMatchObject({ gaps: { length: 250 }, gaps_omitted: 951, gap })
  })

  it('skips a segment with a torn snapshot, and the lines after an invalid one', () => {
    const torn = { name: 'b', read: () => snapshotLine(moved(incident, 60), false).slice(0, 500) }
    const hostile = segment('a', ...changes().slice(0, 2), '{"kind":"rows"}', ...changes().slice(3))
    const recording = openRecording([torn, hostile])
    expect([recording.skipped, recording.to]).toEqual([['b'], NOW + 1_000])
    expect(recording.damaged).toEqual([{ name: 'a', line: 3 }])
  })

  it('shows what an invalid line hides as a gap, up to the next segment', () => {
    const hostile = segment('a', ...changes().slice(0, 2), 'x', ...changes().slice(3))
    const next = segment('b', snapshotLine(moved(incident, 12), true))
    const recording = openRecording([hostile, next])
    expect(recording.gaps).toEqual([[NOW + 1_000, NOW + 12_000]])
    expect(openRecording([segment('a', ...changes()), next])).toMatchObject({ gaps: [], damaged: [] })
    const torn = {
      name: 'a',
      read: () =>
        segment('a', ...changes())
          .read()
          .slice(0, -3),
    }
    expect(openRecording([torn]).damaged).toEqual([])
  })

  it('refuses rows that are not what their schema says, by the name of the route', () => {
    const recording = openRecording([
      segment('a', snapshotLine(incident, false), rows(1, '/connections', { upsert: [{ connection_id: 'x' }] })),
    ])
    expect(() => recording.at(null)).toThrow('the segment has an invalid row of /connections')
  })

  it('says that what is asked for by a key is as of the snapshot, and where only the newest rows were followed', async () => {
    const cut = rows(1, '/connections', { upsert: [connection({ connection_id: 'conn-9' })], cut: true })
    const shown = openRecording([segment('a', snapshotLine(incident, false), cut)]).at(null)
    const reasons = shown.missing.filter(({ reason }) => reason === 'not_followed').map(({ route }) => route)
    expect(reasons).toEqual(
      expect.arrayContaining(['/connections', '/connections/{connection_id}/history', '/history/messages']),
    )
    expect(reasons).not.toContain('/contexts')
    const replay = await createReplay({ at: () => shown })
    expect(await askRouter(replay, '/connections/conn-1/history')).toMatchObject({
      status: 200,
      body: { has_more: false },
    })
  })
})

describe('createReplay', () => {
  it('answers 503 for an instant whose segment is damaged or was deleted', async () => {
    const bad = rows(1, '/connections', { upsert: [{ connection_id: 'x' }] })
    let later = `${snapshotLine(moved(incident, 60), true)}\n`
    const recording = openRecording([
      segment('a', snapshotLine(moved(incident, 0), false), bad),
      { name: 'b', read: () => later },
    ])
    const replay = await createReplay({ at: (instant) => recording.at(instant ?? NOW) })
    const statusAt = async (ms: number) => (await askRouter(replay, `/at/${NOW + ms}/connections`)).status
    expect([await statusAt(0), await statusAt(2_000), await statusAt(60_000)]).toEqual([200, 503, 200])
    later = ''
    expect(await statusAt(60_001)).toBe(503)
    await expect(createReplay(recording)).rejects.toThrow('the segment b cannot be read any more')
  })

  it('answers below /at/{epoch ms} as of that instant', async () => {
    const recording = openRecording([segment('a', ...changes())])
    const replay = await createReplay(recording)
    for (const [path, count] of [
      ['', 2],
      [`/at/${NOW}`, 6],
      [`/at/${NOW + 1_000}`, 6],
    ] as const) {
      const { status, body } = await askRouter(replay, `${path}/connections`)
      expect([status, (body as { items: unknown[] }).items.length]).toEqual([200, count])
    }
    for (const outside of ['/at/1', '/at/999999999999999', `/at/${NOW - 1}`, `/at/${NOW + 10_001}`])
      expect(await askRouter(replay, `${outside}/connections`)).toMatchObject({
        status: 422,
        body: { errors: [{ name: 'instant', reason: `must be within the recording, from ${at(0)} to ${at(10)}` }] },
      })
    // Each instant is one router, and only so many are kept.
    for (let i = 0; i < 30; i++) expect((await askRouter(replay, `/at/${NOW + i}/capabilities`)).status).toBe(200)
  })

  it('answers 422 for another instant than that of a capture', async () => {
    const { status, body } = await askRouter(await createReplay({ at: () => incident }), '/at/1/connections')
    expect([status, body]).toEqual([
      422,
      expect.objectContaining({
        code: 'invalid_path',
        errors: [{ in: 'path', name: 'instant', reason: 'must be left out: a capture shows one instant' }],
      }),
    ])
  })

  it('tells the dashboard which instants there are', async () => {
    const { body } = await askRouter(
      await createReplay(openRecording([segment('a', ...changes())])),
      `/at/${NOW + 2_000}/capabilities`,
    )
    const extensions = (body as { extensions: { incident: unknown } }).extensions
    expect(extensions.incident).toMatchObject({ recording: { from: at(0), to: at(10), at: at(2), gaps: [] } })
    expect(incidentComposition(incident).extensions.incident).toMatchObject({ recording: null })
  })
})
