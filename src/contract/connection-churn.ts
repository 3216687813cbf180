/** How many connections came and went in each of the last minutes, for those who look for what disturbs a deployment. */
import * as z from 'zod'
import { Reason, Timestamp } from './ids.js'

/** Minutes that are told of at most, the one under way among them. */
export const CHURN_MINUTES = 60
/** Combinations of node, client type and reason that are told apart in one minute; over a shared store in one shard. */
export const CHURN_COMBINATIONS = 100
export const MINUTE_MS = 60_000

/** What an end counts under for which nobody gave a reason. */
export const UNSPECIFIED = 'unspecified'
/** What an end counts under whose combination is one too many. */
export const OTHER = 'other'

const Count = z.int().min(0)

/** What happened in one minute. */
export const ChurnMinute = z
  .object({
    minute: Timestamp.describe('When the minute began.'),
    opened: Count.describe('Connections that were made.'),
    ended: z
      .record(Reason, Count)
      .describe(
        `Connections that went, by their \`ended_reason\`; \`${UNSPECIFIED}\` where nobody gave one, \`${OTHER}\` where there were too many kinds to tell apart.`,
      ),
  })
  .describe('What happened in one minute that somebody watched.')
export type ChurnMinute = z.infer<typeof ChurnMinute>

/** The minutes that were watched, oldest first; one that is missing nobody watched, and of it nothing is known. */
export const ConnectionChurn = z
  .object({
    items: z
      .array(ChurnMinute)
      .max(CHURN_MINUTES)
      .describe('The minutes that somebody watched, oldest first; of one that is missing nothing is known.'),
    observed_at: Timestamp.describe('When this was looked at.'),
  })
  .describe('How many connections came and went in each of the last sixty minutes.')
export type ConnectionChurn = z.infer<typeof ConnectionChurn>

/** The number of the minute that `epochMs` is in. */
export const minuteOf = (epochMs: number): number => Math.floor(epochMs / MINUTE_MS)
