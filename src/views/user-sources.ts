/** The sources that know users: the index of each where it keeps one, and what its entries say of their users. */
import type * as z from 'zod'
import { CAPABILITIES, type Capability } from '../contract/capabilities.js'
import type { SourceName } from '../contract/completeness.js'
import { familyEntries, type Inspectors } from '../contract/families.js'
import type { UserIndex, UserPart } from '../contract/observation.js'
import type { Ask, Awaitable, Page, PageQuery } from '../contract/page.js'

type List = (filter: { user_id?: string }, page: PageQuery, ask: Ask) => Awaitable<Page<unknown>>

/** One source of users: its index where it keeps one, its list, and how an entry adds to what is known of its user. */
export interface UserSource {
  name: SourceName
  index: UserIndex
  list: List
  entry: z.ZodType<UserEntry>
  /** The field that holds the id of an entry. */
  id: string
  /** Adds one entry to the part of its user, which starts as `{ user_id }`. */
  add(part: UserPart, entry: UserEntry): void
}

/** An entry of any family that belongs to a user. */
export type UserEntry = { user_id: string; [field: string]: unknown }

const SOURCES = familyEntries().flatMap(([inspector, family]) => {
  const { users, capability, operations } = family
  if (!users) return []
  const { list, entry, id, fold } = users
  const [optional] = Object.entries(operations).find(([, method]) => method === list) ?? []
  return [
    {
      inspector,
      list,
      /** That its entries can be listed. */
      needs: (optional ?? capability) as Capability,
      source: {
        name: capability as SourceName,
        entry: entry as UserSource['entry'],
        id,
        add: fold as UserSource['add'],
      },
    },
  ]
})

/** Capabilities of which any makes a source of users. */
export const USER_SOURCES: readonly Capability[] = SOURCES.map(({ needs }) => needs)

/** The sources of users among `inspectors`, in the order in which answers name them. */
export function userSources(inspectors: Inspectors): UserSource[] {
  return SOURCES.filter(({ needs }) => CAPABILITIES.offers(inspectors, needs)).map(({ inspector, list, source }) => {
    const index = inspectors[inspector] as UserIndex
    return { ...source, index, list: (...asked) => Reflect.apply(Reflect.get(index, list), index, asked) }
  })
}
