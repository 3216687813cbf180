/** The findings view: every detector in turn, a page of its list at a time, and each finding seen twice. */

import { sleep } from '../../async/timer.js'
import { betweenSlices } from '../../async/turns.js'
import { CAPABILITIES } from '../../contract/capabilities.js'
import type { SourceName } from '../../contract/completeness.js'
import type { Inspectors, Present } from '../../contract/families.js'
import type { PageQuery } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { completenessOf, type SourceReading, type ViewContext } from '../reading.js'
import { CALLS_COUNTED, COMMANDS_COUNTED } from './counts.js'
import {
  COMMANDS_OVERDUE,
  COMMANDS_UNACKNOWLEDGED,
  COMMANDS_WAITING,
  RESERVATIONS_WITHOUT_COMMAND,
  SILENT_NODES,
} from './delivery.js'
import { BudgetExhausted, type Detector, ScanContext, SourceFailed } from './detector.js'
import {
  CALLS_OVERDUE,
  CALLS_TO_SUPERSEDED,
  CONTEXTS_OF_DISCONNECTED,
  SESSIONS_WITHOUT_CONNECTOR,
  WINDOWS_OF_DISCONNECTED,
  WORKERS_OF_DISCONNECTED,
} from './disconnected.js'
import { type Finding, type FindingFilter, FindingKind, type FindingPage } from './finding.js'

/** In the order of their places in a walk: what is found by an index before what goes along everything. */
const DETECTORS: readonly Detector[] = [
  COMMANDS_OVERDUE,
  CALLS_OVERDUE,
  SILENT_NODES,
  RESERVATIONS_WITHOUT_COMMAND,
  COMMANDS_COUNTED,
  CALLS_COUNTED,
  COMMANDS_WAITING,
  COMMANDS_UNACKNOWLEDGED,
  CALLS_TO_SUPERSEDED,
  SESSIONS_WITHOUT_CONNECTOR,
  WORKERS_OF_DISCONNECTED,
  CONTEXTS_OF_DISCONNECTED,
  WINDOWS_OF_DISCONNECTED,
]

/** Inspectors of which any can show something: those whose lists are gone along. */
export const FINDING_NEEDS = [...new Set(DETECTORS.map(({ source }) => source))]

/** Between the two looks: longer than a command or a report is on its way. */
const LOOK_AGAIN_MS = 250
/** The part of its bounds that a request uses for the first look; the second goes over some of the same. */
const FIRST_SHARE = 0.5
/** A page with less room than this is ended: its list would be read in crumbs. */
const ROOM_MIN = 25

/** Where a walk goes on: the detector, and the token of its list. */
interface Place {
  detector: number
  cursor: string | null
}

/** @throws Refusal `invalid_cursor`. */
function placeOf(token: string | null): Place {
  if (token === null) return { detector: 0, cursor: null }
  const [, index, cursor] = /^([0-9a-z])(.*)$/s.exec(token) ?? []
  const detector = Number.parseInt(index ?? '', 36)
  if (!(detector < DETECTORS.length)) throw new Refusal('invalid_cursor')
  return { detector, cursor: cursor === '' ? null : (cursor as string) }
}

const tokenOf = ({ detector, cursor }: Place) => `${detector.toString(36)}${cursor ?? ''}`

/** A page on which something was seen at the first look. */
interface Look {
  detector: Detector
  page: PageQuery
  findings: Finding[]
}

/** Which of the detectors can look, and whether the filter asks for what they find. */
const isAsked = ({ kinds }: Detector, { kind }: FindingFilter) => kind === undefined || kinds.includes(kind)
const sourcesOf = ({ needs }: Detector) => needs.map((need) => CAPABILITIES.inspectorOf(need) as SourceName)
const canScan = ({ needs }: Detector, inspectors: Inspectors) =>
  needs.every((need) => CAPABILITIES.offers(inspectors, need))

/**
 * Findings, detector by detector. Whoever is read while things change sees them half done, so what is seen once is looked
 * for once more a moment later, and told when it is there both times. `page.cursor` is the place where the page before
 * ended; a page may hold less than its limit.
 *
 * @throws the error of the source that says most when every source failed.
 */
