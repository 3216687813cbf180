/** What the sources come up with about users, and how their parts become one observation. */
import * as z from 'zod'
import type { SourceName } from '../contract/completeness.js'
import { ClientType } from '../contract/connections.js'
import { compareIds, Timestamp } from '../contract/ids.js'
import { OBSERVED_MAX } from '../contract/limits.js'
import type { UserPart } from '../contract/observation.js'
import { budgetOf, examinedOf, failed, type Reading, readOnce, type ViewAsk, walk } from './reading.js'
import type { UserSource } from './sightings.js'

/** A number of an aggregate; `null` where its source is absent or failed. */
export const ObservedCount = z.int().min(0).nullable()

/**
 * One user as the sources see it. A number is `null` where its source is absent or failed; lists are sorted, unique,
 * and at most 100 long.
 */
export const UserObservation = z.object({
  user_id: z.string(),
  /** The sources that know the user. */
  sources: z.array(z.string()),
  /** Connections with status `connected`. */
  observed_connections: ObservedCount,
  observed_client_types: z.array(ClientType),
  observed_action_types: z.array(z.string()),
  observed_contexts: ObservedCount,
  observed_browser_windows: ObservedCount,
  /** The latest sign of life of any of the user's connections. */
  last_seen_at: Timestamp.nullable(),
})
export type UserObservation = z.infer<typeof UserObservation>

/** What one source came up with about some users. */
export interface Finding {
  reading: Reading
  /** By user; `null` when the source failed. */
  parts: Map<string, UserPart> | null
  /** A user without a part is unknown to the source. Otherwise it may only not have been reached. */
  exhaustive: boolean
}

/** What comes of a source that fails. */
export function nothingFrom(source: SourceName, error: unknown): Finding {
  return { reading: failed(source, error), parts: null, exhaustive: false }
}

/**
 * Adds the entries of one page to the parts of their users, all of them or none.
 *
 * @throws ZodError for an entry that is not what its list promises.
 */
export function addTo(
  parts: Map<string, UserPart>,
  source: UserSource,
  page: readonly unknown[],
  isWanted: (userId: string) => boolean,
): void {
  for (const entry of source.entries.parse(page)) {
    if (!isWanted(entry.user_id)) continue
    const part = parts.get(entry.user_id) ?? { user_id: entry.user_id }
    parts.set(entry.user_id, part)
    source.add(part, entry)
  }
}

/** What `source` knows of these users: from its own index, or else by walking each user's entries. */
export async function observe(source: UserSource, userIds: readonly string[], view: ViewAsk): Promise<Finding> {
  return (await observeIndexed(source, userIds, view)) ?? (await fromEntries(source, userIds, view))
}

/** What the index of `source` knows of these users; `null` where none answers. */
export async function observeIndexed(
  { index, name }: UserSource,
  userIds: readonly string[],
  view: ViewAsk,
): Promise<Finding | null> {
  if (!index.observeUsers) return null
  const parts = new Map<string, UserPart>()
  const read = async () => {
    const known = await index.observeUsers?.(userIds, view.ask)
    for (const part of known ?? []) parts.set(part.user_id, part)
    return known
  }
  const observed = await readOnce(name, read, view)
  if ('error' in observed) return nothingFrom(name, observed.error)
  if (observed.value === null) return null
  const truncated = observed.value?.truncated === true
  const examined = observed.value?.examined === undefined ? parts.size : examinedOf(observed.value, 0)
  return { parts, reading: { source: name, examined, truncated, failed: false }, exhaustive: !truncated }
}

async function fromEntries(source: UserSource, userIds: readonly string[], view: ViewAsk): Promise<Finding> {
  const { name } = source
  const parts = new Map<string, UserPart>()
  const budget = budgetOf(view)
  const whole: Reading = { source: name, examined: 0, truncated: false, failed: false }
  let inHand = false
  for (const user_id of userIds) {
    const visit = (page: unknown[]) => addTo(parts, source, page, (id) => id === user_id)
    const reading = await walk(name, (page, ask) => source.list({ user_id }, page, ask), view, visit, budget)
    if (reading.failed && !inHand) return { parts: null, reading, exhaustive: false }
    inHand = true
    whole.examined += reading.examined
    whole.truncated ||= reading.truncated
    if (reading.failed) break
  }
  return { parts, reading: whole, exhaustive: !whole.truncated }
}

/** One user as all findings have it. A part that was cut short marks its source. */
export function toObservation(userId: string, findings: readonly Finding[]): UserObservation {
  for (const { parts, reading } of findings) if (parts?.get(userId)?.truncated) reading.truncated = true
  const seen = findings.map((finding) => finding.parts?.get(userId)?.last_seen_at ?? null)
  return {
    user_id: userId,
    sources: findings.filter((finding) => finding.parts?.has(userId)).map((finding) => finding.reading.source),
    observed_connections: numberOf('observed_connections', 'registry', userId, findings),
    // Whatever an index says here, the schema reads.
    observed_client_types: observedList('observed_client_types', userId, findings) as ClientType[],
    observed_action_types: observedList('observed_action_types', userId, findings),
    observed_contexts: numberOf('observed_contexts', 'context_registry', userId, findings),
    observed_browser_windows: numberOf('observed_browser_windows', 'browser_window_registry', userId, findings),
    last_seen_at: seen.find((at) => at !== null) ?? null,
  }
}

type NumberField =
  | 'observed_connections'
  | 'observed_contexts'
  | 'observed_browser_windows'
  | 'observed_streams'
  | 'pending_rpc'

/** The number that one source has for the user: 0 where it knows no such user, `null` where it could not say. */
export function numberOf(
  field: NumberField,
  source: SourceName,
  userId: string,
  findings: readonly Finding[],
): number | null {
  const finding = findings.find((candidate) => candidate.reading.source === source)
  if (isUnknownUser(userId, finding)) return 0
  return finding?.parts?.get(userId)?.[field] ?? null
}

/** Whether `finding` says for certain that its source knows no such user. */
export function isUnknownUser(userId: string, finding: Finding | undefined): boolean {
  return finding?.parts != null && finding.exhaustive && !finding.parts.has(userId)
}

/** The union of what the sources list, sorted; a cut marks every source that contributed to it. */
export function observedList(
  field: 'observed_client_types' | 'observed_action_types' | 'observed_client_ids',
  userId: string,
  findings: readonly Finding[],
): string[] {
  const names = new Set(findings.flatMap((finding) => [...(finding.parts?.get(userId)?.[field] ?? [])]))
  if (names.size > OBSERVED_MAX)
    for (const { parts, reading } of findings) if (parts?.get(userId)?.[field]) reading.truncated = true
  return [...names].sort(compareIds).slice(0, OBSERVED_MAX)
}
