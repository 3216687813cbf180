/** Queues as scopes of admission, and the summary of all queues. */
import { type DeliverySummary, type DeliveryTenant, NO_LEGACY } from '../internal/contract/delivery.js'
import { AGE_SAMPLE } from '../internal/contract/delivery-rules.js'
import { toTimestamp } from '../internal/contract/ids.js'
import type { InspectionContext, Page, PageQuery } from '../internal/contract/page.js'
import { Refusal } from '../internal/refusal.js'
import { type JobState, type Link, STATES } from './queue.js'

/** The states of jobs that have not ended. */
const TRACKED = STATES.filter((state) => state !== 'completed' && state !== 'failed')
/** Jobs of one state whose age is looked at. */
const SAMPLED = 5

/** What BullMQ counts of one queue, at about one moment. */
interface QueueCounts {
  readonly jobs: Readonly<Record<string, number>>
  readonly tracked: number
  readonly due: number
  readonly isPaused: boolean
}

async function readCounts(link: Link, ctx: InspectionContext): Promise<QueueCounts> {
  const [jobs, isPaused] = await Promise.all([
    link.call((queue) => queue.getJobCounts(), ctx),
    link.call((queue) => queue.isPaused(), ctx),
  ])
  const countOf = (state: JobState) => jobs[state] ?? 0
  return {
    jobs,
    tracked: TRACKED.reduce((sum, state) => sum + countOf(state), 0),
    // A paused queue hands nothing out.
    due: isPaused ? 0 : countOf('waiting') + countOf('prioritized'),
    isPaused,
  }
}

/** When some of the unfinished jobs were added, in epoch milliseconds: for each state the next ones to be processed. */
async function sampleAges(
  link: Link,
  { jobs }: QueueCounts,
  sample: number,
  ctx: InspectionContext,
): Promise<number[]> {
  const states = TRACKED.filter((state) => (jobs[state] ?? 0) > 0)
  const found = await Promise.all(
    states.map((state) =>
      link.jobs(state, 0, sample - 1, true, ctx).catch((error) => {
        if (error instanceof Refusal || ctx.signal.aborted) throw error
        // A job that cannot be read has no age; the list of commands reports it.
        return []
      }),
    ),
  )
  return found.flatMap((list) => list.map(({ timestamp }) => timestamp)).filter(Number.isFinite)
}

/** The jobs that ended since the metrics began; `null` where no worker keeps metrics. */
async function readTotal(link: Link, type: 'completed' | 'failed', ctx: InspectionContext): Promise<number | null> {
  const { meta } = await link.call((queue) => queue.getMetrics(type, 0, 0), ctx)
  return meta.prevTS === 0 ? null : meta.count
}

async function readTenant(link: Link, ctx: InspectionContext): Promise<DeliveryTenant> {
  const [{ jobs, tracked, isPaused }, settings, completed, failed] = await Promise.all([
    readCounts(link, ctx),
    link.call(async (queue) => (await queue.getMeta?.()) ?? {}, ctx),
    readTotal(link, 'completed', ctx),
    readTotal(link, 'failed', ctx),
  ])
  const { concurrency = null, max, duration } = settings
  return {
    scope_id: link.name,
    reserved_commands: tracked,
    oldest_deadline_at: null,
    capacity: null,
    metadata: {
      paused: isPaused,
      jobs: { ...jobs },
      concurrency,
      rate_limit: max === undefined || duration === undefined ? null : { max, duration_ms: duration },
      totals: { completed, failed },
    },
  }
}

/** Delivery over all queues. */
export async function readSummary(
  links: readonly Link[],
  deployment_id: string | null,
  ctx: InspectionContext,
  now: () => number,
): Promise<DeliverySummary> {
  const at = now()
  const sample = Math.min(SAMPLED, Math.max(1, Math.floor(AGE_SAMPLE / (TRACKED.length * links.length))))
  const read = await Promise.all(
    links.map(async (link) => {
      const count = await readCounts(link, ctx)
      return { count, ages: await sampleAges(link, count, sample, ctx) }
    }),
  )
  const counts = read.map(({ count }) => count)
  const sampled = read.flatMap(({ ages }) => ages)
  const sum = (of: (count: QueueCounts) => number) => counts.reduce((total, count) => total + of(count), 0)
  return {
    deployment_id,
    mode: 'shared_store',
    tracked_commands: sum(({ tracked }) => tracked),
    // A queue does not count its delayed jobs by whether one was attempted, and failures not by their reason.
    by_state: null,
    by_reason: null,
    waits_for: null,
    due_commands: sum(({ due }) => due),
    // BullMQ does not record which workers wait for jobs.
    waiting_for_client: null,
    oldest_deadline_at: null,
    oldest_queued_age_ms: sampled.length === 0 ? null : Math.max(0, at - Math.min(...sampled)),
    sample_size: sampled.length,
    // Of each state only some are looked at.
    oldest_open_age_ms: null,
    latency: null,
    metadata: { jobs: Object.fromEntries(STATES.map((state) => [state, sum(({ jobs }) => jobs[state] ?? 0)])) },
    ...NO_LEGACY,
    observed_at: toTimestamp(at),
  }
}

export async function readScope(
  links: readonly Link[],
  scopeId: string,
  ctx: InspectionContext,
): Promise<DeliveryTenant | null> {
  const link = links.find(({ name }) => name === scopeId)
  return link ? readTenant(link, ctx) : null
}

/** The queues in the order in which they were given. The token is the name of the last one shown. */
export async function listScopes(
  links: readonly Link[],
  { limit, cursor }: PageQuery,
  ctx: InspectionContext,
): Promise<Page<DeliveryTenant>> {
  const shown = cursor === null ? -1 : links.findIndex(({ name }) => name === cursor)
  if (cursor !== null && shown < 0) throw new Refusal('invalid_cursor')
  const page = links.slice(shown + 1, shown + 1 + limit)
  const items = await Promise.all(page.map((link) => readTenant(link, ctx)))
  const has_more = shown + 1 + limit < links.length
  return { items, next_cursor: has_more ? (page.at(-1)?.name ?? null) : null, has_more, examined: items.length }
}
