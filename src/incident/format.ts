/** The format `relayscope-incident`, version 1: what one file holds, as a schema, and the bounds of a file. */
import * as z from 'zod'
import { DeploymentMode } from '../internal/contract/delivery.js'
import { Timestamp, utf8Length } from '../internal/contract/ids.js'
import { JsonRecord } from '../internal/contract/json.js'
import { PART_BY_ROUTE, PARTS, type Row } from './parts.js'

export const INCIDENT_FORMAT = 'relayscope-incident'
export const INCIDENT_VERSION = 1
/** Most bytes of one file, in UTF-8: what a browser and a process of 512 MiB can open. */
export const INCIDENT_BYTES = 67_108_864
/** Most entries that say what is missing. */
export const MISSING_MAX = 1_000

/** Why a part of the deployment is not in the file, or not whole. */
export const MissingReason = z
  .enum([
    'not_deployed',
    'forbidden',
    'unreachable',
    'cut',
    'sampled',
    'unreadable',
    'other_users',
    'older',
    'unsteady',
    'not_followed',
    'unknown_route',
  ])
  .describe(
    'Why it is missing. `not_deployed`: the deployment has no such source. `forbidden`: the caller may not see it. `unreachable`: the request failed or timed out. `cut`: a bound of the capture was reached. `sampled`: the router answered with a sample. `unreadable`: records that the router itself could not show. `other_users`: rows of other users, left out by the option `user` or hidden from the caller. `older`: left out by the option `since`. `unsteady`: rows that changed between two walks. `not_followed`: a recording has no changes of it since its snapshot. `unknown_route`: a newer router has it, and this version cannot read it.',
  )
export type MissingReason = z.infer<typeof MissingReason>

/** A part of the deployment that is missing from the file, in whole or in part. */
export const Missing = z
  .object({
    route: z.string().max(500).describe('The route, as its OpenAPI document names it.'),
    of: z
      .record(z.string(), z.string())
      .nullable()
      .describe('The values of its path and query parameters; `null` for the whole route.'),
    reason: MissingReason,
    count: z.int().min(0).nullable().describe('How many records are affected; `null` where that is unknown.'),
    detail: z.string().max(500).describe('The reason as a sentence.'),
  })
  .describe('Something that the file lacks or has only in part.')
export type Missing = z.infer<typeof Missing>

const Clock = z.object({
  from: Timestamp.describe('When the capture began, by this clock.'),
  to: Timestamp.describe('When the capture ended, by this clock.'),
})

const Span = z.object({ from: Timestamp, to: Timestamp })

/** What an incident that was taken out of a recording says of that recording. */
const RecordingSpan = z
  .object({
    from: Timestamp.describe('The first instant that was recorded.'),
    to: Timestamp.describe('The last instant that was recorded.'),
    at: Timestamp.describe('The instant that this incident shows.'),
    gaps: z
      .array(Span)
      .max(MISSING_MAX)
      .describe('When nothing was recorded, the newest ones: from the last line before to the first after.'),
    gaps_omitted: z.int().min(0).describe('How many older gaps `gaps` does not list.'),
    gap: Span.nullable().describe('The gap that this instant is in; `null` if it was recorded.'),
  })
  .describe('The recording that this incident was taken from.')

const HEADER = {
  format: z.literal(INCIDENT_FORMAT),
  version: z.literal(INCIDENT_VERSION),
  writer: z.object({
    name: z.literal('relayscope'),
    version: z.string().max(100).describe('Version of relayscope that wrote the file.'),
  }),
  router_version: z.string().max(100).nullable().describe('Version of relayscope of the router; `null` if unknown.'),
  deployment: z.object({
    id: z.string().max(256).nullable().describe('The deployment; a pseudonym in a redacted file.'),
    mode: DeploymentMode,
  }),
  clocks: z
    .object({
      node: Clock.nullable().describe('By the clock of the node that answered; `null` if it reported no time.'),
      observer: Clock.describe('By the clock of the machine that captured.'),
    })
    .describe(
      'When it was captured, by both clocks. A file is opened at the end of the capture, by the clock of the node.',
    ),
  user: z.string().max(256).nullable().describe('The file holds rows of this user only; `null` for all users.'),
  limited: z
    .boolean()
    .describe('Whether the caller was not allowed to see everything: the file holds a part, and `missing` says which.'),
  since: Timestamp.nullable().describe('What ended before this instant was left out; `null` for nothing.'),
  redaction: z
    .object({
      id: z.string().max(100).describe('Id of the set of pseudonyms: only files with the same one can be compared.'),
    })
    .nullable()
    .describe('`null` for a file with the original ids.'),
  consistent: z
    .boolean()
    .describe(
      'Whether two walks in a row found the same rows in the same states, so that all lists are of one instant.',
    ),
  capabilities: z.array(z.string().max(100)).max(1_000).describe('What the deployment could answer.'),
  extensions: JsonRecord.describe("The host's own entries of `capabilities.extensions`; empty in a redacted file."),
  recording: RecordingSpan.nullable().describe('`null` for a capture.'),
  missing: z.array(Missing).max(MISSING_MAX).describe('Everything that the file lacks or has only in part.'),
}

