/** The metric families as a `MetricProducer`, which a host's SDK exports by OTLP or however it exports its own. */
import { type HrTime, ValueType } from '@opentelemetry/api'
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import { VERSION } from '../internal/version.js'
import type { CollectedMetrics, MetricFamily, MetricSample } from '../metrics/index.js'

type Resource = CollectionResult['resourceMetrics']['resource']

/** `createMetrics()`, which need not be mounted. */
export interface ReadableMetrics {
  /** Returns the families as data. */
  collect(): Promise<CollectedMetrics>
}

/** A reader exports the resource of its SDK, and ignores those of other producers. */
const NO_RESOURCE = { attributes: {}, merge: (other) => other ?? NO_RESOURCE, getRawAttributes: () => [] } as Resource

/** When a counter began is not known here, which OTLP says by 0. */
const UNKNOWN_START: HrTime = [0, 0]

function hrTimeOf(timestamp: string): HrTime {
  const ms = Date.parse(timestamp)
  return [Math.floor(ms / 1_000), (ms % 1_000) * 1_000_000]
}

/** The histograms of a family: their cumulative buckets as counts of their own. */
function histogramsOf(samples: readonly MetricSample[]) {
  const found = new Map<string, { labels: Record<string, string>; bounds: number[]; totals: number[]; sum: number }>()
  for (const { labels, part, value } of samples) {
    const { le, ...own } = labels
    const key = JSON.stringify(own)
    const known = found.get(key) ?? { labels: own, bounds: [], totals: [], sum: 0 }
    found.set(key, known)
    if (part === 'sum') known.sum = value
    if (part !== 'bucket') continue
    known.totals.push(value)
    if (le !== '+Inf') known.bounds.push(Number(le))
  }
  return [...found.values()].map(({ labels, bounds, totals, sum }): { labels: typeof labels; value: Histogram } => {
    const counts = totals.map((total, i) => total - (totals[i - 1] ?? 0))
    return { labels, value: { buckets: { boundaries: bounds, counts }, sum, count: totals.at(-1) ?? 0 } }
  })
}

/** A family that the semantic conventions have a name for: the durations of calls, by who calls. */
const CALLS = 'relayscope_rpc_observed_call_seconds'
const DIRECTIONS = { to_client: 'rpc.client.call.duration', to_server: 'rpc.server.call.duration' }

/** The families as they are exported, under the names of the conventions where there are some. */
function exportedFamilies(families: readonly MetricFamily[]): MetricFamily[] {
  return families.flatMap((family) => {
    if (family.name !== CALLS) return [family]
    return Object.entries(DIRECTIONS).map(([direction, name]) => ({
      ...family,
      name,
      samples: family.samples
        .filter(({ labels }) => labels.direction === direction)
        .map(({ labels: { action = '', direction: _, ...rest }, ...sample }) => ({
          ...sample,
          labels: { 'rpc.system.name': '_OTHER', 'rpc.method': action, ...rest },
        })),
    }))
  })
}

function toMetricData({ name, type, unit, help, samples }: MetricFamily, endTime: HrTime): MetricData {
  const point = <T>({ labels, value }: { labels: Readonly<Record<string, string>>; value: T }): DataPoint<T> => ({
    startTime: UNKNOWN_START,
    endTime,
    attributes: labels,
    value,
  })
  const shared = {
    descriptor: { name, description: help, unit: unit === 'seconds' ? 's' : '1', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  }
  if (type === 'histogram')
    return { ...shared, dataPointType: DataPointType.HISTOGRAM, dataPoints: histogramsOf(samples).map(point) }
  const dataPoints = samples.map(point)
  return type === 'counter'
    ? { ...shared, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...shared, dataPointType: DataPointType.GAUGE, dataPoints }
}

/**
 * Returns the families of `/metrics` as a producer, for the `metricProducers` of a metric reader. They have the same names,
 * labels and units; a counter has no `_total`, which exporters for Prometheus add. Nothing is read before the reader
 * collects. Durations of observed calls have the names of the semantic conventions. Values are cumulative, and when they began is unknown (0).
 *
 * @example
 * const metrics = createMetrics({ ...memoryComposition(facilities), auth: noopAuth() })
 * new PeriodicExportingMetricReader({ exporter, metricProducers: [createMetricProducer(metrics)] })
 */
export function createMetricProducer(metrics: ReadableMetrics): MetricProducer {
  return {
    async collect() {
      const { families, observed_at } = await metrics.collect()
      const endTime = hrTimeOf(observed_at)
      const known = exportedFamilies(families).filter(({ samples }) => samples.length > 0)
      const scopeMetrics = [
        {
          scope: { name: 'relayscope', version: VERSION },
          metrics: known.map((family) => toMetricData(family, endTime)),
        },
      ]
      return { resourceMetrics: { resource: NO_RESOURCE, scopeMetrics }, errors: [] }
    },
  }
}
