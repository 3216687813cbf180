/** The face of `relayscope/probes`: whether this process lives and is ready, for an orchestrator. */
export { createProbes, type Probes, type ProbesErrorPlace, type ProbesOptions } from './probes.js'
