/** Counts: exact if an inspector keeps an index, otherwise a sample that is marked as one. */
import * as z from 'zod'
import { raceAbort } from '../async/abort.js'
import { runWithin } from '../async/deadline.js'
import { BadRecord, readRecord } from '../contract/bad-record.js'
import { BROWSER_WINDOW_FAMILY, BrowserWindowAnswer, type BrowserWindowInput } from '../contract/browser-windows.js'
import { Completeness, type SourceName } from '../contract/capabilities.js'
import {
  CONNECTION_FAMILY,
  ConnectionAnswer,
  type ConnectionFilter,
  type RegistryInspector,
} from '../contract/connections.js'
import {
  CONTEXT_FAMILY,
  ContextAnswer,
  type ContextRegistryInspector,
  countWorker,
  type WindowCounts,
  type WindowKey,
} from '../contract/contexts.js'
import { type DeliveryInspector, DeliveryNodeAnswer } from '../contract/delivery.js'
import type { Inspectors } from '../contract/families.js'
import { Timestamp, toTimestamp } from '../contract/ids.js'
import { type Counted, type CountedFields, countBy, UNKNOWN } from '../contract/observation.js'
import { type Awaitable, type Indexed, type InspectionContext, type PageQuery, withSignal } from '../contract/page.js'
import { Refusal } from '../refusal.js'
import {
  answerFrom,
  budgetOf,
  examinedOf,
  readOnce,
  type ViewContext,
  viewForSource,
  type WalkedEntries,
  walkEntries,
} from './reading.js'

const Count = z.int().min(0)
const counts = {
  total: Count.nullable().prefault(null).describe('The total.'),
  completeness: Completeness.describe('What this response may be missing.'),
  observed_at: Timestamp.describe('When this was counted.'),
}

/** A source that has no entry without the field may leave `unknown` out. */
type CountsShape<Values extends string> = {
  [Value in Values]: Value extends typeof UNKNOWN ? z.ZodPrefault<typeof Count> : typeof Count
}

/** A count for every value of an enum, zero included. */
export function countsBy<Values extends z.ZodEnum>(values: Values) {
  const shape = Object.fromEntries(
    values.options.map((value) => [
      value,
      value === UNKNOWN
        ? Count.prefault(0).describe('How many did not report it.')
        : Count.describe(`How many are \`${value}\`.`),
    ]),
  )
  return z.object(shape as CountsShape<z.output<Values> & string>)
}

/** The response schema of a route that counts by `fields`. */
function countOf<F extends Readonly<Record<string, z.ZodEnum>>>(fields: F) {
  const by = Object.entries(fields).map(([field, values]) => [
    `by_${field}`,
    countsBy(values).nullable().prefault(null).describe(`The same counts by \`${field}\`, every value present.`),
  ])
  return z
    .object({ ...counts, ...(Object.fromEntries(by) as CountShape<F>) })
    .describe(
      'Counts: exact if an index is kept, a sample if `completeness` says so; `null` where the source does not know, as in a shared store to which none was ever reported.',
    )
}

type CountShape<F extends Readonly<Record<string, z.ZodEnum>>> = {
  [K in keyof F & string as `by_${K}`]: z.ZodPrefault<z.ZodNullable<z.ZodObject<CountsShape<z.output<F[K]> & string>>>>
}

/** Response of `/connections/count`. */
export const ConnectionCount = countOf(CONNECTION_FAMILY.counted)
  .extend({
    of_silent_nodes: Count.nullable().describe(
      'Those of the `connected` ones whose node has stopped reporting: they may be disconnected. `null` if not known.',
    ),
  })
  .describe('How many there are, under the filters.')
export type ConnectionCount = z.infer<typeof ConnectionCount>
/** Response of `/contexts/count`. */
export const ContextCount = countOf(CONTEXT_FAMILY.counted)
/** Response of `/browser-windows/count`. */
export const BrowserWindowCount = countOf(BROWSER_WINDOW_FAMILY.counted)

/** Silent nodes whose connections are counted: one question each. With more the number is not known. */
const SILENT_NODES_MAX = 20
/** How long delivery may take to name its nodes: a count of connections does not depend on it. */
const NODES_MS = 1_000

/** The ids of all silent nodes; `null` if delivery does not know them or does not return them to this caller. */
async function silentNodes(delivery: DeliveryInspector, view: ViewContext): Promise<string[] | null> {
  let isRefused = false
  const list = async (page: PageQuery, ctx: InspectionContext) => {
    try {
      return await delivery.listNodes(page, ctx)
    } catch (error) {
      isRefused = error instanceof Refusal && error.code === 'not_narrowable'
      throw error
    }
  }
  const onError = (source: SourceName, error: unknown) => {
    if (!isRefused) view.onError(source, error)
  }
  const { truncated, value } = await runWithin(
    (signal) => {
      const { ctx } = viewForSource(view, 'delivery')
      const bounded = { ...view, ctx: withSignal(ctx, signal), onError }
      const add = (nodes: DeliveryNodeAnswer[], items: DeliveryNodeAnswer[]) => void nodes.push(...items)
      return walkEntries<DeliveryNodeAnswer, DeliveryNodeAnswer[]>(
        'delivery',
        { entry: DeliveryNodeAnswer, id: 'node_id', list },
        bounded,
        [],
        add,
      )
    },
    { ms: NODES_MS, late: () => new Refusal('unavailable'), signal: view.ctx.signal },
  )
  if (truncated || !value || value.length === 0 || value.some(({ stale }) => stale === null)) return null
  return value.filter(({ stale }) => stale).map(({ node_id }) => node_id)
}

