/** What has just happened, as this tab saw it: what changed between two readings of the newest commands and of the events of connections. */

import type { DeliveryCommandAnswer } from '../../contract/delivery.js'
import { partsOf } from '../../contract/evidence.js'
import { hrefOf } from './address.js'
import { clock } from './words.js'

export interface Happening {
  key: string
  at: number
  /** A word of a state. */
  what: string
  id: string
  href: string
  who: string
  why: string | null
}

/** A reading that has nothing in common with the one before: what lay between is not known. */
export interface Gap {
  key: string
  at: number
  gap: true
}

const KEPT = 200
const happened: (Happening | Gap)[] = []
/** Of each list what each row was, as it was last read. */
const seen = new Map<string, Map<string, string>>()
/** The readings themselves, so that none is read twice. */
const read = new Map<string, object>()

export const happenings = (): readonly (Happening | Gap)[] => happened

export function forgetHappenings(): void {
  happened.length = 0
  seen.clear()
  read.clear()
}

interface Notice {
  key: string
  state: string
  happening: Omit<Happening, 'key'>
}

const encoded = encodeURIComponent

export function commandNotice(command: DeliveryCommandAnswer): Notice {
  const { user_id, client_id, command_id, state, terminal, action } = command
  const { admission, attempts, acknowledgement } = partsOf(command)
  const scope = admission.scope_id
  const times = [terminal?.at, acknowledgement.at, attempts.last_at, admission.at].find((time) => time)
  return {
    key: JSON.stringify([user_id, client_id, command_id, scope]),
    state: `${state} ${attempts.count}`,
    happening: {
      at: times ? Date.parse(times) : clock(),
      what: state === 'waiting' ? 'admitted' : state,
      id: command_id,
      href: hrefOf('/delivery/status', { user_id: user_id ?? scope, client_id: client_id ?? scope, command_id }),
      who: [user_id, client_id].filter(Boolean).join(' / '),
      why: terminal?.reason ?? (state === 'waiting' ? (action ?? null) : attempts.last_outcome),
    },
  }
}

/** One step in the life of any connection, as `/connections/events` has it. */
export interface ClientEvent {
  connection_id: string
  user_id: string
  client_id: string
  event: string
  at: string
  reason: string | null
}

export function eventNotice({ connection_id, user_id, client_id, event, at: when, reason }: ClientEvent): Notice {
  const href = hrefOf(`/connections/${encoded(connection_id)}`)
  const happening = { at: Date.parse(when), what: event, id: client_id, href, who: user_id, why: reason }
  return { key: `${connection_id} ${event} ${when}`, state: '', happening }
}

/** Reads a list once, and writes down what has changed since the last reading. */
export function notice<T>(list: string, items: readonly T[] | undefined, tell: (row: T) => Notice): void {
  if (!items || read.get(list) === items) return
  read.set(list, items)
  const before = seen.get(list)
  const told = items.map(tell)
  seen.set(list, new Map(told.map(({ key, state }) => [key, state])))
  // Rows of the first read are not new.
  if (!before) return
  const fresh = told.filter(({ key, state }) => before.get(key) !== state)
  if (before.size > 0 && fresh.length === told.length && told.length > 1 && !told.some(({ key }) => before.has(key)))
    happened.push({ key: `${list} ${Date.now()}`, at: Date.now(), gap: true })
  for (const { key, state, happening } of fresh) happened.push({ ...happening, key: `${key} ${state}` })
  happened.sort((a, b) => a.at - b.at)
  happened.splice(0, happened.length - KEPT)
}
