/** What one shard keeps of the actions that its connections offer: counters, less what has been lost since they were written. */
import { ClientType } from '../../contract/connections.js'
import type { Ask } from '../../contract/page.js'
import { count, listOf, type StoreReply, textOf } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { defineReadScript, readShard } from '../table/read-script.js'

export type Who = ClientType | 'all'
const WHO: readonly Who[] = ['all', ...ClientType.options]

/** One action as a shard offers it: living connections and distinct users, in all and by client type. */
export interface Offer {
  connections: Record<Who, number>
  users: Record<Who, number>
  /** The description that the latest connection to offer it gave, as JSON, and when that was. */
  latest: string | undefined
  latestAt: number
}

/** What is asked of a shard's actions. */
export interface OfferQuery {
  shard: number
  user_id: string | undefined
  /** Names greater than this one. */
  after: string | null
  now: number
  /** Entries to look at, at most. */
  most: number
}

/** The actions of a shard by name. */
export interface Offers {
  shard: number
  offers: Map<string, Offer>
  /** The last name, where there may be more after it. */
  end: string | null
  examined: number
  /** Not all living connections were looked at. */
  isSample: boolean
  /** Whether the descriptions are there. */
  isDescribed: boolean
}

export const noOffer = (): Offer => ({ connections: none(), users: none(), latest: undefined, latestAt: 0 })
const none = (): Record<Who, number> => ({ all: 0, browser: 0, console: 0, mobile: 0, web: 0 })

/** Lost connections that one read subtracts: some milliseconds of the store, and any write sweeps some of them. */
const LOST_MAX = 1_000
/** What those may have offered together, names and users each: what the store then looks up one by one. */
const LOST_OFFERS_MAX = 10_000

const WHO_LUA = `{ ${WHO.map((who) => `'${who}'`).join(', ')} }`

// `user` may be ''. Answers `null` where more are lost than `max_lost`. One step, so that no writer sweeps what is being
// subtracted.
const KEPT = defineReadScript(
  {
    args: ['at', 'from', 'max_names', 'user', 'max_lost'],
    answer: ([isKept, due = null, offers]) =>
      isKept === 1 ? { due: count(due), offers: listOf(offers).map(listOf) } : null,
  },
  `
local t, now = 'connections', tonumber(at)
local due = read('ZCOUNT', K(t, 'beats'), '-inf', now) or 0
if due > tonumber(max_lost) then return { foreign, 0 } end
local who = ${WHO_LUA}
local index = user == '' and K(t, 'actions') or K(t, 'actions-of', user)
local names = read('ZRANGE', index, from, '+', 'BYLEX', 'LIMIT', 0, max_names) or {}
local lost, offered = {}, 0
for _, name in ipairs(names) do lost[name] = { all = 0, browser = 0, console = 0, mobile = 0, web = 0, users = {} } end

local function lose(state)
  if type(state) ~= 'table' or type(state.names) ~= 'table' or state.ended_at then return end
  local seen, patience = tonumber(state.seen_at), tonumber(state.lost_after_ms)
  if not seen or not patience or seen + patience > now then return end
  if type(state.user_id) ~= 'string' or (user ~= '' and state.user_id ~= user) then return end
  for _, name in ipairs(state.names) do
    local of = lost[name]
    if of and of[state.client_type] then
      offered = offered + 1
      for _, as in ipairs({ 'all', state.client_type }) do
        local field = as .. ' ' .. state.user_id
        of[as], of.users[field] = of[as] + 1, (of.users[field] or 0) + 1
      end
    end
  end
end
for _, id in ipairs(read('ZRANGE', K(t, 'beats'), '-inf', now, 'BYSCORE') or {}) do
  local value = row(t, id)
  local good, state = pcall(cjson.decode, string.match(value or '', '^[^\\n]*'))
  if good then lose(state) end
  if offered > ${LOST_OFFERS_MAX} then return { foreign, 0 } end
end

local offers = {}
for i, name in ipairs(names) do
  local action, of, fields = K(t, 'action', name), K(t, 'offers', name), {}
  for j, as in ipairs(who) do
    fields[j] = user == '' and 'connections ' .. as or as .. ' ' .. user
    fields[j + #who] = 'users ' .. as
  end
  local key = user == '' and action or of
  local kept = read('HMGET', key, unpack(fields)) or {}
  local latest = (read('HMGET', key, user == '' and 'latest' or 'latest ' .. user) or {})[1] or false
  local at = (read('HMGET', action, 'latest_at') or {})[1] or false
  local gone, left = {}, {}
  for j, as in ipairs(who) do gone[j], left[j] = lost[name][as], 0 end
  -- A user all of whose connections are lost no longer offers it.
  if user == '' then
    for field, n in pairs(lost[name].users) do
      local held = tonumber((read('HMGET', of, field) or {})[1] or '') or 0
      for j, as in ipairs(who) do
        if held <= n and string.sub(field, 1, #as + 1) == as .. ' ' then left[j] = left[j] + 1 end
      end
    end
  end
  offers[i] = { name, at, latest, kept, gone, left }
end
return { foreign, 1, due, offers }`,
)

