/** Retained commands in the order of their admission: all of them, and those of each state, user and scope. */
import type { CommandFilter, CommandState } from '../../contract/delivery.js'
import { FieldIndex } from '../table/field-index.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { stateOf, type TrackedCommand } from './command.js'

export type CommandLists = ReturnType<typeof createCommandLists>

export function createCommandLists() {
  const all = new OrderedIndex<number, TrackedCommand>((command) => command.sequence, byNumber)
  const byState = new FieldIndex<TrackedCommand>()
  const byUser = new FieldIndex<TrackedCommand>()
  const byScope = new FieldIndex<TrackedCommand>()

  return {
    get size() {
      return all.size
    },

    /** How many commands are in `state`. */
    sizeOf: (state: CommandState) => byState.size(state),

    add(command: TrackedCommand) {
      command.listedAs = stateOf(command)
      all.insert(command)
      byState.add(command.listedAs, command)
      byUser.add(command.user_id, command)
      byScope.add(command.scope_id, command)
    },

    /** To be told after each move of `command`. */
    move(command: TrackedCommand) {
      const state = stateOf(command)
      if (state === command.listedAs) return
      byState.remove(command.listedAs, command)
      byState.add(state, command)
      command.listedAs = state
    },

    remove(command: TrackedCommand) {
      all.delete(command.sequence)
      byState.remove(command.listedAs, command)
      byUser.remove(command.user_id, command)
      byScope.remove(command.scope_id, command)
    },

    /** The shortest list that has all commands under `filter`: how long it is, and what comes after a place in it. */
    narrowest({ state, user_id, scope_id }: CommandFilter) {
      let size = all.size
      let after = (sequence: number): Iterable<TrackedCommand> => all.after(sequence)
      const offer = (index: FieldIndex<TrackedCommand>, value: string | undefined) => {
        if (value === undefined || index.size(value) > size) return
        size = index.size(value)
        after = (sequence) => index.after(value, sequence)
      }
      offer(byState, state)
      offer(byUser, user_id)
      offer(byScope, scope_id)
      return { size, after }
    },
  }
}