/** How many of the connected connections under `filter` belong to a silent node; `null` if unknown. */
export async function countOfSilentNodes(
  { registry, delivery }: Pick<Inspectors, 'registry' | 'delivery'>,
  filter: ConnectionFilter,
  view: ViewContext,
): Promise<number | null> {
  if (!registry || !delivery) return null
  const nodes = await silentNodes(delivery, view).catch((error) => {
    view.ctx.signal.throwIfAborted()
    view.onError('delivery', error)
    return null
  })
  if (nodes === null) return null
  if ((filter.status ?? 'connected') !== 'connected') return 0
  const silent = nodes.filter((node_id) => (filter.node_id ?? node_id) === node_id)
  if (silent.length > SILENT_NODES_MAX) return null
  let sum = 0
  for (const node_id of silent) {
    const of = { ...filter, node_id, status: 'connected' as const }
    const { by_status, completeness } = await countConnections(registry, of, view)
    if (!completeness.complete || !by_status) return null
    sum += by_status.connected
  }
  return sum
}

/** How many connections there are under `filter`. */
export const countConnections = (registry: RegistryInspector, filter: ConnectionFilter, view: ViewContext) =>
  count(
    'registry',
    CONNECTION_FAMILY.counted,
    {
      exact: () => registry.countConnections?.(filter, view.ctx),
      entry: ConnectionAnswer,
      id: 'connection_id',
      list: (page, ctx) => registry.listConnections(filter, page, ctx),
    },
    view,
  )

/** Counts by `fields`: the result of `exact`, otherwise of a walk over `list` within the bound. */
export async function count<Entry, F extends CountedFields<Entry>, Exact extends Indexed>(
  source: SourceName,
  fields: F,
  from: {
    exact: () => Awaitable<Exact | null | undefined>
  } & WalkedEntries<Entry>,
  view: ViewContext,
): Promise<(Exact | Counted<F>) & { completeness: Completeness; observed_at: string }> {
  const observed_at = toTimestamp(view.now())
  // A kept number was counted before: the source examined nothing unless it reports otherwise.
  const kept = await readOnce(
    source,
    async () => (await from.exact()) ?? null,
    view,
    (exact) => examinedOf(exact, 0),
  )
  if (kept !== null) {
    const { value, completeness } = answerFrom(kept, view)
    return { ...value, completeness, observed_at }
  }
  const reading = await walkEntries<Entry, Entry[]>(source, from, view, [], (entries, items) => entries.push(...items))
  const { value, completeness } = answerFrom(reading, view)
  return { ...countBy(fields, value), completeness, observed_at }
}

// The worker counts of browser windows: live from the context registry if there is one, otherwise the snapshot.

const SOURCE = 'context_registry'

const keyOf = ({ window_id, user_id }: BrowserWindowAnswer): WindowKey => ({ window_id, user_id })

const NONE = { worker_count: 0, idle_count: 0, busy_count: 0 }
const NO_COUNTS = { worker_count: null, idle_count: null, busy_count: null }

/**
 * Replaces the counts of `windows` with live ones from `contexts`. Without a context registry they stay the client's
 * snapshot. A window that the bound on examined entries did not reach has `null` counts.
 *
 * @throws what the context registry throws: a failing registry must not look like a missing one.
 */
export async function withLiveCounts(
  windows: readonly BrowserWindowInput[],
  contexts: ContextRegistryInspector | undefined,
  view: ViewContext,
): Promise<BrowserWindowInput[]> {
  if (!contexts) return [...windows]
  // Invalid windows are left out when the response is encoded.
  const read = windows.map((window, i) => readRecord(BrowserWindowAnswer, window, i))
  const keys = read.flatMap((one) => (one instanceof BadRecord ? [] : keyOf(one.data)))
  const counts = keys.length === 0 ? new Map() : await countByWindow(keys, contexts, viewForSource(view, SOURCE))
  return read.map((one, i) => {
    if (one instanceof BadRecord) return windows[i] as BrowserWindowInput
    const { window_id } = one.data
    return { ...one.data, ...(counts.get(window_id) ?? NO_COUNTS), window_id, counts_source: 'contexts' }
  })
}

type Counts = Omit<WindowCounts, 'window_id'>

async function countByWindow(
  keys: readonly WindowKey[],
  contexts: ContextRegistryInspector,
  view: ViewContext,
): Promise<Map<string, Counts>> {
  const counts = new Map<string, Counts>()
  if (contexts.countByWindow) {
    const ids = keys.map((key) => key.window_id)
    const counted = await raceAbort(contexts.countByWindow(ids, view.ctx, keys), view.ctx.signal)
    // A window that was not reached must not look like one without workers.
    if (!counted.truncated) for (const id of ids) counts.set(id, NONE)
    for (const { window_id, ...found } of counted) counts.set(window_id, found)
    return counts
  }
  const budget = budgetOf(view)
  for (const key of keys) {
    const list = (page: PageQuery, ctx: InspectionContext) => contexts.listContexts(key, page, ctx)
    const addIn = (counted: Counts, found: ContextAnswer[]) => {
      for (const context of found) if (isIn(key, context)) countWorker(counted, context)
    }
    const reading = await walkEntries(
      SOURCE,
      { entry: ContextAnswer, id: 'context_id', list },
      view,
      { ...NONE },
      addIn,
      budget,
    )
    if ('error' in reading) throw reading.error
    // A context that cannot be read leaves its own window uncounted, and no other.
    if (!reading.truncated && reading.value) counts.set(key.window_id, reading.value)
    if (budget.entries <= 0 || budget.pages <= 0) break
  }
  return counts
}

/** A context counts only in a window of its own user: other users can report the same window id. */
const isIn = (key: WindowKey, context: ContextAnswer) =>
  context.window_id === key.window_id && context.user_id === key.user_id