/** The file without its parts, which are read by the route that each names. */
export const IncidentHeader = z.object({
  ...HEADER,
  parts: z.array(z.looseObject({ route: z.string().max(500) })).max(1_000),
})

/** The rows of one list, or one answer. */
export interface IncidentPart {
  /** The route that the part was captured from. */
  readonly route: string
  /** The rows of a list. */
  readonly rows?: readonly Row[]
  /** The response of a route that is not a list. */
  readonly answer?: Row
}

/** An incident: what one file holds. */
export interface Incident extends Omit<z.infer<typeof IncidentHeader>, 'parts'> {
  /** What was captured, one part per route. */
  readonly parts: readonly IncidentPart[]
}

const rowsOf = (row: z.ZodType) => z.array(row).describe('The rows, in the order of the list.')

/** The schema of the part of each route. Answers that are asked for by a key are rows. */
export const PART_SCHEMAS: ReadonlyMap<string, z.ZodType<IncidentPart>> = new Map(
  PARTS.map(({ route, kind, keys, row }) => [
    route,
    z.object({
      route: z.literal(route),
      ...(kind === 'list' || keys.length > 0 ? { rows: rowsOf(row) } : { answer: row }),
    }) as unknown as z.ZodType<IncidentPart>,
  ]),
)

/** The JSON Schema of an incident file. */
export function incidentJsonSchema(): object {
  const parts = [...PART_SCHEMAS.values()] as [z.ZodType, ...z.ZodType[]]
  const file = z
    .object({ ...HEADER, parts: z.array(z.union(parts)).describe('The rows and answers, route by route.') })
    .describe('An incident of relayscope: what a diagnostics router answered, as one file.')
  return z.toJSONSchema(file, { io: 'output', unrepresentable: 'any', reused: 'ref' })
}

// Keeps an incident within its bounds, and says what that left out.

/** Nothing was captured: the router refused or did not answer, or the bound on the file is too small. */
export class CaptureFailed extends Error {
  override readonly name = 'CaptureFailed'
}

export const missingOf = (
  route: string,
  reason: MissingReason,
  detail: string,
  more: Partial<Missing> = {},
): Missing => ({ route, of: null, reason, count: null, detail: detail.slice(0, 500), ...more })

/** At most as many as a file may have: what is cut says so. */
export function boundedMissing(all: readonly Missing[]): Missing[] {
  if (all.length <= MISSING_MAX) return [...all]
  const routes = [...new Set(all.map(({ route }) => route))].slice(0, 100)
  const whole = all.filter(({ of }) => of === null).slice(0, MISSING_MAX - routes.length)
  return [
    ...whole,
    ...routes.map((route) => missingOf(route, 'cut', 'more is missing of this route than the file can list')),
  ]
}

/** Text that JSON readers take for the prototype of an object cannot stand in a file. */
export function withoutPrototypes(incident: Incident): Incident {
  const json = JSON.stringify(incident)
  if (!json.includes('"__proto__"')) return incident
  // A member whose value is undefined is left out.
  return JSON.parse(json, (name, value) => (name === '__proto__' ? undefined : value))
}

/** The incident within its bound: answers, pseudonyms and what is missing take bytes that no walk has counted. */
export function fitted(incident: Incident, maxBytes: number): Incident {
  for (let { parts, missing } = incident; ; ) {
    const fitting = { ...incident, parts, missing }
    if (utf8Length(JSON.stringify(fitting)) <= maxBytes) return fitting
    const sizes = parts.map(({ rows }) => (rows?.length ? utf8Length(JSON.stringify(rows)) : 0))
    const largest = sizes.indexOf(Math.max(...sizes))
    const { route, rows } = parts[largest] ?? { route: '', rows: undefined }
    if (!rows?.length)
      throw new CaptureFailed(`nothing was captured: the file without rows takes more than ${maxBytes} bytes`)
    const half = Math.floor(rows.length / 2)
    const kept = PART_BY_ROUTE.get(route)?.ordered ? rows.slice(rows.length - half) : rows.slice(0, half)
    const cut = missingOf(route, 'cut', 'the bound on the bytes of the file was reached')
    parts = parts.with(largest, { route, rows: kept })
    missing = boundedMissing([...missing.filter((one) => one.route !== route || one.reason !== 'cut'), cut])
  }
}
