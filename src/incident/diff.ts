/** Compares two incidents: what is new, gone and changed, and what is unknown because one of them lacks it. */
import { createDiagnosticsRouter } from '../internal/diagnostics/router.js'
import { noopAuth } from '../internal/http/auth.js'
import { compareRows, type RowsDiff } from './compare.js'
import type { Incident, IncidentPart, Missing } from './format.js'
import { incidentComposition, instantOf } from './inspectors.js'
import { PARTS, type Part, rowIdOf } from './parts.js'
import { IncidentRefused } from './read.js'

/** The difference of one list or answer. */
export interface RouteDiff extends RowsDiff {
  /** Route of the rows. */
  readonly route: string
  /** Who a new, gone or changed row is about, by its id: `user/client`, or the user. Other rows are absent. */
  readonly about: Readonly<Record<string, string>>
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

/** One reading of a list: its rows by id, and why it is not whole. */
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
  const { added, gone, changed, unchanged } = compareRows(a.rows, b.rows)
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
    unchanged,
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
