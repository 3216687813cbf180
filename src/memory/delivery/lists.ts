/** Retained commands in the order of their admission: all of them, and those of each state, user and scope. */
import { type CommandFilter, type CommandState, NO_REASON, REASONS_MAX } from '../../internal/contract/delivery.js'
import type { Order } from '../../internal/contract/page.js'
import { entriesFrom, FieldIndex } from '../table/field-index.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { stateOf, type TrackedCommand } from './command.js'

export function createCommandLists() {
  const all = new OrderedIndex<number, TrackedCommand>((command) => command.sequence, byNumber)
  const byState = new FieldIndex<TrackedCommand>()
  const byUser = new FieldIndex<TrackedCommand>()
  const byScope = new FieldIndex<TrackedCommand>()
  const reasons = new Map<string, number>()

  /**
   * Counts the reason of an ended command. A reason counted as `other` is subtracted from there once its own entry does
   * not exist.
   */
  function countReason({ terminal }: TrackedCommand, step: 1 | -1) {
    const name = terminal?.reason ?? NO_REASON
    const isOwn = reasons.has(name) || (step > 0 && reasons.size < REASONS_MAX - 1)
    const under = isOwn ? name : 'other'
    const count = (reasons.get(under) ?? 0) + step
    if (count > 0) reasons.set(under, count)
    else reasons.delete(under)
  }

  return {
    get size() {
      return all.size
    },

    /** Number of ended commands by reason. */
    get reasons(): ReadonlyMap<string, number> {
      return reasons
    },

    /** Called once for each ended command. */
    ended: (command: TrackedCommand) => countReason(command, 1),

    /** Returns the commands in `state`, in the order of admission. */
    inState: (state: CommandState) => byState.after(state, 0),

    /** Returns the number of commands in `state`. */
    sizeOf: (state: CommandState) => byState.size(state),

    add(command: TrackedCommand) {
      command.listedAs = stateOf(command)
      all.insert(command)
      byState.add(command.listedAs, command)
      byUser.add(command.user_id, command)
      byScope.add(command.scope_id, command)
    },

    /** Called after each transition of `command`. */
    move(command: TrackedCommand) {
      const state = stateOf(command)
      if (state === command.listedAs) return
      byState.remove(command.listedAs, command)
      byState.add(state, command)
      command.listedAs = state
    },

    remove(command: TrackedCommand) {
      if (command.terminal) countReason(command, -1)
      all.delete(command.sequence)
      byState.remove(command.listedAs, command)
      byUser.remove(command.user_id, command)
      byScope.remove(command.scope_id, command)
    },

    /** The shortest list that has all commands under `filter`: how long it is, and what comes after a place in an order. */
    narrowest({ state, user_id, scope_id }: CommandFilter) {
      let size = all.size
      let from = (sequence: number, order: Order): Iterable<TrackedCommand> => entriesFrom(all, sequence, order)
      const offer = (index: FieldIndex<TrackedCommand>, value: string | undefined) => {
        if (value === undefined || index.size(value) > size) return
        size = index.size(value)
        from = (sequence, order) => index.from(value, sequence, order)
      }
      if (state !== 'open') offer(byState, state)
      offer(byUser, user_id)
      offer(byScope, scope_id)
      return { size, from }
    },
  }
}