/** The offers of a shard from its counters; `null` where more connections are lost than one question subtracts. */
export async function readKeptOffers(
  store: Store,
  { shard, user_id, after, now, most, names }: OfferQuery & { names: number },
  ask: Ask,
): Promise<Offers | null> {
  if (most === 0) return { shard, offers: new Map(), end: null, examined: 0, isSample: true, isDescribed: true }
  // Names and lost connections are looked at both.
  const asked = Math.min(names, Math.ceil(most / 2))
  const from = after === null ? '-' : `(${after}`
  const bounds = { max_names: asked, max_lost: Math.min(LOST_MAX, most - asked) }
  const answer = await readShard(store, KEPT, shard, { at: now, from, user: user_id ?? '', ...bounds }, ask)
  if (answer === null) return null
  const offers = new Map<string, Offer>()
  for (const [name, latestAt, latest, kept, gone, left] of answer.offers) {
    const offer = noOffer()
    WHO.forEach((who, i) => {
      const connections = numberAt(kept, i) - numberAt(gone, i)
      offer.connections[who] = Math.max(0, connections)
      offer.users[who] =
        user_id === undefined
          ? Math.max(0, numberAt(kept, WHO.length + i) - numberAt(left, i))
          : Math.min(1, offer.connections[who])
    })
    if (typeof latest === 'string') offer.latest = latest
    offer.latestAt = count(latestAt ?? null)
    offers.set(String(name), offer)
  }
  const end = offers.size < asked ? null : ([...offers.keys()].at(-1) ?? null)
  return { shard, offers, end, examined: offers.size + answer.due, isSample: false, isDescribed: true }
}

// `user` may be ''. Answers per name when it was last offered, and how that connection described it.
const LATEST = defineReadScript(
  {
    args: ['user'],
    rest: 'names',
    answer: ([latest]) =>
      listOf(latest).map((one) => {
        const [latestAt = null, text] = listOf(one)
        return { latestAt: count(latestAt), latest: textOf(text) ?? undefined }
      }),
  },
  `
local answers = {}
for i, name in ipairs(names) do
  local action = K('connections', 'action', name)
  local key = user == '' and action or K('connections', 'offers', name)
  local latest = read('HMGET', key, user == '' and 'latest' or 'latest ' .. user) or {}
  answers[i] = { (read('HMGET', action, 'latest_at') or {})[1] or false, latest[1] or false }
end
return { foreign, answers }`,
)

/** Adds the kept descriptions of `names` to offers that were counted without them. */
export async function describe(
  store: Store,
  { shard, offers }: Offers,
  names: readonly string[],
  userId: string | undefined,
  ask: Ask,
): Promise<void> {
  const offered = names.filter((name) => offers.has(name))
  if (offered.length === 0) return
  const answers = await readShard(store, LATEST, shard, { user: userId ?? '', names: offered }, ask)
  offered.forEach((name, i) => {
    Object.assign(offers.get(name) as Offer, answers[i] ?? { latestAt: 0, latest: undefined })
  })
}

const numberAt = (reply: StoreReply | undefined, i: number): number => count(listOf(reply)[i] ?? null)
