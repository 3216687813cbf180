/** The public interface of `relayscope/metrics`: Prometheus and OpenMetrics formats. */
export type { HttpReply } from '../internal/http/respond.js'
export type { MetricDescription, MetricFamily, MetricSample } from './family.js'
export { type CollectedMetrics, createMetrics, type Metrics } from './metrics.js'
export type { MetricLabels, MetricsErrorPlace, MetricsOptions } from './options.js'
