/** Commands: one end, no word lost, no handover after it, no scope beyond its capacity. */
import type { Any, Handover, Operation, Reading } from '../record.js'
import { commandOf, type Facts, FENCE_MS, groupBy, isEnding, isStale, isYes, mayRun, msOf, round } from './facts.js'

/** A span in which a command held its scope for certain. */
interface Hold {
  from: number
  to: number
}

interface Command {
  key: string
  own: Operation[]
  dispatches: Operation[]
  admitted: Operation[]
  handovers: Handover[]
  endings: Operation[]
  /** Its record at the end, `null` if missing. */
  record: Any
}

const isAdmitted = ({ state, value }: Operation): boolean => state === 'ok' && value.admission.state === 'admitted'
const isRejected = ({ state, value }: Operation): boolean => state === 'ok' && value.admission.state === 'rejected'

function isFounded({ state, reason, at }: Any, { endings, record }: Command): boolean {
  const said = endings.filter(mayRun)
  switch (state) {
    case 'resulted':
      return said.some(({ what, end }) => what === 'settle' && end === 'resulted')
    case 'failed':
      return (
        reason === 'attempts_exhausted' ||
        said.some(({ what, end }) => what === 'acknowledge' || (what === 'settle' && end === 'failed'))
      )
    case 'cancelled':
      return said.some(({ what }) => what === 'cancel')
    default:
      return state === 'expired' && Date.parse(at) >= Date.parse(record.admission.deadline_at)
  }
}

/** Whether the end that counted is the end of the record. */
function isEndOf({ what, end }: Operation, state: string): boolean {
  if (what === 'cancel') return state === 'cancelled'
  return what === 'acknowledge' ? state === 'failed' : state === end
}

function judgeEnd(facts: Facts, command: Command, blame: (rule: string, about?: string) => void): void {
  const { endings, dispatches, admitted, record } = command
  const counted = endings.filter(isYes)
  if (counted.length > 1) blame('ended_twice', counted.map(({ what, call }) => `${what} ${round(call)}`).join(', '))
  if (counted.length > 0 && !dispatches.some((one) => mayRun(one) && !isRejected(one))) blame('ended_unadmitted')
  const end = record?.terminal
  if (!end || record.admission.state !== 'admitted') return
  if (!isFounded(end, command)) blame('end_from_nowhere', JSON.stringify(end))
  const [said] = counted
  if (said && !isEndOf(said, end.state)) blame('end_lost', `${said.what} ${said.end} counted, ${JSON.stringify(end)}`)
  const { max } = dispatches[0] as Operation
  if (end.reason === 'attempts_exhausted' && record.attempts.count < max)
    blame('exhausted_early', `${record.attempts.count} of ${max}`)
  if (facts.hasClockSteps) return
  if (record.attempts.last_at && record.attempts.last_at > end.at)
    blame('attempted_after_end', `${record.attempts.last_at} > ${end.at}`)
  if (end.state !== 'expired') return
  for (const one of endings)
    if (
      one.what === 'cancel' &&
      one.state === 'ok' &&
      one.value === false &&
      admitted.some(({ ret }) => ret < one.call) &&
      one.ret < msOf(record.admission.deadline_at) - 10
    )
      blame('end_denied', `cancel ${round(one.call)}`)
}

function judgeAttempts(facts: Facts, command: Command, blame: (rule: string, about?: string) => void): void {
  const { own, handovers, dispatches, endings, record } = command
  const { attempts, acknowledgement, recovery } = record
  const numbers = handovers.map(({ attempt }) => attempt)
  if (new Set(numbers).size < numbers.length) blame('handed_over_twice', `attempts ${numbers}`)
  if (handovers.length > attempts.count) blame('attempts_uncounted', `${handovers.length} > ${attempts.count}`)
  const done = handovers.filter(({ done }) => done < Number.POSITIVE_INFINITY).length
  if (attempts.confirmed > Math.min(done, attempts.count))
    blame('confirmed_too_many', `${attempts.confirmed} > ${done}`)
  const max = Math.max(...dispatches.map((one) => one.max))
  if (handovers.length > max) blame('handed_over_too_often', `${handovers.length} > ${max}`)
  // A claim that never reached its node goes back, and counts against no bound.
  if (attempts.count > max + recovery.count) blame('too_many_attempts', `${attempts.count} > ${max}`)
  const words = own.filter((one) => (one.what === 'acknowledge' && one.reason !== 'busy') || one.acknowledge)
  const counted = words.filter(isYes)
  const isRefused = own.some((one) => one.reason === 'busy' && isYes(one))
  if (isRefused ? acknowledgement.state !== 'refused' : counted.length > 0 && acknowledgement.state === 'none')
    blame('acknowledgement_lost', acknowledgement.state)
  if (acknowledgement.state === 'acknowledged') {
    const isSaid = own.some(
      (one) => mayRun(one) && one.instance_id === acknowledgement.instance_id && one.what !== 'dispatch',
    )
    if (!isSaid) blame('acknowledgement_from_nowhere', JSON.stringify(acknowledgement))
    if (attempts.last_at > acknowledgement.at)
      blame('attempted_after_acknowledgement', `${attempts.last_at} > ${acknowledgement.at}`)
  }
  const quietFrom = Math.min(...[...counted, ...endings.filter(isYes)].map(({ ret }) => ret))
  for (const { at, node, attempt } of handovers)
    if (at > quietFrom + FENCE_MS && !facts.wasPaused(node, quietFrom, at))
      blame('handed_over_after_word', `attempt ${attempt} at ${round(at)}, the word at ${round(quietFrom)}`)
}

