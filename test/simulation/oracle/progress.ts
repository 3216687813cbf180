/** A command whose client is attached is attempted again after the node that held it died. */
import type { Handover, Operation } from '../record.js'
import { commandOf, type Facts, groupBy, mayRun, round } from './facts.js'

/** The lease of a node, the time for which another node suspects it, and two passes with their replies. */
const LEASE_MS = 5_000
const SUSPECT_MS = 2_000
const GRACE_MS = 3_000
/** More running deliveries than this may fill a client. */
const RUNNING_MAX = 3

/** Whether one waiter of the client was attached from `from` to `to`, on a node that lived, and had a free slot. */
function isServed(facts: Facts, held: Handover, from: number, to: number): boolean {
  const { history } = facts
  const isOwn = (one: Operation) => one.user_id === held.user_id && one.client_id === held.client_id
  const own = facts.all('attach', 'detach', 'connect').filter(isOwn)
  const last = own.filter(({ what, ret }) => what === 'attach' && ret <= from).at(-1)
  if (last?.state !== 'ok' || own.some(({ i, call }) => i > last.i && call < to)) return false
  const life = history.lives.find(({ node, number }) => node === last.node && number === last.life)
  if (!life || life.to <= to) return false
  const running = history.handovers.filter((one) => one.instance_id === last.instance_id && one.done > from)
  return running.length <= RUNNING_MAX
}

/** What was given back counts as no attempt, and reaches the client where it attaches next. */
function judgeGivenBack(facts: Facts): void {
  const { history, violate } = facts
  const handovers = groupBy(history.handovers, commandOf)
  for (const one of facts.all('dispatch')) {
    if (!one.mustArrive || !facts.isCalm(one) || one.value?.admission.state !== 'admitted') continue
    const attempts = handovers.get(commandOf(one))?.map(({ attempt }) => attempt) ?? []
    if (attempts.length === 0) violate('not_attempted_again', `command ${one.command_id}, which was given back`)
    else if (attempts[0] !== 1) violate('give_back_counted', `command ${one.command_id}: attempts ${attempts}`)
  }
}

export function judgeProgress(facts: Facts): void {
  const { history, violate, isLossy, hasClockSteps } = facts
  if (hasClockSteps) return
  judgeGivenBack(facts)
  if (isLossy || history.wasFull) return
  const words = groupBy(facts.all('acknowledge', 'settle', 'cancel'), commandOf)
  const dispatches = groupBy(facts.all('dispatch'), commandOf)
  for (const [key, handovers] of groupBy(history.handovers, commandOf)) {
    const held = handovers.at(-1) as Handover
    const life = history.lives.find(({ node, to }) => node === held.node && to > held.at)
    const dispatched = dispatches.get(key)?.filter(({ state }) => state === 'ok') ?? []
    if (!life || life.to === Number.POSITIVE_INFINITY || dispatched.length === 0) continue
    const from = life.to + 1_000
    const to = life.to + LEASE_MS + SUSPECT_MS + GRACE_MS
    const isOver = (words.get(key) ?? []).some((one) => one.call < to && mayRun(one))
    const isTroubled = history.faults.some(({ at }) => at > life.to && at < to)
    const deadline = Math.min(...dispatched.map(({ call, deadline_ms }) => call + deadline_ms))
    const isExhausted = held.attempt >= Math.min(...dispatched.map(({ max }) => max))
    if (isOver || isTroubled || deadline < to || isExhausted || history.quietAt < to) continue
    if (isServed(facts, held, from, to))
      violate('not_attempted_again', `command ${key} of ${held.node}, which died at ${round(life.to)}`)
  }
}
