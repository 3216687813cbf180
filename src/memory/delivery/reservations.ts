/** Capacity of the admission scopes: each admitted command holds one reservation of its scope until its end is recorded. */

import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import type { Scheduled } from './command.js'

/** A scope with reservations; `seq` is its position in the list as long as it has any. */
export interface ReservedScope {
  seq: number
  scope_id: string
  /** The capacity that applied to the latest admission. */
  capacity: number
  commands: OrderedIndex<Scheduled, Scheduled>
}

/** Compares by deadline, then by admission. */
export const byDeadline = (a: Scheduled, b: Scheduled) =>
  byNumber(a.deadlineAt, b.deadlineAt) || byNumber(a.sequence, b.sequence)

/** @param capacity Returns the maximum number of reservations of a scope. */
export function createReservations(capacity: (scope_id: string) => number) {
  const scopes = new Map<string, ReservedScope>()
  const listed = new OrderedIndex<number, ReservedScope>((scope) => scope.seq, byNumber)
  let seq = 0

  return {
    /** Reserves a place for `command`. Returns whether there was one. */
    reserve(scope_id: string, command: Scheduled): boolean {
      const known = scopes.get(scope_id)
      const most = capacity(scope_id)
      if (known) known.capacity = most
      if ((known?.commands.size ?? 0) >= most) return false
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

    /** Returns the scopes after the position `after`, in the order of their first reservation. */
    after: (after: number) => listed.after(after),

    get size() {
      return scopes.size
    },
  }
}
