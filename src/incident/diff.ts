/** Compares two incidents: what is new, gone and changed, and what is unknown because one of them lacks it. */
import type { Json } from '../contract/json.js'
import { createDiagnosticsRouter } from '../diagnostics/router.js'
import { noopAuth } from '../http/auth.js'
import type { Incident, IncidentPart, Missing } from './format.js'
import { incidentComposition, instantOf } from './inspectors.js'
import { PARTS, type Part, rowIdOf } from './parts.js'
import { IncidentRefused } from './read.js'

/** One field of a row that has another value. */
export interface FieldChange {
  /** Names from the row down, joined by dots. */
  readonly field: string
  /** `undefined` where the row had no such field. */
  readonly before: Json | undefined
  /** `undefined` if the row no longer has the field. */
  readonly after: Json | undefined
}

/** The difference of one list or answer. */
export interface RouteDiff {
  /** Route of the rows. */
  readonly route: string
  /** Who a new, gone or changed row is about, by its id: `user/client`, or the user. Other rows are absent. */
  readonly about: Readonly<Record<string, string>>
  /** Ids of rows that only the second incident has. */
  readonly added: readonly string[]
  /** Ids of rows that only the first incident has. */
  readonly gone: readonly string[]
  /** Rows that are in both incidents and differ. */
  readonly changed: readonly { readonly id: string; readonly fields: readonly FieldChange[] }[]
  /** Number of rows that are equal in both incidents. */
  readonly unchanged: number
  /** Why it is unknown whether more rows are new or gone; empty if both incidents are complete. */
  readonly unknown: readonly { readonly in: 'a' | 'b'; readonly ids: readonly string[]; readonly why: string }[]
}

/** The difference between two incidents. */
export interface IncidentDiff {
  /** Deployment and time of the first incident. */
  readonly a: { readonly deployment: string | null; readonly at: string }
  /** Deployment and time of the second incident. */
  readonly b: { readonly deployment: string | null; readonly at: string }
  /** Routes with a difference, or of which something is unknown. `/findings` is computed from the other parts. */
  readonly routes: readonly RouteDiff[]
}

/** Fields that change as long as a client or node lives. */
const LIVING = /^(?:last_seen_at|updated_at|observed_at|\w+_ms)$/

function fieldsOf(value: unknown, path: string, into: Map<string, Json>): Map<string, Json> {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    for (const [name, inner] of Object.entries(value))
      if (!LIVING.test(name)) fieldsOf(inner, path === '' ? name : `${path}.${name}`, into)
  } else if (value !== undefined) into.set(path, value as Json)
  return into
}

function changesOf(before: object, after: object): FieldChange[] {
  const [was, is] = [fieldsOf(before, '', new Map()), fieldsOf(after, '', new Map())]
  const names = new Set([...was.keys(), ...is.keys()])
  return [...names].flatMap((field) => {
    const [a, b] = [was.get(field), is.get(field)]
    return JSON.stringify(a) === JSON.stringify(b) ? [] : [{ field, before: a, after: b }]
  })
}

/** One list of one incident: its rows by id, and why it is not whole. */
interface Side {
  readonly rows: ReadonlyMap<string, object>
  readonly why: string | null
}

const SAID = new Set<Missing['reason']>(['unsteady', 'not_deployed'])

function sideOf({ missing }: Incident, part: Part, kept: IncidentPart | undefined): Side {
  const own = missing.filter(({ route, reason }) => route === part.route && !SAID.has(reason))
  const why = own[0] ? `${own[0].reason}: ${own[0].detail}` : null
  const rows = new Map((kept?.rows ?? []).map((row) => [rowIdOf(part, row), part.compared(row)]))
  if (kept?.answer) rows.set('', kept.answer)
  return { rows, why }
}

/** Who `row` is about; `null` if no one, or if its id says so. */
function subjectOf(id: string, row: object | undefined): string | null {
  const { subject, user_id, owner = user_id, client_id } = (row ?? {}) as Record<string, unknown>
  if (typeof subject === 'object' && subject !== null) return subjectOf(id, subject)
  const names = [owner, client_id].filter((name) => typeof name === 'string')
  return names.length === 0 || names.every((name) => id.includes(name)) ? null : names.join('/')
}

function compare(route: string, a: Side, b: Side): RouteDiff {
  const added = [...b.rows.keys()].filter((id) => !a.rows.has(id))
  const gone = [...a.rows.keys()].filter((id) => !b.rows.has(id))
  const both = [...b.rows].flatMap(([id, row]) => {
    const was = a.rows.get(id)
    return was ? [{ id, fields: changesOf(was, row) }] : []
  })
  const changed = both.filter(({ fields }) => fields.length > 0)
  const named = [...added, ...gone, ...changed.map(({ id }) => id)]
  return {
    route,
    about: Object.fromEntries(
      named.flatMap((id) => {
        const text = subjectOf(id, b.rows.get(id) ?? a.rows.get(id))
        return text === null ? [] : [[id, text]]
      }),
    ),
    added: a.why === null ? added : [],
    gone: b.why === null ? gone : [],
    changed,
    unchanged: both.length - changed.length,
    unknown: [
      ...(a.why === null ? [] : [{ in: 'a' as const, ids: added, why: a.why }]),
      ...(b.why === null ? [] : [{ in: 'b' as const, ids: gone, why: b.why }]),
    ],
  }
}

/** The findings of an incident, as the router computes them. */
async function findingsOf(incident: Incident): Promise<Side> {
  const router = createDiagnosticsRouter({ ...incidentComposition(incident), auth: noopAuth(), onError: null })
  const rows = new Map<string, object>()
  let why: string | null = null
  for (let cursor = ''; ; ) {
    const response = await router.fetch(new Request(`http://localhost/findings?limit=500${cursor}`))
    if (!response.ok) return { rows, why: response.status === 501 ? null : 'its sources are missing' }
    const page = (await response.json()) as {
      items: { finding_id: string; kind: string; subject: object }[]
      next_cursor: string | null
      completeness: { complete: boolean; truncated_sources: string[] }
    }
    for (const { finding_id, kind, subject } of page.items) rows.set(finding_id, { kind, subject })
    if (!page.completeness.complete) why = `incomplete sources: ${page.completeness.truncated_sources.join(', ')}`
    if (page.next_cursor === null) return { rows, why }
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
  }
}

const summaryOf = (incident: Incident) => ({
  deployment: incident.deployment.id,
  at: new Date(instantOf(incident)).toISOString(),
})

/**
 * Compares two incidents, list by list and answer by answer. Whatever one of them may lack is `unknown`, and neither new
 * nor gone.
 *
 * @throws IncidentRefused where one was redacted with other pseudonyms than the other: no id of them is comparable.
 */
export async function diffIncidents(a: Incident, b: Incident): Promise<IncidentDiff> {
  if (a.redaction?.id !== b.redaction?.id)
    throw new IncidentRefused(
      'invalid',
      'the two have different pseudonyms and cannot be compared: capture both unredacted',
    )
  const partIn = ({ parts }: Incident, { route }: Part) => parts.find((part) => part.route === route)
  const routes = PARTS.map((part) =>
    compare(part.route, sideOf(a, part, partIn(a, part)), sideOf(b, part, partIn(b, part))),
  )
  const findings = compare('/findings', await findingsOf(a), await findingsOf(b))
  const isTold = ({ added, gone, changed, unknown }: RouteDiff) =>
    added.length + gone.length + changed.length + unknown.length > 0
  return { a: summaryOf(a), b: summaryOf(b), routes: [findings, ...routes].filter(isTold) }
}