export async function listFindings(
  inspectors: Inspectors,
  filter: FindingFilter,
  page: PageQuery,
  view: ViewContext,
): Promise<FindingPage> {
  const first = new ScanContext(inspectors as Present, view, FIRST_SHARE)
  const { looks, place } = await scanAll(first, filter, page)
  const second = new ScanContext(inspectors as Present, view, 1 - FIRST_SHARE)
  const items = await rescan(second, looks)
  const isOver = place.detector >= DETECTORS.length
  return {
    items,
    next_cursor: isOver ? null : tokenOf(place),
    has_more: !isOver,
    completeness: completenessOf(readingsOf([first, second]), view),
    not_looked_for: FindingKind.options.filter(
      (kind) =>
        (filter.kind ?? kind) === kind &&
        !DETECTORS.some((detector) => detector.kinds.includes(kind) && canScan(detector, inspectors)),
    ),
  }
}

/** The first look: from the place where the page before ended until the page is full or the bounds are reached. */
async function scanAll(scan: ScanContext, filter: FindingFilter, page: PageQuery) {
  const { inspectors, view } = scan
  const looks: Look[] = []
  let place = placeOf(page.cursor)
  let room = page.limit
  let hasLooked = false
  while (place.detector < DETECTORS.length && (room === page.limit || room >= ROOM_MIN)) {
    const detector = DETECTORS[place.detector] as Detector
    const next = { detector: place.detector + 1, cursor: null }
    const hasFailed = sourcesOf(detector).some((source) => scan.failed.has(source))
    if (!isAsked(detector, filter) || !canScan(detector, inspectors) || hasFailed) {
      place = next
      continue
    }
    const left = sourcesOf(detector).map((source) => scan.budget(source).entries)
    const query = { cursor: place.cursor, limit: Math.max(1, Math.min(room, ...left)) }
    try {
      const seen = await detector.detect(scan, query)
      hasLooked = true
      const findings = seen.findings.filter(({ kind }) => (filter.kind ?? kind) === kind)
      if (findings.length > 0) looks.push({ detector, page: query, findings })
      room -= findings.length
      place = seen.next === null || seen.next === place.cursor ? next : { ...place, cursor: seen.next }
    } catch (error) {
      if (!(error instanceof BudgetExhausted || error instanceof SourceFailed)) throw error
      // The next request goes on here, unless a whole one is not enough for it.
      if (error instanceof BudgetExhausted && hasLooked) break
      if (error instanceof BudgetExhausted) scan.cut.add(detector.source)
      place = next
    }
    await betweenSlices(view.ctx)
  }
  return { looks, place }
}

/** Those of the findings that a second look shows too, with what it saw. */
async function rescan(scan: ScanContext, looks: readonly Look[]): Promise<Finding[]> {
  if (looks.length === 0) return []
  await sleep(LOOK_AGAIN_MS)
  scan.view.ctx.signal.throwIfAborted()
  const confirmed: Finding[] = []
  for (const { detector, page, findings } of looks) {
    const known = new Set(findings.map(({ finding_id }) => finding_id))
    try {
      const seen = await detector.detect(scan, page)
      confirmed.push(...seen.findings.filter(({ finding_id }) => known.has(finding_id)))
    } catch (error) {
      if (!(error instanceof BudgetExhausted || error instanceof SourceFailed)) throw error
      scan.cut.add(detector.source)
    }
  }
  return confirmed
}

/** What each source was read for in some looks together. */
function readingsOf(looks: readonly ScanContext[]): SourceReading[] {
  const sources = new Set(looks.flatMap(({ asked }) => [...asked]))
  return [...sources].map((source): SourceReading => {
    const failed = looks.find((detect) => detect.failed.has(source))
    return {
      source,
      examined: looks.reduce((sum, detect) => sum + detect.examined(source), 0),
      truncated: failed !== undefined || looks.some((detect) => detect.cut.has(source)),
      value: failed ? undefined : null,
      error: failed?.failed.get(source),
    }
  })
}
