/** The metrics handler: authentication, one reading shared by concurrent scrapes, and content negotiation. */
import * as z from 'zod'
import { raceAbort } from '../internal/async/abort.js'
import { Deadline, DeadlinePassed, limitTime } from '../internal/async/deadline.js'
import { guardErrorHook } from '../internal/async/hook.js'
import type { SourceName } from '../internal/contract/capabilities.js'
import { shown } from '../internal/contract/checks.js'
import {
  FAMILIES,
  type FamilyName,
  familyEntries,
  type Inspectors,
  PROBES,
  type Present,
} from '../internal/contract/families.js'
import { toTimestamp } from '../internal/contract/ids.js'
import { readOptions } from '../internal/contract/options.js'
import type { InspectionContext } from '../internal/contract/page.js'
import { type AdminPrincipal, type RequestSource, withBearerAsKey } from '../internal/http/auth.js'
import { createEngine, type Mountable, type Route, toHandler } from '../internal/http/engine.js'
import { remoteAddressOf } from '../internal/http/guard.js'
import { ProblemError } from '../internal/http/problem.js'
import { parseQuery } from '../internal/http/query.js'
import type { HttpReply } from '../internal/http/respond.js'
import { VERSION } from '../internal/version.js'
import { COOPERATIVE_GROUPS } from './families/cooperative.js'
import { DELIVERY_GROUPS } from './families/delivery.js'
import { PRESENCE_GROUPS } from './families/presence.js'
import { TRAFFIC_GROUPS } from './families/traffic.js'
import type { MetricDescription, MetricFamily, MetricSample, Outcome, Scrape } from './family.js'
import { MetricsOptions } from './options.js'

// The table of all families: those of the scrape itself first, then by source.

const ofScrape = (
  name: string,
  help: string,
  more: Partial<MetricDescription> & Pick<MetricDescription, 'labels'>,
): MetricDescription => ({ name, type: 'gauge', unit: null, source: null, asked: null, help, ...more })

const bySource = { labels: ['source'] }

/** Metrics of the scrape itself. */
const OWN = {
  deployment: ofScrape('relayscope_deployment', 'Identifies the deployment and its composition.', {
    type: 'info',
    labels: ['deployment_id', 'mode', 'version'],
  }),
  up: ofScrape('relayscope_source_up', 'Whether the source answered every read of this scrape in time.', bySource),
  complete: ofScrape(
    'relayscope_source_complete',
    'Whether the source was read completely; if not, its numbers are lower bounds.',
    bySource,
  ),
  duration: ofScrape('relayscope_source_duration_seconds', 'Time until the source responded or failed.', {
    unit: 'seconds',
    ...bySource,
  }),
} as const

const GROUPS = [...PRESENCE_GROUPS, ...TRAFFIC_GROUPS, ...DELIVERY_GROUPS, ...COOPERATIVE_GROUPS]

/** All families in output order. */
const METRICS: readonly MetricDescription[] = [...Object.values(OWN), ...GROUPS.flatMap(({ families }) => families)]

// One reading of all sources: concurrent, within one time limit, and reported as far as it got.

/** The result of one source. */
interface SourceState {
  readonly source: SourceName
  up: boolean
  complete: boolean
  /** `null` while it is under way. */
  seconds: number | null
}

/** A reading, under way or over. */
interface Reading {
  /** Resolves when every source has responded, failed or timed out; never rejects. */
  readonly done: Promise<void>
  /** The sources of the deployment with their current results. */
  readonly sources: readonly Readonly<SourceState>[]
  /** The samples read so far, by family name. */
  readonly samples: ReadonlyMap<string, readonly MetricSample[]>
}

interface ReadingOptions {
  inspectors: Inspectors
  scopes: readonly string[]
  /** Entries that each source may look at. */
  examined: number
  ms: number
  now(): number
  onError(error: unknown, source: SourceName): void
}

// Maximum errors reported per reading; a list may have a thousand invalid records.
const ERRORS_TOLD = 100

/** Checks that a source without counters responds. */
async function probe<Name extends FamilyName>(
  name: Name,
  inspector: Present[Name],
  ctx: InspectionContext,
): Promise<Outcome> {
  const answer = await PROBES[name](inspector, ctx)
  if (answer === null || typeof answer !== 'object') throw new TypeError(`${name} answered ${shown(answer)}`)
  return { complete: true, samples: new Map() }
}

