/** How an aggregate says what it does not know. */
import * as z from 'zod'
import { FAMILIES } from './families.js'

/** The sources an aggregate may name, each by its capability. */
export const SourceName = z
  .enum(Object.values(FAMILIES).map(({ capability }) => capability))
  .describe('A source of aggregates, by its capability.')
export type SourceName = z.infer<typeof SourceName>

/** The completeness block. */
export const Completeness = z
  .object({
    complete: z.boolean().describe('Whether every source was read to its end.'),
    truncated_sources: z.array(SourceName).describe('Sources that were cut short, failed or ran out of time.'),
    examined: z
      .partialRecord(SourceName, z.int().min(0))
      .describe('Entries examined per source asked; 0 for one that failed.'),
    limits: z.partialRecord(SourceName, z.int().min(1)).describe('The bound on examined entries, per source asked.'),
  })
  .describe(
    'What an aggregate does not know. `complete` speaks of this answer for the sources that were asked, never of the deployed application; when it is false, every `observed_…` is a sample.',
  )
export type Completeness = z.infer<typeof Completeness>
