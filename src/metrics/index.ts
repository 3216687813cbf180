/** The face of `relayscope/metrics`: what the inspectors say, as Prometheus and OpenMetrics read it. */
export type { HttpReply } from '../http/respond.js'
export type { MetricDescription, MetricFamily, MetricSample } from './family.js'
export { type CollectedMetrics, createMetrics, type Metrics } from './metrics.js'
export type { MetricLabels, MetricsErrorPlace, MetricsOptions } from './options.js'