/** Starts reading all sources. */
function beginReading({ inspectors, scopes, examined, ms, now, onError }: ReadingOptions): Reading {
  const { signal, clear } = limitTime({ ms, late: () => new DeadlinePassed() })
  const samples = new Map<string, readonly MetricSample[]>()
  let reported = 0
  const tell = (source: SourceName, error: unknown) => void (reported++ < ERRORS_TOLD && onError(error, source))

  /** `undefined`: not supported; `null`: unknown. Samples are stored as soon as they are read. */
  async function outcomeOf(source: SourceName, read: () => Promise<Outcome | undefined>) {
    try {
      const outcome = await raceAbort(read(), signal)
      for (const [name, read] of outcome?.samples ?? []) samples.set(name, read)
      return outcome
    } catch (error) {
      tell(source, error)
      return null
    }
  }

  async function readSource<Name extends FamilyName>(name: Name, inspector: Present[Name], state: SourceState) {
    const startedAt = performance.now()
    const { source } = state
    const ctx: InspectionContext = { signal, limits: { examined }, onError: (error) => tell(source, error) }
    const scrape: Scrape = { view: { ctx, now, onError: tell }, scopes }
    const groups = GROUPS.filter(({ of }) => of === name)
    const asked = await Promise.all(groups.map((group) => outcomeOf(source, () => group.read(inspectors, scrape))))
    const outcomes = asked.filter((outcome) => outcome !== undefined)
    // An inspector that supports none of the reads is probed.
    if (outcomes.length === 0) outcomes.push((await outcomeOf(source, () => probe(name, inspector, ctx))) ?? null)
    state.up = outcomes.every((outcome) => outcome !== null)
    state.complete = outcomes.every((outcome) => outcome?.complete)
    state.seconds = (performance.now() - startedAt) / 1_000
  }

  const present = familyEntries().flatMap(([name]) => {
    const inspector = inspectors[name]
    const state: SourceState = { source: FAMILIES[name].capability, up: false, complete: false, seconds: null }
    return inspector ? [{ state, asked: () => readSource(name, inspector, state) }] : []
  })
  const done = Promise.all(present.map(({ asked }) => asked())).then(clear)
  return { done, sources: present.map(({ state }) => state), samples }
}

// The two text formats in which families leave: OpenMetrics 1.0, and the older one of Prometheus.

/** An output format and its content type. */
interface Format {
  readonly type: string
  /** OpenMetrics marks counters and infos, and ends with an EOF line. */
  readonly open: boolean
}

const OPEN_METRICS: Format = {
  type: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  open: true,
}
const PLAIN_TEXT: Format = { type: 'text/plain; version=0.0.4; charset=utf-8', open: false }

/** The suffix of a sample name in OpenMetrics. */
const SUFFIXES = { gauge: '', counter: '_total', histogram: '', info: '_info' } as const

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' }
const escaped = (text: string) => text.replaceAll(/[\\\n"]/g, (found) => ESCAPES[found] as string)
// The older format knows no quotation mark to escape in a help.
const escapedHelp = (text: string, open: boolean) => (open ? escaped(text) : escaped(text).replaceAll('\\"', '"'))

function sampleLine(name: string, { labels, value }: MetricSample): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`
}

function familyText({ name, type, unit, help, samples }: MetricFamily, open: boolean): string {
  if (samples.length === 0) return ''
  const sampled = name + SUFFIXES[type]
  // OpenMetrics names the family, the older format each of its samples.
  const named = open ? name : sampled
  return [
    `# HELP ${named} ${escapedHelp(help, open)}\n`,
    `# TYPE ${named} ${type === 'info' && !open ? 'gauge' : type}\n`,
    ...(open && unit !== null ? [`# UNIT ${named} ${unit}\n`] : []),
    ...samples.map((sample) => sampleLine(sample.part ? `${name}_${sample.part}` : sampled, sample)),
  ].join('')
}

/** Formats `families` in order. Families without samples are omitted. */
const renderText = (families: readonly MetricFamily[], { open }: Format): string =>
  families.map((family) => familyText(family, open)).join('') + (open ? '# EOF\n' : '')

const QUALITY = /^(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/

/** One range of an `Accept` header: its type, the parameters that are not its weight, and that weight. */
function rangeOf(text: string) {
  const [type = '', ...given] = text.split(';').map((part) => part.trim().toLowerCase())
  const parameters = new Map(given.map((part) => part.split('=').map((side) => side.trim()) as [string, string]))
  const q = parameters.get('q') ?? '1'
  return { type, version: parameters.get('version'), quality: QUALITY.test(q) ? Number(q) : 0 }
}

/** Chooses the format for `Accept`: OpenMetrics if it is named and not less preferred than the text format. */
function formatFor(accept: string | null): Format {
  const ranges = (accept ?? '').split(',').map(rangeOf)
  const best = (type: string, version: string) =>
    Math.max(
      0,
      ...ranges
        .filter((range) => range.type === type && [undefined, version].includes(range.version?.replaceAll('"', '')))
        .map(({ quality }) => quality),
    )
  const open = best('application/openmetrics-text', '1.0.0')
  return open > 0 && open >= best('text/plain', '0.0.4') ? OPEN_METRICS : PLAIN_TEXT
}

/** The families as they were read at one time. */
export interface CollectedMetrics {
  /** Every family, those without a sample too, in the order of `families`. */
  families: MetricFamily[]
  /** When this was read, in ISO 8601. */
  observed_at: string
}

/** A fetch-style handler that never rejects, with the properties that a mount needs, and the metrics as data. */
export interface Metrics extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Every family that there can be. */
  readonly families: readonly MetricDescription[]
  /** Whether this handler serves the path; adapters pass on others. */
  owns(pathname: string): boolean
  /** Returns the same families as data, for the host's own meter. Needs no key; same time limit; never rejects. */
  collect(): Promise<CollectedMetrics>
}

