/** Capacity of the admission scopes: each admitted command holds one reservation of its scope until its end or its deadline. */

import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { afterOverdue, type Scheduled } from './command.js'

/** One scope with reservations; `seq` is its place in the list for as long as it has any. */
export interface ReservedScope {
  seq: number
  scope_id: string
  /** As the latest admission was held to. */
  capacity: number
  commands: OrderedIndex<Scheduled, Scheduled>
}

/** Order by deadline, then by admission. */
export const byDeadline = (a: Scheduled, b: Scheduled) =>
  byNumber(a.deadlineAt, b.deadlineAt) || byNumber(a.sequence, b.sequence)

/** How many reservations of a scope count at `now`: those past their deadline are free, whether or not the loop has come by. */
export const heldAt = ({ commands }: ReservedScope, now: number): number =>
  commands.size - commands.rank(afterOverdue(now))

/** @param capacity most reservations of a scope. */
export function createReservations(capacity: (scope_id: string) => number) {
  const scopes = new Map<string, ReservedScope>()
  const listed = new OrderedIndex<number, ReservedScope>((scope) => scope.seq, byNumber)
  let seq = 0

  return {
    /** Whether `command` got its place at `now`. */
    reserve(scope_id: string, command: Scheduled, now: number): boolean {
      const known = scopes.get(scope_id)
      const most = capacity(scope_id)
      if (known) known.capacity = most
      if ((known ? heldAt(known, now) : 0) >= most) return false
      const scope = known ?? {
        seq: ++seq,
        scope_id,
        capacity: most,
        commands: new OrderedIndex<Scheduled, Scheduled>((held) => held, byDeadline),
      }
      if (!known) {
        scopes.set(scope_id, scope)
        listed.insert(scope)
      }
      scope.commands.insert(command)
      return true
    },

    release(scope_id: string, command: Scheduled): void {
      const scope = scopes.get(scope_id)
      if (!scope?.commands.delete(command) || scope.commands.size > 0) return
      scopes.delete(scope_id)
      listed.delete(scope.seq)
    },

    get: (scope_id: string) => scopes.get(scope_id),

    /** Scopes after the place `after`, in the order in which they first reserved. */
    after: (after: number) => listed.after(after),

    get size() {
      return scopes.size
    },
  }
}
