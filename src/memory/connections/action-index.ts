/** The actions that connected clients offer, counted as connections open and end, for the list of actions. */
import type { ActionDescriptor, ActionFilter, ActionObservation, Connection } from '../../contract/connections.js'
import { ClientType } from '../../contract/connections.js'
import { compareIds } from '../../contract/ids.js'
import { OBSERVED_MAX } from '../../contract/limits.js'
import type { Page, PageQuery } from '../../contract/page.js'
import { OrderedIndex } from '../table/ordered-index.js'

type PerType = Record<ClientType, number>

/** An action with the number of connections that offer it. */
interface Offer {
  readonly name: string
  latest: ActionDescriptor
  readonly connections: PerType
}

/**
 * An action across all users. `users`: number of distinct users per client type; `user_count`: number of distinct
 * users.
 */
interface CommonOffer extends Offer {
  readonly users: PerType
  user_count: number
}

const none = (): PerType => ({ browser: 0, console: 0, mobile: 0, web: 0 })
const sum = (counts: PerType) => counts.browser + counts.console + counts.mobile + counts.web
const nameOf = (offer: Offer) => offer.name
const offers = <T extends Offer>() => new OrderedIndex<string, T>(nameOf, compareIds)

/** Creates an index of the actions of connections with status `connected`. */
export function createActionIndex() {
  const common = offers<CommonOffer>()
  /** The same offers by name: every connection that opens or ends looks up all of its actions. */
  const byName = new Map<string, CommonOffer>()
  const byUser = new Map<string, OrderedIndex<string, Offer>>()

  return {
    add({ user_id, client_type }: Connection, descriptors: readonly ActionDescriptor[]): void {
      if (descriptors.length === 0) return
      const own = byUser.get(user_id) ?? offers()
      if (own.size === 0) byUser.set(user_id, own)
      for (const latest of descriptors) {
        const { name } = latest
        const total = byName.get(name) ?? { name, latest, connections: none(), users: none(), user_count: 0 }
        if (total.user_count === 0) {
          common.insert(total)
          byName.set(name, total)
        }
        const ownOffer = own.get(name) ?? { name, latest, connections: none() }
        if (sum(ownOffer.connections) === 0) {
          own.insert(ownOffer)
          total.user_count++
        }
        total.latest = ownOffer.latest = latest
        total.connections[client_type]++
        if (ownOffer.connections[client_type]++ === 0) total.users[client_type]++
      }
    },

    remove({ user_id, client_type, actions }: Connection): void {
      const own = byUser.get(user_id)
      if (!own) return
      for (const name of actions) {
        const total = byName.get(name)
        const ownOffer = own.get(name)
        if (!total || !ownOffer) continue
        if (--total.connections[client_type] === 0 && sum(total.connections) === 0) {
          common.delete(name)
          byName.delete(name)
        }
        if (--ownOffer.connections[client_type] > 0) continue
        total.users[client_type]--
        if (sum(ownOffer.connections) > 0) continue
        own.delete(name)
        total.user_count--
      }
      if (own.size === 0) byUser.delete(user_id)
    },

    /** Returns the actions after `page.cursor`, ordered by name, examining at most `bound`. */
    list({ user_id, client_type }: ActionFilter, page: PageQuery, bound: number): Page<ActionObservation> {
      const items: ActionObservation[] = []
      let last = page.cursor
      let examined = 0
      const source: Iterable<Offer> = (user_id === undefined ? common : byUser.get(user_id))?.after(last) ?? []
      for (const offer of source) {
        if (items.length === page.limit || examined === bound)
          return { items, next_cursor: last, has_more: true, examined }
        examined++
        last = offer.name
        const observed_connections = client_type ? offer.connections[client_type] : sum(offer.connections)
        if (observed_connections === 0) continue
        const types = ClientType.options.filter((type) => offer.connections[type] > 0)
        const { users, user_count } = offer as CommonOffer
        items.push({
          ...offer.latest,
          observed_connections,
          observed_users: user_id !== undefined ? 1 : client_type ? users[client_type] : user_count,
          observed_client_types: client_type ? [client_type] : types,
        })
      }
      return { items, next_cursor: null, has_more: false, examined }
    },

    /** Returns the first 100 names that the user's connections offer, and whether there are more. */
    namesOf(userId: string): { names: string[]; cut: boolean } {
      const own = byUser.get(userId)
      const names: string[] = []
      for (const { name } of own?.after(null) ?? []) if (names.push(name) >= OBSERVED_MAX) break
      return { names, cut: (own?.size ?? 0) > names.length }
    },
  }
}
