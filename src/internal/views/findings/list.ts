/** The findings view: every detector in turn, a page of its list at a time, and each finding seen twice. */

import { sleep } from '../../async/timer.js'
import { betweenSlices } from '../../async/turns.js'
import { CAPABILITIES, type SourceName } from '../../contract/capabilities.js'
import type { Inspectors, Present } from '../../contract/families.js'
import { toTimestamp } from '../../contract/ids.js'
import { PAGE_MAX } from '../../contract/limits.js'
import type { PageQuery } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { completenessOf, type SourceReading, type ViewContext } from '../reading.js'
import { CALLS_LOST, CALLS_NOT_ANSWERED, CLIENTS_NOT_ANSWERING } from './calls.js'
import { CALLS_COUNTED, COMMANDS_COUNTED } from './counts.js'
import {
  CLIENTS_NOT_ACKNOWLEDGING,
  COMMANDS_OVERDUE,
  COMMANDS_UNACKNOWLEDGED,
  COMMANDS_WAITING,
  RESERVATIONS_WITHOUT_COMMAND,
  SILENT_NODES,
} from './delivery.js'
import { BudgetExhausted, type Detector, ScanContext, SourceFailed, SUMMARY_PAGE } from './detector.js'
import {
  CALLS_OVERDUE,
  CALLS_TO_SUPERSEDED,
  CONTEXTS_OF_DISCONNECTED,
  SESSIONS_WITHOUT_CONNECTOR,
  WINDOWS_OF_DISCONNECTED,
  WORKERS_LOST,
  WORKERS_OF_DISCONNECTED,
} from './disconnected.js'
import {
  type Finding,
  type FindingFilter,
  type FindingGroup,
  FindingKind,
  type FindingPage,
  type FindingSummary,
  helpOf,
  NODES_SHOWN,
} from './finding.js'
import { STORES_EVICTING } from './stores.js'

/**
 * Detectors in the order of a walk: those that use an index come before those that read a list. Those that compare a number
 * with a whole list are last, because they would leave nothing of a long one to the others.
 */
const DETECTORS: readonly Detector[] = [
  COMMANDS_OVERDUE,
  CALLS_OVERDUE,
  SILENT_NODES,
  COMMANDS_WAITING,
  COMMANDS_UNACKNOWLEDGED,
  RESERVATIONS_WITHOUT_COMMAND,
  CALLS_TO_SUPERSEDED,
  CALLS_NOT_ANSWERED,
  CLIENTS_NOT_ANSWERING,
  CALLS_LOST,
  SESSIONS_WITHOUT_CONNECTOR,
  WORKERS_LOST,
  WORKERS_OF_DISCONNECTED,
  CONTEXTS_OF_DISCONNECTED,
  WINDOWS_OF_DISCONNECTED,
  ...CLIENTS_NOT_ACKNOWLEDGING,
  COMMANDS_COUNTED,
  CALLS_COUNTED,
  STORES_EVICTING,
]

/** Inspectors of which at least one is needed: those whose lists are read. */
export const FINDING_NEEDS = [...new Set(DETECTORS.map(({ source }) => source))]

/** Time between the two scans: longer than a command or a report is on its way. */
const RESCAN_AFTER_MS = 250
/** The part of its bounds that a request uses for the first scan; the second reads some of the same again. */
const FIRST_SHARE = 0.5
/** A page with less remaining than this is ended: its list would be read in crumbs. */
const REMAINING_MIN = 25

/** After this long, a first scan starts no further list: the second scan needs as long. */
const FIRST_SCAN_MS = 1_500

/** Position of a walk: the detector, and the cursor of its list. */
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

/** A page on which something was seen in the first scan. */
interface FirstScan {
  detector: Detector
  page: PageQuery
  findings: Finding[]
}

/** Whether the filter asks for a kind that the detector finds. */
const isAsked = ({ kinds }: Detector, { kind }: FindingFilter) => kind === undefined || kinds.includes(kind)
const sourcesOf = ({ requires }: Detector) => requires.map((need) => CAPABILITIES.inspectorOf(need) as SourceName)
/** A detector that asks any source runs where another one does. */
const canScan = ({ requires }: Detector, inspectors: Inspectors): boolean =>
  requires.length === 0
    ? DETECTORS.some((other) => other.requires.length > 0 && canScan(other, inspectors))
    : requires.every((need) => CAPABILITIES.offers(inspectors, need))

