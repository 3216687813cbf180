/** What a source knows of users, made comparable: its lists may come in any order. */
import type { UserPart } from '../../src/internal/contract/observation.js'

const LISTS = ['observed_client_types', 'observed_action_types', 'observed_client_ids'] as const

export function withSortedLists(parts: UserPart[] | null | undefined): UserPart[] | null | undefined {
  return parts?.map((part) => {
    const sorted: UserPart = { ...part }
    for (const list of LISTS) if (part[list]) sorted[list] = [...part[list]].sort()
    return sorted
  })
}
