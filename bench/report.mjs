/** How a benchmark says what it has found: figures with their goals, in words for a reader and as data for `bench/run.mjs`. */
import { isDeepStrictEqual } from 'node:util'

/** The environment variable that asks for machine-readable output. */
export const AS_DATA = 'RELAYSCOPE_BENCH_DATA'
/** What a line of data begins with. */
export const MARK = '@found '
/** What a line about something checked begins with. */
export const CHECKED = '@checked '

/**
 * @typedef {object} Finding
 * @property {string} what
 * @property {number} found
 * @property {number | null} goal `null` if there is none: the figure is printed, not judged and not kept in the docs.
 * @property {string} unit `×` for a ratio to a peer of the same run.
 * @property {'lower' | 'higher'} better
 */

/** A figure as it is shown. */
export const shown = (value, unit) =>
  Number.isFinite(value) ? `${Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2)} ${unit}` : 'unknown'

/** Whether a finding meets its goal; `null` without one. What could not be measured meets none. */
export function isMet({ found, goal, better }) {
  if (goal === null) return null
  if (!Number.isFinite(found)) return false
  return better === 'lower' ? found <= goal : found >= goal
}

/** @param {Finding[]} findings */
export function report(findings) {
  if (process.env[AS_DATA]) {
    for (const finding of findings) console.log(`${MARK}${JSON.stringify(finding)}`)
    return
  }
  for (const { what, found, goal, unit, better } of findings) {
    const met = isMet({ found, goal, better })
    const word = met === null ? '' : met ? ' met' : ' MISSED'
    const wanted = goal === null ? 'no goal' : `goal ${better === 'lower' ? '≤' : '≥'} ${shown(goal, unit)}`
    console.log(`→ ${what}: ${shown(found, unit)} (${wanted}${word && `,${word}`})`)
  }
}

/**
 * Verifies an answer of what is measured, so that no benchmark times something wrong.
 *
 * @param {string} what Names what holds, as a sentence without a full stop.
 * @param {unknown} found
 * @param {unknown} wanted
 * @param {number} count How many answers, rows or deliveries that covers.
 * @param {string} of Names the peer, route or size, for the error alone: the counts of all are added up.
 * @throws Error if they differ.
 */
export function check(what, found, wanted, count = 1, of = '') {
  if (!isDeepStrictEqual(found, wanted)) {
    const text = (value) => JSON.stringify(value)?.slice(0, 300)
    throw new Error(`wrong: ${of && `${of}: `}${what}: found ${text(found)}, expected ${text(wanted)}`)
  }
  if (process.env[AS_DATA]) console.log(`${CHECKED}${JSON.stringify({ what, count })}`)
}