/**
 * Lists findings, detector by detector. Sources that change while they are read can look inconsistent, so each
 * candidate is read a second time a moment later and returned only if it is found both times. `page.cursor` is the
 * position where the page before ended; a page may hold less than its limit.
 *
 * @throws the most severe error of the sources when every source failed.
 */
export async function listFindings(
  inspectors: Inspectors,
  filter: FindingFilter,
  page: PageQuery,
  view: ViewContext,
): Promise<FindingPage> {
  const first = new ScanContext(inspectors as Present, view, FIRST_SHARE)
  const { firstScans, place } = await scanAll(first, filter, page)
  const second = new ScanContext(inspectors as Present, view, 1 - FIRST_SHARE, true)
  const items = await rescan(second, firstScans)
  const isOver = place.detector >= DETECTORS.length
  return {
    items,
    next_cursor: isOver ? null : tokenOf(place),
    has_more: !isOver,
    completeness: completenessOf(readingsOf([first, second]), view),
    not_looked_for: unseenKinds(inspectors).filter((kind) => (filter.kind ?? kind) === kind),
  }
}

/** Kinds that no inspector can show. */
const unseenKinds = (inspectors: Inspectors): FindingKind[] =>
  FindingKind.options.filter(
    (kind) => !DETECTORS.some((detector) => detector.kinds.includes(kind) && canScan(detector, inspectors)),
  )

/**
 * How many findings there are of each kind, in the first page of each list: the cost does not grow with the number of
 * records. A count is not exact where a list of its kind has another page, or where something was left out of one.
 *
 * @throws the most severe error of the sources when every source failed.
 */
export async function summarizeFindings(inspectors: Inspectors, view: ViewContext): Promise<FindingSummary> {
  const first = new ScanContext(inspectors as Present, view, FIRST_SHARE, false, true)
  const partial = new Set<Detector>()
  const firstScans = await scanFirstPages(first, partial)
  const second = new ScanContext(inspectors as Present, view, 1 - FIRST_SHARE, true, true)
  const items = await rescan(second, firstScans, partial)
  const scans = [first, second]
  const hasFailed = (detector: Detector) =>
    sourcesOf(detector).some((source) => scans.some(({ failed }) => failed.has(source)))
  const not_looked_for = unseenKinds(inspectors)
  const kinds = FindingKind.options.filter((kind) => !not_looked_for.includes(kind))
  return {
    kinds: kinds.map((kind) => {
      const ran = DETECTORS.filter((detector) => detector.kinds.includes(kind) && canScan(detector, inspectors))
      const findings = items.filter((finding) => finding.kind === kind)
      const isUnknown = findings.length === 0 && ran.some(hasFailed)
      const exact = ran.every((detector) => !partial.has(detector) && !hasFailed(detector))
      return { ...groupOf(kind, findings), ...(isUnknown && { count: null }), exact }
    }),
    observed_at: toTimestamp(view.now()),
    completeness: completenessOf(readingsOf(scans), view),
    not_looked_for,
  }
}

/** Findings of one kind in one record, as if these were all. */
function groupOf(kind: FindingKind, findings: readonly Finding[]): FindingGroup {
  const sinceOf = ({ since }: Finding) => since ?? '~'
  const [sample = null] = [...findings].sort((a, b) => (sinceOf(a) < sinceOf(b) ? -1 : sinceOf(a) > sinceOf(b) ? 1 : 0))
  const nodes = findings.flatMap(({ subject, evidence }) => [
    subject.node_id,
    ...evidence.map(({ fields }) => fields.last_node_id),
  ])
  const named = [...new Set(nodes.filter((node) => typeof node === 'string'))].sort().slice(0, NODES_SHOWN)
  const oldest_since = sample?.since ?? null
  return { kind, count: findings.length, exact: true, oldest_since, nodes: named, sample, help: helpOf(kind) }
}