function judgeCommand(facts: Facts, command: Command): void {
  const { key, own, dispatches, admitted, handovers, endings, record } = command
  const blame = (rule: string, about = '') => facts.violate(rule, `command ${key}: ${about}`)
  const mayBeAdmitted = dispatches.some((one) => mayRun(one) && !isRejected(one))
  if (admitted.length > 0 && !record) blame('admitted_and_gone')
  if (admitted.length > 0 && record?.admission.state === 'rejected') blame('rejected_after_admission')
  if (!mayBeAdmitted && (handovers.length > 0 || record?.admission.state === 'admitted')) blame('there_though_refused')
  if (record?.admission.state === 'admitted' && !record.terminal && !facts.hasClockSteps)
    blame('not_ended', JSON.stringify(record.attempts))
  judgeEnd(facts, command, blame)
  const endedAt = endings.find(isYes)?.ret ?? Number.POSITIVE_INFINITY
  for (const one of own)
    if (one.what === 'acknowledge' && isYes(one) && one.call > endedAt)
      blame('acknowledged_after_end', `${round(one.call)} > ${round(endedAt)}`)
  // Where the store's clock stepped back, commands live on after the last reading.
  if (record && !facts.hasClockSteps) judgeAttempts(facts, command, blame)
  for (const { action, command_id, payload, instance_id, at, node } of handovers) {
    if (action === 'sync' && !command_id.startsWith('probe') && payload !== JSON.stringify({ of: command_id }))
      blame('other_payload', payload)
    const since = at - FENCE_MS
    if (isStale(facts.connectsOf(dispatches[0] as Operation), instance_id, since) && !facts.wasPaused(node, since, at))
      blame('handed_to_stale', `${instance_id} at ${round(at)}`)
    if (!dispatches.some(({ call }) => call <= at)) blame('handed_over_before_dispatch')
  }
}

/** When a command held its scope for certain. */
function holdOf({ admitted, dispatches, endings, record }: Command): Hold | null {
  if (admitted.length === 0 || !record) return null
  const from = Math.min(...admitted.map(({ ret }) => ret))
  const exhausted =
    record.terminal?.reason === 'attempts_exhausted' ? msOf(record.terminal.at) : Number.POSITIVE_INFINITY
  const ends = endings.filter(mayRun).map(({ call }) => call)
  // Its place is reserved before it is admitted, and for `deadline_ms` from then on.
  const reserved = Math.min(...dispatches.map(({ call, deadline_ms }) => call + deadline_ms))
  const to = Math.min(exhausted, reserved, msOf(record.admission.deadline_at), ...ends)
  return to > from ? { from, to } : null
}

function judgeCapacity(facts: Facts, commands: readonly Command[]): void {
  const { capacity } = facts.history.config
  const scopes = groupBy(commands, ({ record }) => record?.admission.scope_id ?? '')
  for (const [scope, own] of scopes) {
    const holds = own.flatMap((command) => holdOf(command) ?? [])
    for (const { from } of holds) {
      const held = holds.filter((other) => other.from <= from && other.to > from).length
      if (held <= capacity) continue
      facts.violate('capacity_exceeded', `${held} commands hold ${scope} of ${capacity} at ${round(from)}`)
      break
    }
  }
}

