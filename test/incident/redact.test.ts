import { describe, expect, it } from 'vitest'
import { captureIncident } from '../../src/incident/capture.js'
import type { Incident } from '../../src/incident/format.js'
import { incidentComposition, readIncident } from '../../src/incident/index.js'
import { PARTS } from '../../src/incident/parts.js'
import { redactIncident } from '../../src/incident/redact.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { askRouter, createOriginal, HEADERS as headers } from './subject.js'

const INSTANT = /^\d{4}-\d\d-\d\dT/

/** Returns `value` with a secret in every text and every map of free names where `holds` accepts one. */
function plant(value: unknown, holds: (planted: unknown) => boolean, count: () => number): unknown {
  const planted = (make: (secret: string) => unknown): unknown => {
    const candidate = make(`secret_${count()}`)
    return holds(candidate) ? candidate : undefined
  }
  if (typeof value === 'string') return INSTANT.test(value) ? value : (planted((secret) => secret) ?? value)
  if (value === null) return planted((secret) => secret) ?? planted((secret) => ({ [secret]: secret })) ?? null
  if (Array.isArray(value)) return value.map((each, i) => plant(each, (one) => holds(value.with(i, one)), count))
  if (typeof value !== 'object') return value
  let whole: Record<string, unknown> = { ...value }
  for (const name of Object.keys(whole))
    whole[name] = plant(whole[name], (one) => holds({ ...whole, [name]: one }), count)
  for (const wide of [{ [`secret_${count()}`]: 7 }, { [`secret_${count()}`]: { deep: [`secret_${count()}`] } }])
    if (holds({ ...whole, ...wide })) whole = { ...whole, ...wide }
  return whole
}

/** Returns `incident` with a secret in every field that can hold user text. */
function plantAll(incident: Incident): Incident {
  let planted = 0
  const count = () => ++planted
  const parts = incident.parts.map(({ route, rows, answer }) => {
    const schema = PARTS.find((part) => part.route === route)?.row
    const plantRow = (row: object) =>
      plant(row, (one) => JSON.stringify(schema?.safeParse(one).data) === JSON.stringify(one), count) as Record<
        string,
        unknown
      >
    return { route, ...(rows && { rows: rows.map(plantRow) }), ...(answer && { answer: plantRow(answer) }) }
  })
  return { ...incident, parts, extensions: { secret_host: 'secret_host' }, router_version: 'secret_version' }
}

describe('redaction', () => {
  it('lets no planted text out, of any field of any family', async () => {
    const planted = plantAll(await captureIncident(createOriginal(), { headers }))
    const before = JSON.stringify(planted)
    for (const { route } of planted.parts)
      expect(before.slice(before.indexOf(`"${route}"`)), route).toContain('secret_')
    expect(before.match(/secret_/g)?.length).toBeGreaterThan(300)
    const redacted = redactIncident({
      ...planted,
      user: 'secret_user',
      deployment: { id: 'secret_deployment', mode: 'direct' },
      missing: [
        {
          route: '/contexts',
          of: { user_id: 'secret_of' },
          reason: 'unreachable',
          count: null,
          detail: '503 secret: secret_1',
        },
        { route: '/secret_1', of: null, reason: 'unknown_route', count: null, detail: 'this version cannot read it' },
      ],
    })
    expect(JSON.stringify(redacted)).not.toContain('secret')
    expect(() => readIncident(JSON.stringify(redacted))).not.toThrow()
  })

  it('has no id, name or payload of the original, and keeps states, counts and instants', async () => {
    const redacted = await captureIncident(createOriginal(), { headers, redact: true })
    const text = JSON.stringify(redacted)
    for (const name of [
      'alice',
      'bob',
      'desk',
      'inst-1',
      'conn-1',
      'hello',
      'Opens a page',
      'Notes',
      'archive_note',
      'epoch-1',
    ])
      expect(text).not.toContain(name)
    const connections = redacted.parts.find(({ route }) => route === '/connections')?.rows ?? []
    expect(connections.map(({ status }) => status)).toEqual([...Array(5).fill('connected'), 'disconnected'])
    expect(connections[0]).toMatchObject({ connected_at: '2026-01-02T03:04:00.678Z', metadata: {} })
  })

  it('replaces the same id by the same pseudonym in all families, so that what belongs together stays together', async () => {
    const redacted = await captureIncident(createOriginal(), { headers, redact: true })
    const replay = createDiagnosticsRouter({ ...incidentComposition(redacted), auth: noopAuth() })
    const { body: users } = await askRouter(replay, '/users')
    const { body: original } = await askRouter(createOriginal(), '/users', headers)
    const shapeOf = (page: unknown) =>
      (page as { items: { user_id: string; sources: string[] }[] }).items
        .map(({ user_id, sources, ...numbers }) =>
          JSON.stringify([sources, (numbers as { observed_contexts: number }).observed_contexts]),
        )
        .sort()
    expect(shapeOf(users)).toEqual(shapeOf(original))
    const idsIn = (value: unknown) => new Set(JSON.stringify(value).match(/user-[0-9a-f]{12}/g))
    for (const id of idsIn(users)) {
      const { body } = await askRouter(replay, `/users/${id}/summary`)
      expect(body).toMatchObject({ user_id: id })
    }
  })

  it('keeps the form that a schema requires, and the trace id that is within a trace', async () => {
    const facilities = createMemoryFacilities()
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const me = { user_id: 'ada', client_id: 'c', instance_id: 'i' }
    await facilities.connections.connect({ ...me, client_type: 'web' })
    facilities.rpc.open({ action: 'go', ...me, timeout_ms: 60_000, trace }).then(({ result }) => result.catch(() => {}))
    await facilities.dispatcher.dispatch({ command_id: 'x', user_id: 'ada', client_id: 'c', action: 'go', trace })
    await facilities.history.append({ message_id: 'm', stream: 'users/ada/n', kind: 'event', ...me, trace })
    const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth(), onError: null })
    const redacted = await captureIncident(router, { redact: true })
    const rows = redacted.parts.flatMap(({ rows = [] }) => rows).filter(({ trace }) => trace)
    expect(rows).toHaveLength(3)
    for (const row of rows) expect(String(row.trace).split('-')[1]).toBe(row.trace_id)
    expect(new Set(rows.map(({ trace_id }) => trace_id)).size).toBe(1)
    expect(JSON.stringify(redacted)).not.toMatch(/4bf92f3577b34da6|00f067aa0ba902b7/)
    const replay = createDiagnosticsRouter({ ...incidentComposition(redacted), auth: noopAuth() })
    expect(await askRouter(replay, `/delivery/commands?trace_id=${rows[0]?.trace_id}`)).toMatchObject({
      body: { items: { length: 1 } },
    })
    await facilities.close()
  })

  it('makes other pseudonyms for each file', async () => {
    const [one, other] = await Promise.all(
      [0, 1].map(() => captureIncident(createOriginal(), { headers, redact: true })),
    )
    const pseudonyms = (incident: Incident | undefined): string[] =>
      JSON.stringify(incident).match(/\b[a-z]+-[0-9a-f]{12}\b/g) ?? []
    expect(pseudonyms(one).filter((id) => pseudonyms(other).includes(id))).toEqual([])
    expect(one?.redaction?.id).not.toBe(other?.redaction?.id)
  })
})
