/** The routes about the sources: whether each answers, and where they contradict each other. */
import * as z from 'zod'
import { runWithin } from '../async/deadline.js'
import { SourceName } from '../contract/capabilities.js'
import { shown } from '../contract/checks.js'
import { FAMILIES, type FamilyName, familyEntries, PROBES, type Present } from '../contract/families.js'
import { Timestamp, toTimestamp } from '../contract/ids.js'
import { type InspectionContext, type Pingable, SourceWarning, withSignal } from '../contract/page.js'
import { ProblemCode, ProblemError, toProblemError } from '../http/problem.js'
import { type ViewContext, viewForSource } from '../views/reading.js'
import { exampleTime } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

const WARNINGS = z.array(SourceWarning).nullable()

/** The result of the cheapest request to one source. */
export const SourceRow = z
  .object({
    source: SourceName.describe('Which source, by its capability.'),
    answered: z.boolean().describe('Whether it answered.'),
    duration_ms: z.int().min(0).describe('Time until it answered, failed or timed out, in ms.'),
    code: ProblemCode.nullable().describe('Why it did not answer; `null` if it did.'),
    warnings: WARNINGS.describe(
      'Settings of the source that an operator should change; `null` if it does not know them, or did not say in time.',
    ),
  })
  .describe(
    'The result of the cheapest request to one source, just now. There is no threshold: you decide whether it is fast.',
  )
export type SourceRow = z.infer<typeof SourceRow>

/** Every source of this router. */
export const SourceList = z
  .object({
    items: z.array(SourceRow).describe('One for each source of this router.'),
    observed_at: Timestamp.describe('When the last of them answered.'),
  })
  .describe('Every source of this router.')

/** How long one source may take, where half of the request's deadline is not less. */
const SOURCE_MS = 1_000

/** The magnitude of a duration: none below 100 ms, where it differs each time. */
const slownessOf = (ms: number) => (ms < 100 ? 0 : Math.round(Math.log2(ms)))

const late = () => new ProblemError('inspector_timeout')

/** `work`'s time, and why it failed if it did. */
async function measure(
  source: SourceName,
  work: (ctx: InspectionContext) => Promise<unknown>,
  view: ViewContext,
  ms: number,
) {
  const startedAt = view.now()
  const row = (code: ProblemCode | null): Omit<SourceRow, 'warnings'> => ({
    source,
    answered: code === null,
    duration_ms: Math.max(0, Math.round(view.now() - startedAt)),
    code,
  })
  const { ctx } = viewForSource(view, source)
  try {
    await runWithin((signal) => work(withSignal(ctx, signal)), {
      ms,
      late,
      // The deadline of the request has passed without an answer.
      abortReason: late,
      signal: ctx.signal,
    })
    return row(null)
  } catch (error) {
    view.onError(source, error)
    return row(toProblemError(error, 'inspector').code)
  }
}

/** Sends a source its cheapest request, and pings all of its parts. */
function probe<Name extends FamilyName>(name: Name, inspector: Present[Name], view: ViewContext, ms: number) {
  const work = async (ctx: InspectionContext) => {
    const { ping }: Pingable = inspector
    // An async function, because a synchronous throw would leave the rejection of the other one unhandled.
    const pinged = async () => ping?.call(inspector, ctx)
    const [answer] = await Promise.all([PROBES[name](inspector, ctx), pinged()])
    if (answer === null || typeof answer !== 'object') throw new TypeError(`${name} answered ${shown(answer)}`)
  }
  return measure(FAMILIES[name].capability, work, view, ms)
}

/** What a source knows of its settings. Whether it answers does not depend on it. */
async function warningsOf(name: FamilyName, inspector: Pingable, view: ViewContext, ms: number) {
  const source = FAMILIES[name].capability
  const { ctx } = viewForSource(view, source)
  const read = async (signal: AbortSignal) => (await inspector.warnings?.(withSignal(ctx, signal))) ?? null
  try {
    return WARNINGS.parse(await runWithin(read, { ms, late, abortReason: late, signal: ctx.signal }))
  } catch (error) {
    view.onError(source, error)
    return null
  }
}

export const SOURCE_ROUTES = routeSection('sources', 'The sources of all answers.', [
  diagnosticsRoute({
    path: '/sources',
    // A page that keeps its answer shows these durations as those of now.
    compared: ({ duration_ms, ...source }: SourceRow) => ({ ...source, slowness: slownessOf(duration_ms) }),
    operationId: 'listSources',
    summary: 'Whether each source answers now, and how fast',
    requires: SourceName.options,
    operation: 'sources',
    unversioned: true,
    reportsFailures: true,
    response: SourceList,
    example: {
      items: [{ source: 'registry', answered: true, duration_ms: 3, code: null, warnings: [] }],
      observed_at: exampleTime(30),
    },
    async read(inspectors, _input, { deadlineMs, ...view }) {
      const ms = Math.min(SOURCE_MS, deadlineMs / 2)
      const asked = familyEntries().flatMap(([name]) => {
        const inspector = inspectors[name]
        if (!inspector) return []
        const parts = [probe(name, inspector, view, ms), warningsOf(name, inspector, view, ms)] as const
        return [Promise.all(parts).then(([row, warnings]) => ({ ...row, warnings }))]
      })
      return { items: await Promise.all(asked), observed_at: toTimestamp(view.now()) }
    },
  }),
])