const NO_QUERY = z.object({})

/** The state of one request. */
interface Visit extends RequestSource {
  readonly request: Request
  readonly deadline: Deadline
}

/**
 * Creates the handler for scrapes, in OpenMetrics 1.0 or Prometheus text format depending on `Accept`.
 *
 * @throws TypeError or RangeError that names an invalid option; no inspector is called at construction.
 * @example
 * const metrics = createMetrics({ ...memoryComposition({ connections }), auth: apiKeyAuth(key) })
 * await metrics(new Request('http://localhost/metrics', { headers: { authorization: `Bearer ${key}` } }))
 */
export function createMetrics(options: MetricsOptions): Metrics {
  const read = readOptions(MetricsOptions, options)
  const { inspectors, auth, deployment, prefix, deadlineMs, examined, now } = read
  const scopes = [...new Set(read.labels.scopes)]
  const tell = guardErrorHook(options.onError)
  const { id, mode } = deployment
  const identity = { ...(id === null ? {} : { deployment_id: id }), mode, version: VERSION }

  let current: Reading | undefined

  /** Returns the reading in progress, or starts one. */
  function share(): Reading {
    if (current) return current
    const onError = (error: unknown, source: string) => tell(error, { source })
    const reading = beginReading({ inspectors, scopes, examined, ms: deadlineMs, now, onError })
    current = reading
    void reading.done.then(() => {
      current = undefined
    })
    return reading
  }

  /** Returns the families read so far. */
  function familiesOf({ sources, samples }: Reading): MetricFamily[] {
    const bySource = (value: (source: (typeof sources)[number]) => number | boolean | null) =>
      sources.flatMap((state): MetricSample[] => {
        const known = value(state)
        return known === null ? [] : [{ labels: { source: state.source }, value: Number(known) }]
      })
    const own = new Map<string, readonly MetricSample[]>([
      [OWN.deployment.name, [{ labels: identity, value: 1 }]],
      [OWN.up.name, bySource(({ up }) => up)],
      [OWN.complete.name, bySource(({ complete }) => complete)],
      [OWN.duration.name, bySource(({ seconds }) => seconds)],
    ])
    return METRICS.map((family) => ({ ...family, samples: own.get(family.name) ?? samples.get(family.name) ?? [] }))
  }

  async function authenticate(visit: Visit): Promise<AdminPrincipal> {
    try {
      for (const request of [visit.request, withBearerAsKey(visit.request)]) {
        const principal = request && (await visit.deadline.race(auth.authenticate(request, visit)))
        if (typeof principal?.name === 'string') return principal
      }
    } catch (error) {
      if (error instanceof ProblemError) throw error
      tell(error, {})
    }
    throw new ProblemError('forbidden')
  }

  async function scrape(request: Request, search: string, deadline: Deadline): Promise<HttpReply> {
    parseQuery(NO_QUERY, search)
    const reading = share()
    // After the time limit the response has the samples read so far.
    await Promise.resolve(deadline.race(reading.done)).catch(() => {})
    const format = formatFor(request.headers.get('accept'))
    const headers = {
      'content-type': format.type,
      'cache-control': 'no-store',
      vary: 'accept',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    }
    return { status: 200, headers, body: renderText(familiesOf(reading), format) }
  }

  const engine = createEngine<Route<typeof scrape>, Visit, AdminPrincipal, HttpReply>({
    prefix,
    routes: [{ path: '/', methods: { GET: scrape } }],
    authenticate,
    checkParam: () => undefined,
    answer: (handle, { search }, { request, deadline }) => handle(request, search, deadline),
    refuse(error) {
      if (error instanceof ProblemError) return error
      tell(error, {})
      return new ProblemError('internal')
    },
  })

  async function reply(request: Request, info: unknown): Promise<HttpReply> {
    const deadline = new Deadline(deadlineMs, request)
    const given = await engine.reply({ request, deadline, remoteAddress: remoteAddressOf(info, request) })
    deadline.clear()
    return given
  }

  const handler = toHandler(reply, (error) => tell(error, {}))
  return Object.assign(handler, {
    prefix: engine.prefix,
    owns: engine.owns,
    families: METRICS,
    async collect() {
      const reading = share()
      await reading.done
      return { families: familiesOf(reading), observed_at: toTimestamp(now()) }
    },
  })
}
