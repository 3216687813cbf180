/** Completeness of aggregates: what was not read. */
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
      .describe('Entries examined per source; 0 for a source that failed.'),
    limits: z.partialRecord(SourceName, z.int().min(1)).describe('Maximum entries examined per source.'),
  })
  .describe(
    'How complete this response is. `complete` refers to the sources read for this response, never to the whole application; if it is false, every `observed_…` value is a sample.',
  )
export type Completeness = z.infer<typeof Completeness>