/** The first scan: from the place where the page before ended until the page is full or the bounds are reached. */
async function scanAll(scan: ScanContext, filter: FindingFilter, page: PageQuery) {
  const { inspectors, view } = scan
  const firstScans: FirstScan[] = []
  let place = placeOf(page.cursor)
  let remaining = page.limit
  let hasScanned = false
  const end = performance.now() + FIRST_SCAN_MS
  while (place.detector < DETECTORS.length && (remaining === page.limit || remaining >= REMAINING_MIN)) {
    if (hasScanned && performance.now() > end) break
    const detector = DETECTORS[place.detector] as Detector
    const next = { detector: place.detector + 1, cursor: null }
    const hasFailed = sourcesOf(detector).some((source) => scan.failed.has(source))
    if (!isAsked(detector, filter) || !canScan(detector, inspectors) || hasFailed) {
      place = next
      continue
    }
    const left = sourcesOf(detector).map((source) => scan.budget(source).entries)
    const query = { cursor: place.cursor, limit: Math.max(1, Math.min(remaining, PAGE_MAX, ...left)) }
    try {
      const seen = await detector.detect(scan, query)
      hasScanned = true
      const findings = seen.findings.filter(({ kind }) => (filter.kind ?? kind) === kind)
      if (findings.length > 0) firstScans.push({ detector, page: query, findings })
      remaining -= findings.length
      place = seen.next === null || seen.next === place.cursor ? next : { ...place, cursor: seen.next }
    } catch (error) {
      if (!(error instanceof BudgetExhausted || error instanceof SourceFailed)) throw error
      // The next request continues here, unless even a whole request is too small.
      if (error instanceof BudgetExhausted && hasScanned) break
      if (error instanceof BudgetExhausted) scan.cut.add(detector.source)
      place = next
    }
    await betweenSlices(view.ctx)
  }
  return { firstScans, place }
}

/** The first scan of a summary: one page of each list. Detectors that did not see all of theirs are added to `partial`. */
async function scanFirstPages(scan: ScanContext, partial: Set<Detector>): Promise<FirstScan[]> {
  const firstScans: FirstScan[] = []
  const end = performance.now() + FIRST_SCAN_MS
  for (const detector of DETECTORS) {
    const hasFailed = sourcesOf(detector).some((source) => scan.failed.has(source))
    if (hasFailed || !canScan(detector, scan.inspectors)) continue
    const page = { cursor: null, limit: SUMMARY_PAGE }
    const seen = performance.now() > end ? null : await scanPage(scan, detector, page, partial)
    if (seen === null || seen.next !== null) {
      partial.add(detector)
      scan.asked.add(detector.source)
      scan.cut.add(detector.source)
    }
    if (seen && seen.findings.length > 0) firstScans.push({ detector, page, findings: seen.findings })
    await betweenSlices(scan.view.ctx)
  }
  return firstScans
}

/** Runs a detector over a page. Returns `null` if a source failed or its bounds were reached. */
async function scanPage(scan: ScanContext, detector: Detector, page: PageQuery, partial: Set<Detector>) {
  try {
    const { result, isCut } = await scan.noteCut(() => detector.detect(scan, page))
    if (isCut) partial.add(detector)
    return result
  } catch (error) {
    if (!(error instanceof BudgetExhausted || error instanceof SourceFailed)) throw error
    partial.add(detector)
    scan.cut.add(detector.source)
    return null
  }
}

/** The findings that a second scan shows too, with its evidence. */
async function rescan(
  scan: ScanContext,
  firstScans: readonly FirstScan[],
  partial: Set<Detector> = new Set(),
): Promise<Finding[]> {
  if (firstScans.length === 0) return []
  await sleep(RESCAN_AFTER_MS)
  scan.view.ctx.signal.throwIfAborted()
  const confirmed: Finding[] = []
  for (const { detector, page, findings } of firstScans) {
    const known = new Set(findings.map(({ finding_id }) => finding_id))
    const seen = await scanPage(scan, detector, page, partial)
    // A source that repeats a record repeats its finding.
    confirmed.push(...(seen?.findings ?? []).filter(({ finding_id }) => known.delete(finding_id)))
  }
  return confirmed
}

/** How far each source was read in these scans together. */
function readingsOf(scans: readonly ScanContext[]): SourceReading[] {
  const sources = new Set(scans.flatMap(({ asked }) => [...asked]))
  return [...sources].map((source): SourceReading => {
    const failed = scans.find((scan) => scan.failed.has(source))
    return {
      source,
      examined: scans.reduce((sum, scan) => sum + scan.examined(source), 0),
      truncated: failed !== undefined || scans.some((scan) => scan.cut.has(source)),
      value: failed ? undefined : null,
      error: failed?.failed.get(source),
    }
  })
}
