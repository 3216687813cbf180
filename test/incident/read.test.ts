import { beforeAll, describe, expect, it } from 'vitest'
import { captureIncident } from '../../src/incident/capture.js'
import { INCIDENT_BYTES, type Incident, incidentJsonSchema } from '../../src/incident/format.js'
import { createIncidentInspectors, type IncidentRefused, readIncident } from '../../src/incident/index.js'
import { createOriginal, HEADERS as headers } from './subject.js'

let incident: Incident
let text: string
beforeAll(async () => {
  incident = await captureIncident(createOriginal(), { headers })
  text = JSON.stringify(incident)
})

/** Why a file is refused: its code, and the sentence. */
function refusalOf(file: string | Uint8Array | object): [code: string, message: string] {
  try {
    readIncident(file)
  } catch (error) {
    const { name, code, message } = error as IncidentRefused
    expect(name).toBe('IncidentRefused')
    return [code, message]
  }
  return ['none', '']
}

const withPart = (route: string, change: (row: Record<string, unknown>) => object) => ({
  ...incident,
  parts: incident.parts.map((part) =>
    part.route === route ? { ...part, rows: part.rows?.map((row) => change({ ...row })) } : part,
  ),
})

describe('readIncident', () => {
  it('reads back what a capture wrote', () => {
    expect(readIncident(text)).toEqual(JSON.parse(text))
    expect(readIncident(new TextEncoder().encode(text))).toEqual(JSON.parse(text))
  })

  it('refuses a file that was cut short at any of a hundred places', () => {
    for (let i = 0; i < 100; i++) {
      const [code] = refusalOf(text.slice(0, Math.floor((text.length * i) / 100)))
      expect(code).toBe('not_json')
    }
  })

  it.each<[string, () => string | Uint8Array | object, string, RegExp]>([
    ['bytes that are not UTF-8', () => new Uint8Array([0x7b, 0xff, 0x7d]), 'not_json', /not UTF-8/],
    ['more bytes than a file may have', () => ' '.repeat(INCIDENT_BYTES + 1), 'too_large', /67108864 bytes/],
    ['the same as bytes', () => new Uint8Array(INCIDENT_BYTES + 1), 'too_large', /67108864 bytes/],
    ['deep nesting', () => '['.repeat(1_000_000), 'too_deep', /deeper than 36 levels/],
    ['deep nesting in an object', () => JSON.parse(`${'{"a":'.repeat(50)}1${'}'.repeat(50)}`), 'too_deep', /36 levels/],
    ['millions of lists', () => `[${'[],'.repeat(2_000_001)}[]]`, 'hostile', /2000000 objects and lists/],
    ['a member named twice', () => text.replace('"format":', '"format":1,"format":'), 'hostile', /twice/],
    ['__proto__', () => text.replace('"metadata":{', '"metadata":{"__proto__":{},'), 'hostile', /"__proto__"/],
    [
      '__proto__ in escapes',
      () => text.replace('"metadata":{', '"metadata":{"\\u005f_proto__":{},'),
      'hostile',
      /"__proto__"/,
    ],
    ['another format', () => ({ ...incident, format: 'har' }), 'wrong_format', /"format" is not "relayscope-incident"/],
    ['a list', () => '[]', 'wrong_format', /not an incident/],
    ['null', () => 'null', 'wrong_format', /not an incident/],
    ['another version', () => ({ ...incident, version: 2 }), 'wrong_version', /version 2 .* reads version 1/],
    ['an unknown version', () => ({ ...incident, version: '1' }), 'wrong_version', /no known version/],
    ['a header of other types', () => ({ ...incident, clocks: 'noon' }), 'invalid', /clocks: expected object/],
    ['an invalid timestamp', () => ({ ...incident, since: 'yesterday' }), 'invalid', /since: expected ISO 8601/],
    [
      'a row of other types',
      () => withPart('/connections', (row) => ({ ...row, status: 'maybe' })),
      'invalid',
      /\/connections .*rows\.0\.status: expected one of connected, disconnected/,
    ],
    ['a row that is a text', () => withPart('/contexts', () => Object('x')), 'invalid', /\/contexts/],
    [
      'two rows with one id',
      () => withPart('/connections', (row) => ({ ...row, connection_id: 'same' })),
      'duplicate_row',
      /\/connections has two rows with the same id/,
    ],
    [
      'a part without rows',
      () => ({ ...incident, parts: [{ route: '/connections' }] }),
      'invalid',
      /rows: expected array/,
    ],
    [
      'two parts of one route',
      () => ({ ...incident, parts: [...incident.parts, ...incident.parts] }),
      'invalid',
      /two parts of/,
    ],
  ])('refuses %s by name', (_what, file, code, message) => {
    const refusal = refusalOf(file())
    expect(refusal[0]).toBe(code)
    expect(refusal[1]).toMatch(message)
  })

  it('repeats no value of a hostile file in its message', () => {
    const [, message] = refusalOf({
      ...incident,
      parts: [
        { route: '/connections', rows: [{ connection_id: 'planted' }] },
        { route: 'planted' },
        { route: 'planted' },
      ],
    })
    expect(message).not.toContain('planted')
  })

  it('drops members that the format does not name, and parts of a newer version', () => {
    const read = readIncident({ ...incident, more: 1, parts: [...incident.parts, { route: '/newer', rows: [] }] })
    expect(read).toEqual(JSON.parse(text))
  })

  it('lets names of prototypes be ids and keys of metadata', async () => {
    const file = withPart('/connections', (row) => ({
      ...row,
      user_id: 'constructor',
      metadata: { constructor: 'x', toString: 'y' },
    }))
    const connections = await createIncidentInspectors(file).registry?.listConnections(
      { user_id: 'constructor' },
      { limit: 10, cursor: null },
      { signal: new AbortController().signal },
    )
    expect(connections?.items).toHaveLength(6)
  })
})

it('describes in its JSON Schema every member that a capture writes', () => {
  const { required, properties } = incidentJsonSchema() as { required: string[]; properties: object }
  expect(Object.keys(incident).sort()).toEqual([...required].sort())
  expect(Object.keys(properties).sort()).toEqual([...required].sort())
  const routes = JSON.stringify(incidentJsonSchema()).matchAll(/"const":"(\/[^"]*)"/g)
  expect([...routes].map(([, route]) => route)).toEqual(
    expect.arrayContaining(incident.parts.map(({ route }) => route)),
  )
})
