/** How an aggregate says what it does not know. */
import * as z from 'zod'
import { FAMILIES } from './families.js'

/** The sources an aggregate may name, each by its capability. */
export const SourceName = z.enum(Object.values(FAMILIES).map(({ capability }) => capability))
export type SourceName = z.infer<typeof SourceName>

/**
 * The completeness block. `complete` speaks of this answer for the sources that were asked, never of the
 * deployed application; when it is false, every `observed_…` is a sample.
 */
export const Completeness = z.object({
  complete: z.boolean(),
  /** Sources that were cut short, failed or ran out of time. */
  truncated_sources: z.array(SourceName),
  /** Entries examined per source asked; 0 for one that failed. */
  examined: z.partialRecord(SourceName, z.int().min(0)),
  /** The bound applied per source asked. */
  limits: z.partialRecord(SourceName, z.int().min(1)),
})
export type Completeness = z.infer<typeof Completeness>
