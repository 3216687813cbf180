/** What the rules of the oracle are made of. */

import type { History, Operation, Violate } from '../record.js'
import { EPOCH } from '../store.js'

/** A write waits for the store 2 s at most, and what was given up is never done later. */
export const FENCE_MS = 2_100

const MAY_HAVE_RUN = new Set(['unavailable', 'timeout', 'cancelled', 'closed'])

/** Whether an operation may have been done, whatever was answered. */
export const mayRun = ({ state, code = '', outcome }: Operation): boolean =>
  state === 'ok' ||
  state === 'died' ||
  state === 'open' ||
  (state === 'refused' && MAY_HAVE_RUN.has(code) && outcome !== 'not_run')

/** By when an operation has been done if it has. */
export function endOf({ ret, state, diedAt }: Operation): number {
  if (ret < Number.POSITIVE_INFINITY) return ret
  return state === 'died' ? (diedAt ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
}

export const isYes = ({ state, value }: Operation): boolean => state === 'ok' && value === true

export function groupBy<T>(list: Iterable<T>, keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of list) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}

/** ms since the history began. */
export const msOf = (iso: string | null): number => (iso ? Date.parse(iso) - EPOCH : Number.NaN)

export const round = (ms: number | undefined): string => (ms === undefined ? '?' : ms.toFixed(0))

const clientOf = ({ user_id, client_id }: { user_id?: string; client_id?: string }): string => `${user_id} ${client_id}`

export const commandOf = (one: { user_id?: string; client_id?: string; command_id?: string }): string =>
  `${clientOf(one)} ${one.command_id}`

/** Whether an operation ends a command. */
export const isEnding = ({ what, reason }: Operation): boolean =>
  what === 'settle' || what === 'cancel' || (what === 'acknowledge' && reason === 'busy')

/** Whether an instance had been superseded for certain by `at`: another one connected, whole, after all of its own connects. */
export function isStale(connects: readonly Operation[], instance_id: string | undefined, at: number): boolean {
  const own = connects.filter((one) => one.instance_id === instance_id && mayRun(one))
  return connects.some(
    (other) =>
      other.instance_id !== instance_id &&
      other.state === 'ok' &&
      other.ret < at &&
      own.every((one) => one.state !== 'died' && one.state !== 'open' && one.ret < other.call),
  )
}

/** What is known of a whole history. */
export class Facts {
  /** The store lost writes: of what it may have forgotten nothing is said. */
  readonly isLossy: boolean
  readonly hasClockSteps: boolean
  readonly connects: Map<string, Operation[]>
  private readonly lastLoss: number
  private readonly byKind: Map<string, Operation[]>

  constructor(
    readonly history: History,
    readonly violate: Violate,
  ) {
    this.isLossy = history.losses.length > 0
    this.lastLoss = Math.max(-1, ...history.losses)
    this.hasClockSteps = history.hasClockSteps
    this.byKind = groupBy(history.operations, ({ what }) => what)
    this.connects = groupBy(
      this.all('connect').filter((one) => this.isCertain(one)),
      clientOf,
    )
  }

  all(...kinds: string[]): Operation[] {
    return kinds.flatMap((kind) => this.byKind.get(kind) ?? []).sort((a, b) => a.i - b.i)
  }

  /** Whether the store cannot have lost what the operation wrote. */
  isCertain({ call }: Operation): boolean {
    return !this.isLossy || call > this.lastLoss
  }

  /** The groups of which the store cannot have lost a part. */
  certain(groups: Map<string, Operation[]>): [string, Operation[]][] {
    return [...groups].filter(([, own]) => own.every((one) => this.isCertain(one)))
  }

  /** Whether nothing goes wrong during the operation, and long before it. */
  isCalm({ call }: Operation): boolean {
    return call >= this.history.calmFrom
  }

  connectsOf(one: { user_id?: string; client_id?: string }): Operation[] {
    return this.connects.get(clientOf(one)) ?? []
  }

  wasPaused(node: string, from: number, to: number): boolean {
    return this.history.pauses.some((pause) => pause.node === node && pause.from < to && pause.to > from)
  }
}