/** No command is refused for capacity while there is room. */
function judgeRefusals(facts: Facts, commands: readonly Command[]): void {
  const { config, userIds } = facts.history
  for (const one of facts.all('dispatch')) {
    if (!isRejected(one) || one.value.terminal?.reason !== 'capacity_exceeded') continue
    const scope = one.value.admission.scope_id
    const possible = commands.filter(({ dispatches, endings }) => {
      const ended = endings.find(isYes)
      if (ended && config.shards === 1 && ended.ret + 2_500 < one.call) return false
      return dispatches.some(
        (d) =>
          d !== one &&
          d.scope_id === scope &&
          mayRun(d) &&
          (d.call < one.ret || d.i < one.i) &&
          d.call + d.deadline_ms + 5_000 > one.call,
      )
    }).length
    const invoked = userIds.includes(scope)
      ? facts.all('invoke').filter(({ call }) => call < one.ret && call + 10_000 > one.call).length
      : 0
    if (possible + invoked < config.capacity)
      facts.violate(
        'refused_with_room',
        `${one.command_id} at ${round(one.call)}: ${possible + invoked} of ${config.capacity} in ${scope}`,
      )
  }
}

function judgeSummaries(facts: Facts, reading: Reading): void {
  const { history, violate, isLossy, hasClockSteps } = facts
  // A release that fails leaves the reservation until its deadline.
  const mayBeLeft = (scope: string) =>
    facts.all('dispatch').some((one) => one.scope_id === scope && one.deadline_ms > 10_000 && !facts.isCalm(one))
  const { summary, tenants, rpc, nodes } = reading
  for (const { path, status } of [summary, tenants, rpc, nodes])
    if (status !== 200) violate('diagnostics_unavailable', `${path} ${status} in a calm world`)
  if (summary.status !== 200 || isLossy) return
  const { counters, pending } = rpc.body
  // `null` where no call was ever written.
  const ended = counters && counters.succeeded + counters.failed + counters.timed_out + counters.cancelled
  if (counters && counters.opened !== ended + pending) violate('rpc_sum', JSON.stringify(rpc.body))
  if (hasClockSteps) return
  if (summary.body.tracked_commands !== 0) violate('left_tracked', `${summary.body.tracked_commands}`)
  for (const tenant of tenants.body.items ?? [])
    if (!mayBeLeft(tenant.scope_id)) violate('left_reserved', JSON.stringify(tenant))
  if (pending > 0) violate('rpc_left', JSON.stringify(rpc.body))
  for (const node of nodes.body.items ?? []) {
    const isLiving = history.lives.some(({ life, node: name }) => name === node.node_id && !life.isDead)
    const isSaidLiving = node.stale === false && node.reconciliation_loop_alive === true
    if (isLiving && !isSaidLiving) violate('node_said_dead', JSON.stringify({ ...node, counters: undefined }))
  }
}

/** A command that requires its client to be attached is admitted only while it may be. */
function judgeWaiters(facts: Facts): void {
  for (const one of facts.all('dispatch').filter(isAdmitted)) {
    if (!one.require_waiter || !facts.isCalm(one)) continue
    const moves = facts
      .all('attach', 'detach')
      .filter((other) => commandOf(other) === commandOf({ ...one, command_id: undefined }))
    const last = moves.filter(({ call }) => call < one.ret).at(-1)
    if (!last || (last.what === 'detach' && last.ret + 1_500 < one.call))
      facts.violate('admitted_unwaited', `${one.command_id} at ${round(one.call)}`)
  }
}

function judgeProbes({ history, violate }: Facts): void {
  for (const { isReady, command_id, commands, operation } of history.probes) {
    if (!operation) continue
    if (operation.state !== 'ok') violate('probe_refused', `dispatch ${operation.code} ${operation.outcome}`)
    else if (isReady && isAdmitted(operation) && !commands.includes(command_id))
      violate('probe_unserved', `${command_id} was never delivered in a calm world`)
  }
}

export function judgeDelivery(facts: Facts, reading: Reading): void {
  const words = facts.all('dispatch', 'acknowledge', 'settle', 'cancel').filter(({ command_id }) => command_id)
  const handovers = groupBy(facts.history.handovers, commandOf)
  const commands = facts.certain(groupBy(words, commandOf)).flatMap(([key, own]): Command[] => {
    const dispatches = own.filter(({ what }) => what === 'dispatch')
    if (dispatches.length === 0) return []
    const answer = reading.statuses.get(key)
    if (answer && answer.status !== 200 && answer.status !== 404)
      facts.violate('diagnostics_unavailable', `${answer.path} ${answer.status} in a calm world`)
    const record = answer?.status === 200 ? answer.body : null
    const admitted = dispatches.filter(isAdmitted)
    return [
      { key, own, dispatches, admitted, handovers: handovers.get(key) ?? [], endings: own.filter(isEnding), record },
    ]
  })
  for (const command of commands) judgeCommand(facts, command)
  if (!facts.hasClockSteps) judgeCapacity(facts, commands)
  if (!facts.hasClockSteps && !facts.isLossy) judgeRefusals(facts, commands)
  judgeSummaries(facts, reading)
  judgeWaiters(facts)
  judgeProbes(facts)
}
