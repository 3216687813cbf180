/** The deduplicator family: which messages have been seen already. */
import * as z from 'zod'
import { answerOf, OmittedFields } from './answer.js'
import type { Family } from './family.js'
import { StreamName } from './history.js'
import { Id, idField, Timestamp } from './ids.js'
import { count, defineOptions, duration, type Input, inputObject } from './options.js'
import type { Awaitable, Examined, InspectionContext, Pingable } from './page.js'

const Entries = z.int().min(0).describe('Messages remembered now.')
const Accepted = z.int().min(0).describe('Claims granted and not released.')
const Duplicates = z.int().min(0).describe('Claims refused because the message was already claimed.')

/** The deduplicator as a whole. */
export const DeduplicatorSummary = z
  .object({
    entries: Entries,
    capacity: z.int().min(1).nullable().describe('Maximum messages remembered; `null` if not known.'),
    ttl_ms: z
      .int()
      .min(1)
      .nullable()
      .describe('How long a message is remembered, in milliseconds; `null` if not known.'),
    accepted: Accepted,
    duplicates: Duplicates,
    evicted: z.int().min(0).describe('Entries evicted before their expiry because the capacity was reached.'),
  })
  .describe('The whole deduplicator. Its counters start when it is created.')
export type DeduplicatorSummary = z.infer<typeof DeduplicatorSummary>

/** `DeduplicatorSummary` as routes answer it. */
export const DeduplicatorSummaryAnswer = answerOf(DeduplicatorSummary, [])
  .extend({ omitted: OmittedFields })
  .describe(DeduplicatorSummary.description as string)
export type DeduplicatorSummaryAnswer = z.output<typeof DeduplicatorSummaryAnswer>
/** `DeduplicatorSummary` as an inspector returns it: a field that is absent is not known. */
export type DeduplicatorSummaryInput = Omit<z.input<typeof DeduplicatorSummaryAnswer>, 'omitted'>

/** One user's part. */
export const DeduplicatorUserSummary = z
  .object({
    user_id: idField('user_id'),
    entries: Entries,
    accepted: Accepted,
    duplicates: Duplicates,
    oldest_at: Timestamp.nullable().describe('When the oldest remembered message was claimed; `null` for none.'),
  })
  .describe("One user's part of the deduplicator; its counters are kept as long as the user has an entry.")
export type DeduplicatorUserSummary = z.infer<typeof DeduplicatorUserSummary>

/** `DeduplicatorUserSummary` as routes answer it. */
export const DeduplicatorUserSummaryAnswer = answerOf(DeduplicatorUserSummary, ['user_id'])
  .extend({
    omitted: OmittedFields,
  })
  .describe(DeduplicatorUserSummary.description as string)
export type DeduplicatorUserSummaryAnswer = z.output<typeof DeduplicatorUserSummaryAnswer>
/** `DeduplicatorUserSummary` as an inspector returns it: a field that is absent is not known. */
export type DeduplicatorUserSummaryInput = Omit<z.input<typeof DeduplicatorUserSummaryAnswer>, 'omitted'>

/** Reads a deduplicator. */
export interface DeduplicatorInspector extends Pingable {
  /** Returns counts over all users, and the users with the most claims. */
  summary(ctx: InspectionContext): Awaitable<DeduplicatorSummaryInput>
  /** `null` when the user has no entry. Mirrored by the capability `dedup_per_user`. */
  userSummary?(userId: string, ctx: InspectionContext): Awaitable<(DeduplicatorUserSummaryInput & Examined) | null>
}

/** Identifies a message. Without a stream the id is unique per user. */
export const ClaimInput = inputObject({
  /** Id of the user. */
  user_id: Id,
  /** Name of the stream. @default none */
  stream: StreamName.optional(),
  /** Id of the message. */
  message_id: Id,
})
export type ClaimInput = z.input<typeof ClaimInput>

/**
 * The live, bounded deduplicator: at capacity the oldest entry of the user with the most is evicted, and its message
 * could be claimed again.
 */
export interface Deduplicator {
  /** True exactly once within the TTL. */
  claim(input: ClaimInput): Promise<boolean>
  /**
   * Releases a claim after the guarded work has failed, so that a retry is not a duplicate; it is not counted either.
   *
   * @returns whether an unexpired claim existed.
   */
  release(input: ClaimInput): Promise<boolean>
}

/** What both deduplicators take. In a shared store the capacity is that of one shard. */
export const ClaimOptions = defineOptions({
  /** How long a message counts as seen. @default 600000 */
  ttlMs: duration(600_000),
  /** Maximum messages remembered; beyond it the oldest of the user with the most is evicted. @default 100000 */
  capacity: count(100_000),
})
export interface ClaimOptions extends Input<typeof ClaimOptions> {}

/** Deduplicators, for the table of families. */
export const DEDUPLICATOR_FAMILY = {
  facility: 'deduplicator',
  capability: 'deduplicator',
  methods: { summary: true },
  operations: { dedup_per_user: 'userSummary' },
  components: {
    DeduplicatorSummary: DeduplicatorSummaryAnswer,
    DeduplicatorUserSummary: DeduplicatorUserSummaryAnswer,
  } as Family['components'],
} as const satisfies Family<DeduplicatorInspector>
