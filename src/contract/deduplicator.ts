/** The deduplicator family: which messages have been seen already. */
import * as z from 'zod'
import type { Family } from './family.js'
import { StreamName } from './history.js'
import { Id, idField, Timestamp } from './ids.js'
import { count, defineOptions, duration, type Input } from './options.js'
import type { Awaitable, Examined, InspectionContext, Pingable } from './page.js'

const Entries = z.int().min(0).describe('Messages that are remembered now.')
const Accepted = z.int().min(0).describe('Claims that were granted and not given back.')
const Duplicates = z.int().min(0).describe('Claims that were refused because the message had been seen.')

/** The deduplicator as a whole. */
export const DeduplicatorSummary = z
  .object({
    entries: Entries,
    capacity: z.int().min(1).nullable().describe('Most messages that it remembers; `null` where that is not known.'),
    ttl_ms: z.int().min(1).nullable().describe('How long it remembers one, in ms; `null` where that is not known.'),
    accepted: Accepted,
    duplicates: Duplicates,
    evicted: z.int().min(0).describe('Entries that left before their time because the capacity was reached.'),
  })
  .describe('The deduplicator as a whole. Its counters run since the deduplicator was made.')
export type DeduplicatorSummary = z.infer<typeof DeduplicatorSummary>

/** One user's part. */
export const DeduplicatorUserSummary = z
  .object({
    user_id: idField('user_id'),
    entries: Entries,
    accepted: Accepted,
    duplicates: Duplicates,
    oldest_at: Timestamp.nullable().describe('When the oldest remembered message was claimed; `null` for none.'),
  })
  .describe("One user's part of the deduplicator; its counters run for as long as the user has an entry.")
export type DeduplicatorUserSummary = z.infer<typeof DeduplicatorUserSummary>

/** Reads a deduplicator. */
export interface DeduplicatorInspector extends Pingable {
  summary(ctx: InspectionContext): Awaitable<DeduplicatorSummary>
  /** `null` when the user has no entry. Mirrored by the capability `dedup_per_user`. */
  userSummary?(userId: string, ctx: InspectionContext): Awaitable<(DeduplicatorUserSummary & Examined) | null>
}

/** What tells one message from another. Without a stream: an id that is the user's alone. */
export const ClaimInput = z.object({ user_id: Id, stream: StreamName.optional(), message_id: Id })
export type ClaimInput = z.input<typeof ClaimInput>

/**
 * The live deduplicator, bounded: at capacity the oldest entry of whoever holds most leaves, and its message could be
 * claimed again.
 */
export interface Deduplicator {
  /** True exactly once within the TTL. */
  claim(input: ClaimInput): Promise<boolean>
  /**
   * Gives a claim back after the work it guarded failed, so that a retry is not a duplicate; nor is it counted.
   *
   * @returns whether there was one that had not run out.
   */
  release(input: ClaimInput): Promise<boolean>
}

/** What both deduplicators take. In a shared store the capacity is that of one shard. */
export const ClaimOptions = defineOptions({
  /** How long a message counts as seen. @default 600000 */
  ttlMs: duration(600_000),
  /** Messages remembered; at capacity the oldest of whoever has most leaves. @default 100000 */
  capacity: count(100_000),
})
export interface ClaimOptions extends Input<typeof ClaimOptions> {}

/** Deduplicators, for the table of families. */
export const DEDUPLICATOR_FAMILY = {
  facility: 'deduplicator',
  capability: 'deduplicator',
  methods: { summary: true },
  operations: { dedup_per_user: 'userSummary' },
  components: { DeduplicatorSummary, DeduplicatorUserSummary },
} as const satisfies Family<DeduplicatorInspector>
