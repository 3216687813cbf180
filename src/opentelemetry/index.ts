/** The face of `relayscope/opentelemetry`: the metrics and the traces of a relay, for a host's own SDK. */
export { createMetricProducer, type ReadableMetrics } from './metrics.js'
export { type InstrumentationOptions, instrumentation, type RelayInstrumentation } from './traces.js'
