/** Keeps an incident within its bounds, and says what that left out. */
import { utf8Length } from '../contract/ids.js'
import { type Incident, MISSING_MAX, type Missing, type MissingReason } from './format.js'
import { PART_BY_ROUTE } from './parts.js'

/** Nothing was captured: the router refused or did not answer, or the bound on the file is too small. */
export class CaptureFailed extends Error {
  override readonly name = 'CaptureFailed'
}

export const missingOf = (
  route: string,
  reason: MissingReason,
  detail: string,
  more: Partial<Missing> = {},
): Missing => ({
  route,
  of: null,
  reason,
  count: null,
  detail: detail.slice(0, 500),
  ...more,
})

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
