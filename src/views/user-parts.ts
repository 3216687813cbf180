/** What one source knows of some users: from its own index, or else from its entries. */
import type { UserPart } from '../contract/observation.js'
import type { Ask, PageQuery } from '../contract/page.js'
import { budgetOf, examinedOf, joined, type Reading, readOnce, type ViewAsk, walk } from './reading.js'
import type { UserEntry as Entry, UserSource } from './user-sources.js'

type Parts = Map<string, UserPart>

/** The parts of some users, as one source has them. */
export interface KnownUsers {
  readonly parts: Parts
  /** A user without a part is unknown to the source. Otherwise it may only not have been reached. */
  readonly exhaustive: boolean
}

export type UserReading = Reading<KnownUsers>

/** What `source` knows of these users: from its own index, or else by walking each user's entries. */
export async function readUsers(source: UserSource, userIds: readonly string[], view: ViewAsk): Promise<UserReading> {
  return (await readIndex(source, userIds, view)) ?? (await readEach(source, userIds, view))
}

/** What the index of `source` knows of these users; `null` where none answers. */
export async function readIndex(
  { index, name }: UserSource,
  userIds: readonly string[],
  view: ViewAsk,
): Promise<UserReading | null> {
  const parts: Parts = new Map()
  const read = async () => {
    const known = index.observeUsers ? await index.observeUsers(userIds, view.ask) : null
    for (const part of known ?? []) parts.set(part.user_id, part)
    return known
  }
  const reading = await readOnce(name, read, view, (known) =>
    known.examined === undefined ? parts.size : examinedOf(known, 0),
  )
  return reading && toUserReading({ ...reading, value: reading.value && parts })
}

/** The users whom `isWanted` accepts, as the entries of `source` say of them. */
export async function readEntries(
  source: UserSource,
  view: ViewAsk,
  isWanted: (userId: string) => boolean,
): Promise<UserReading> {
  const list = (page: PageQuery, ask: Ask) => source.list({}, page, ask)
  const from = { entry: source.entry, id: source.id, list }
  const reading = await walk<Entry, Parts>(source.name, from, view, new Map(), adderOf(source, isWanted))
  return toUserReading(reading)
}

async function readEach(source: UserSource, userIds: readonly string[], view: ViewAsk): Promise<UserReading> {
  const parts: Parts = new Map()
  const budget = budgetOf(view)
  let whole: Reading<Parts> = { source: source.name, examined: 0, truncated: false, value: undefined }
  for (const user_id of userIds) {
    const list = (page: PageQuery, ask: Ask) => source.list({ user_id }, page, ask)
    const isWanted = (id: string) => id === user_id
    const from = { entry: source.entry, id: source.id, list }
    const reading = await walk<Entry, Parts>(source.name, from, view, parts, adderOf(source, isWanted), budget)
    whole = { ...joined(whole, reading), value: whole.value ?? reading.value }
    if (!reading.value) break
  }
  return toUserReading(whole)
}

/** Adds the entries of one page to the parts of their users. */
const adderOf = (source: UserSource, isWanted: (userId: string) => boolean) => (parts: Parts, page: Entry[]) => {
  for (const entry of page) {
    if (!isWanted(entry.user_id)) continue
    const part = parts.get(entry.user_id) ?? { user_id: entry.user_id }
    parts.set(entry.user_id, part)
    source.add(part, entry)
  }
}

const toUserReading = (reading: Reading<Parts>): UserReading => ({
  ...reading,
  value: reading.value && { parts: reading.value, exhaustive: !reading.truncated },
})
