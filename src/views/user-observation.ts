/** One user as the sources see it together. */
import * as z from 'zod'
import type { SourceName } from '../contract/completeness.js'
import { ClientType } from '../contract/connections.js'
import { compareIds, named, Timestamp } from '../contract/ids.js'
import { OBSERVED_MAX } from '../contract/limits.js'
import type { UserPart } from '../contract/observation.js'
import type { UserReading } from './user-parts.js'

/** A number of an aggregate; `null` where its source is absent or failed. */
export const ObservedCount = z.int().min(0).nullable()

/**
 * One user as the sources see it. A number is `null` where its source is absent or failed; lists are sorted, unique,
 * and at most 100 long.
 */
export const UserObservation = z
  .object({
    user_id: named('user_id'),
    sources: z.array(z.string()).describe('The sources that know the user.'),
    observed_connections: ObservedCount.describe('Connections with status `connected`.'),
    observed_client_types: z
      .array(ClientType)
      .describe('Types of clients with a connected connection or a live context.'),
    observed_action_types: z.array(z.string()).describe('Names of the actions that connected clients offer.'),
    observed_contexts: ObservedCount.describe('Execution contexts with status `active` or `idle`.'),
    observed_browser_windows: ObservedCount.describe('Browser windows with status `open`.'),
    last_seen_at: Timestamp.nullable().describe(
      "The latest sign of life of any of the user's connections; `null` for none.",
    ),
  })
  .describe(
    `One user as the sources see it together. A number is \`null\` where its source is absent or failed; lists are sorted, unique, and at most ${OBSERVED_MAX} long.`,
  )
export type UserObservation = z.infer<typeof UserObservation>

/** One user, source by source: `null` where a source says for certain that it knows no such user, none where it could not say. */
type SourceParts = ReadonlyMap<SourceName, UserPart | null>

export function partsOf(userId: string, readings: readonly UserReading[]): SourceParts {
  const parts = new Map<SourceName, UserPart | null>()
  for (const { source, value } of readings) {
    const part = value?.parts.get(userId) ?? (value?.exhaustive ? null : undefined)
    if (part !== undefined) parts.set(source, part)
  }
  return parts
}

/** What the sources have of one user, and which of them do not show all of it. */
export function observe(userId: string, parts: SourceParts): { user: UserObservation; cut: SourceName[] } {
  const types = namesOf('observed_client_types', parts)
  const actions = namesOf('observed_action_types', parts)
  const user = {
    user_id: userId,
    sources: sourcesOf(parts, () => true),
    observed_connections: countOf('observed_connections', parts.get('registry')),
    // Whatever an index says here, the schema reads.
    observed_client_types: types.names as ClientType[],
    observed_action_types: actions.names,
    observed_contexts: countOf('observed_contexts', parts.get('context_registry')),
    observed_browser_windows: countOf('observed_browser_windows', parts.get('browser_window_registry')),
    last_seen_at: [...parts.values()].find((part) => part?.last_seen_at)?.last_seen_at ?? null,
  }
  return { user, cut: [...sourcesOf(parts, (part) => part.truncated === true), ...types.cut, ...actions.cut] }
}

type CountField =
  | 'observed_connections'
  | 'observed_contexts'
  | 'observed_browser_windows'
  | 'observed_streams'
  | 'pending_rpc'

/** The number in a part: 0 where its source knows no such user, `null` where it could not say. */
export function countOf(field: CountField, part: UserPart | null | undefined): number | null {
  return part === null ? 0 : (part?.[field] ?? null)
}

/** The union of what the sources list, sorted, and the sources that contributed to one that is cut. */
export function namesOf(
  field: 'observed_client_types' | 'observed_action_types' | 'observed_client_ids',
  parts: SourceParts,
): { names: string[]; cut: SourceName[] } {
  const names = new Set([...parts.values()].flatMap((part) => [...(part?.[field] ?? [])]))
  const cut = names.size > OBSERVED_MAX ? sourcesOf(parts, (part) => part[field] !== undefined) : []
  return { names: [...names].sort(compareIds).slice(0, OBSERVED_MAX), cut }
}

const sourcesOf = (parts: SourceParts, isMeant: (part: UserPart) => boolean) =>
  [...parts].filter(([, part]) => part && isMeant(part)).map(([source]) => source)
