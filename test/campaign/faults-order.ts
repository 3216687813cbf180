/** Looks for an order of an object's operations that its specification allows, each at some instant between its call and its answer. */
import type { Rule } from './faults-rules.js'

/** A step that an object took, or may have taken. */
export interface Step<Move> {
  from: number
  /** Infinite where it may happen at any time, or never. */
  to: number
  /** Whether it must have happened. */
  isSure: boolean
  move: Move
}

/** The state after `move`, the very same where it changes nothing, or the rule that it breaks. */
export type Specification<State, Move> = (state: State, move: Move) => State | Rule

/** Orders that are tried before an object is given up. */
const TRIED_MAX = 200_000

/**
 * Nothing where there is an order; else the rule that the longest ones break (after Wing and Gong, with the memory of
 * Lowe's: a set of steps that has led to a state is tried once).
 */
export function brokenBy<State extends object, Move>(
  steps: readonly Step<Move>[],
  initial: State,
  specification: Specification<State, Move>,
  triedMax = TRIED_MAX,
): Rule | undefined {
  const sorted = [...steps].sort((a, b) => a.to - b.to || a.from - b.from)
  const done = sorted.map(() => false)
  const tried = new Set<string>()
  const sure = sorted.filter(({ isSure }) => isSure).length
  let deepest = -1
  let broken: Rule | undefined

  function search(state: State, left: number): boolean {
    if (left === 0) return true
    if (tried.size >= triedMax) return false
    const key = `${done.map(Number).join('')} ${JSON.stringify(state)}`
    if (tried.has(key)) return false
    tried.add(key)
    const bound = sorted.find(({ isSure }, i) => isSure && !done[i])?.to ?? Number.POSITIVE_INFINITY
    for (const [i, step] of sorted.entries()) {
      if (done[i] || step.from > bound) continue
      const next = specification(state, step.move)
      if (typeof next === 'string') {
        // Of those that must come next, the first to be answered is to blame.
        if (step.isSure && sure - left > deepest) {
          deepest = sure - left
          broken = next
        }
        continue
      }
      if (!step.isSure && next === state) continue
      done[i] = true
      if (search(next, step.isSure ? left - 1 : left)) return true
      done[i] = false
    }
    return false
  }

  if (search(initial, sure)) return undefined
  return tried.size >= triedMax ? 'undecided' : broken
}
