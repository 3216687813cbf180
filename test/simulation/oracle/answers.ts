/** An answer of the diagnostics router claims no more than what can be so at that time. */
import type { Answer, Any, History, Operation, Violate } from '../record.js'
import { commandOf, groupBy, isEnding, isYes, mayRun } from './facts.js'

const EXCUSES = ['store pauses', 'store restarts', 'store loses writes', 'store is full', 'store clock steps']

/** What a judge of one route gets. */
interface Asked extends Answer {
  history: History
  violate: Violate
  operations: readonly Operation[]
  by(what: string): Operation[]
}

const mayHaveRun = (one: Operation): boolean => one.state === 'open' || mayRun(one)
const isRejected = ({ state, value }: Operation) => state === 'ok' && value.admission.state === 'rejected'
const isAdmitted = ({ state, value }: Operation) => state === 'ok' && value.admission.state === 'admitted'

function judgeCalls({ body, from, to, history, by, violate, path }: Asked): void {
  if (path === '/rpc/summary') {
    const { counters, pending } = body
    const opens = by('rpc.open')
    const least = opens.filter(({ state, ret }) => state === 'ok' && ret < from).length
    if (counters === null) {
      // No facility has written a call yet, or the store has lost all of them.
      if (least > 0 && history.losses.length === 0) violate('rpc_unknown', `${least} calls`)
      return
    }
    const ended = counters.succeeded + counters.failed + counters.timed_out + counters.cancelled
    if (counters.opened !== ended + pending) violate('rpc_sum', JSON.stringify(body))
    const most = opens.filter((one) => one.call < to && mayHaveRun(one)).length + by('invoke').length
    if (counters.opened < least || counters.opened > most)
      violate('rpc_opened', `${counters.opened}, not from ${least} to ${most}`)
    return
  }
  const settles = groupBy(by('rpc.settle'), ({ correlation_id }) => correlation_id)
  for (const call of by('rpc.open')) {
    const { correlation_id, resolvedAt, end } = call
    const isListed = body.items.some((item: Any) => item.correlation_id === correlation_id)
    const isSettled = (settles.get(correlation_id) ?? []).some((settle) => settle.call < to)
    const mustBeThere =
      call.state === 'ok' &&
      call.ret < from &&
      resolvedAt === undefined &&
      call.call + call.timeoutMs > to + 5 &&
      !isSettled &&
      !(call.abortedAt < to)
    if (mustBeThere && !isListed && !body.has_more) violate('pending_incomplete', correlation_id)
    // A withdrawal may be lost: then a sweep ends the call, every five seconds at rest.
    if (isListed && resolvedAt < from - 7_500 && end !== 'died')
      violate('pending_after_end', `${correlation_id} ended as ${end} at ${resolvedAt.toFixed(0)}`)
  }
}

const sumOf = (counts: Any): number => Object.values<number>(counts).reduce((sum, n) => sum + n, 0)

/** The counts of the summary are from one moment, even in a store that lost writes: their sums agree. */
function judgeSums({ by_state, by_reason, waits_for, tracked_commands }: Any, violate: Violate): void {
  if (by_state === null || by_reason === null || waits_for === null) return
  const { waiting, attempted, acknowledged, ...ended } = by_state
  const open = waiting + attempted + acknowledged
  const isAgreed = open === sumOf(waits_for) && open === tracked_commands && sumOf(ended) === sumOf(by_reason)
  if (!isAgreed) violate('counts_disagree', JSON.stringify({ by_state, by_reason, waits_for, tracked_commands }))
}

/**
 * Nothing is deleted in the time of a run, so each recorded end is counted. Before a node or a command is in the store, it
 * is not known that there is a dispatcher at all.
 */
function judgeEnded({ by_state, by_reason, waits_for }: Any, commands: Operation[][], from: number, violate: Violate) {
  if (by_state === null || by_reason === null || waits_for === null) {
    const isRecorded = commands.some((own) =>
      own.some((one) => one.what === 'dispatch' && isAdmitted(one) && one.ret < from),
    )
    if (isRecorded) violate('counts_unknown', JSON.stringify({ by_state, by_reason, waits_for }))
    return
  }
  const { waiting, attempted, acknowledged, ...ended } = by_state
  const least = commands.filter((own) => own.some((one) => isEnding(one) && isYes(one) && one.ret < from)).length
  if (sumOf(ended) < least) violate('ended_too_few', `${sumOf(ended)}, not ${least}`)
}

function judgeCommands({ body, from, to, path, history, operations, by, violate }: Asked): void {
  const commands = groupBy(
    operations.filter(({ command_id }) => command_id),
    commandOf,
  )
  const handed = new Set(history.handovers.map(commandOf))
  const listed = new Map<string, Any>((body.items ?? []).map((item: Any) => [commandOf(item), item]))
  let least = 0
  let most = 0
  for (const [key, own] of commands) {
    const dispatches = own.filter(({ what, call }) => what === 'dispatch' && call < to)
    if (dispatches.length === 0) continue
    const hasEnded = own.some((one) => isEnding(one) && isYes(one) && one.ret < from)
    const mayEnd = own.some(
      ({ what, reason, call }) => what !== 'dispatch' && (what !== 'acknowledge' || reason === 'busy') && call < to,
    )
    const admitted = dispatches.find((one) => isAdmitted(one) && one.ret < from)
    // An earlier dispatch without an answer may have admitted it: its deadline counts.
    const isBeforeDeadline = dispatches.every((one) => isRejected(one) || one.call + one.deadline_ms > to)
    // A fault after the claim, before the client gets the command, costs an attempt.
    const spoiled = admitted ? history.faults.filter(({ at }) => at > admitted.call && at < to).length : 0
    const hasAttempts = spoiled < (admitted?.max ?? 1)
    if (admitted && !mayEnd && !handed.has(key) && isBeforeDeadline && hasAttempts) least++
    if (dispatches.some((one) => mayHaveRun(one) && !isRejected(one)) && !hasEnded) most++
    if (path !== '/delivery/commands' || body.has_more) continue
    const row = listed.get(key)
    if (admitted && !row) violate('list_incomplete', `/delivery/commands has not ${key}`)
    if (row && hasEnded && row.terminal === null) violate('alive_after_end', key)
    if (row?.terminal?.state === 'expired' && Date.parse(row.terminal.at) < Date.parse(row.admission.deadline_at))
      violate('expired_early', key)
  }
  if (path !== '/delivery/summary') return
  most += by('invoke').filter(({ call }) => call < to).length
  const { tracked_commands: tracked, due_commands: due } = body
  if (tracked < least || tracked > most) violate('tracked_wrong', `${tracked}, not from ${least} to ${most}`)
  if (due > tracked) violate('due_too_many', JSON.stringify(body))
  judgeEnded(body, [...commands.values()], from, violate)
}

function judgeStatus({
  path,
  query,
  body,
  status,
  from,
  to,
  history,
  operations,
  violate,
}: Asked & { query: string }): void {
  const asked = new URLSearchParams(query)
  const is = (one: Any) => ['user_id', 'client_id', 'command_id'].every((name) => one[name] === asked.get(name))
  const about = `${path}?${query}`
  const own = operations.filter(is)
  const dispatches = own.filter(({ what }) => what === 'dispatch')
  if (status === 404) {
    if (dispatches.some((one) => isAdmitted(one) && one.ret < from))
      violate('admitted_and_gone', `${about} while it lives`)
    return
  }
  const handovers = history.handovers.filter(is)
  const { attempts, acknowledgement, terminal, admission } = body
  if (attempts.confirmed > handovers.filter(({ at }) => at <= to).length)
    violate('confirmed_too_many', `${about} ${JSON.stringify(attempts)}`)
  const known = new Set(handovers.filter(({ at }) => at < from).map(({ attempt }) => attempt)).size
  if (known > attempts.count) violate('attempts_uncounted', `${about} ${attempts.count} < ${known}`)
  const words = own.filter(({ what }) => what === 'acknowledge' || what === 'settle')
  if (acknowledgement.state === 'acknowledged') {
    const isSaid = words.some(
      (one) => mayHaveRun(one) && one.instance_id === acknowledgement.instance_id && one.call <= to,
    )
    if (!isSaid) violate('acknowledgement_from_nowhere', about)
  }
  if (terminal === null && own.some((one) => isEnding(one) && isYes(one) && one.ret < from))
    violate('alive_after_end', about)
  const isAcknowledged = words.some(
    (one) => one.what === 'acknowledge' && one.reason !== 'busy' && isYes(one) && one.ret < from,
  )
  if (acknowledgement.state === 'none' && isAcknowledged) violate('acknowledgement_lost', about)
  if (admission.state === 'admitted' && !dispatches.some(mayHaveRun)) violate('there_though_refused', about)
}

function judgeConnections({ path, query, body, from, to, history, by, violate }: Asked & { query: string }): void {
  const { heartbeatTimeoutMs } = history.config
  const connects = by('connect').filter(({ call }) => call < to)
  const beats = by('heartbeat')
  let least = 0
  let most = 0
  for (const one of connects) {
    const isSame = (other: Operation) => other.user_id === one.user_id && other.client_id === one.client_id
    const others = connects.filter((other) => other !== one && isSame(other) && mayHaveRun(other))
    const isOwn = ({ connection_id }: Operation) => connection_id !== undefined && connection_id === one.connection_id
    const left = by('disconnect').filter(isOwn)
    const own = beats.filter(isOwn)
    const surely = Math.max(one.call, ...own.filter(isYes).map(({ call }) => call))
    const atMost = Math.max(one.ret, ...own.map(({ ret }) => ret))
    const isSurelyThere =
      one.state === 'ok' &&
      one.ret < from &&
      !left.some(({ call }) => call < to) &&
      !others.some((other) => other.ret > one.call) &&
      surely > to - heartbeatTimeoutMs + 300
    if (isSurelyThere) least++
    if (!mayHaveRun(one)) continue
    const isGone =
      left.some((leave) => isYes(leave) && leave.ret < from) ||
      others.some((other) => other.state === 'ok' && other.call > one.ret && other.ret < from) ||
      atMost < from - heartbeatTimeoutMs - 300
    if (!isGone) most++
  }
  const isCount = path === '/connections/count'
  // `null` if no connection was ever written: then none is expected.
  const total = isCount
    ? (body.by_status?.connected ?? 0)
    : body.items.filter(({ status }: Any) => status === 'connected').length
  const isWhole = isCount ? body.completeness.complete : !body.has_more
  if (isWhole && total < least) violate('connected_too_few', `${path}?${query} ${total} < ${least}`)
  if (total > most) violate('connected_too_many', `${path}?${query} ${total} > ${most}`)
}

function judgeMessages({ query, body, from, operations, violate }: Asked & { query: string }): void {
  const stream = new URLSearchParams(query).get('stream')
  const ids: string[] = body.items.map(({ message_id }: Any) => message_id)
  if (new Set(ids).size < ids.length) violate('retained_twice', `${stream}`)
  for (const { what, state, ret, message_id, stream: own, topic } of operations)
    if ((what === 'ingest' || what === 'event') && (own ?? topic) === stream && state === 'ok' && ret < from)
      if (!ids.includes(message_id)) violate('accepted_and_gone', `${message_id} at ${from.toFixed(0)}`)
}

function judgeLists({ path, body, from, by, violate }: Asked): void {
  if (path === '/users' && body.completeness.complete && !body.has_more)
    for (const { state, ret, user_id } of by('connect'))
      if (state === 'ok' && ret < from && !body.items.some((item: Any) => item.user_id === user_id))
        violate('users_incomplete', `${user_id}`)
  if (path === '/sessions' && !body.has_more)
    for (const { state, ret, session_id } of by('session.open'))
      if (state === 'ok' && ret < from && !body.items.some((item: Any) => item.session_id === session_id))
        violate('list_incomplete', `/sessions has not ${session_id}`)
  if (path === '/delivery/tenants')
    for (const { reserved_commands, capacity, ...tenant } of body.items)
      if (capacity !== null && reserved_commands > capacity)
        violate('capacity_exceeded', JSON.stringify({ reserved_commands, capacity, ...tenant }))
}

const JUDGES: Record<string, (asked: Asked & { query: string }) => void> = {
  '/rpc/summary': judgeCalls,
  '/rpc/pending': judgeCalls,
  '/delivery/summary': judgeCommands,
  '/delivery/commands': judgeCommands,
  '/delivery/status': judgeStatus,
  '/connections': judgeConnections,
  '/connections/count': judgeConnections,
  '/history/messages': judgeMessages,
  '/users': judgeLists,
  '/sessions': judgeLists,
  '/delivery/tenants': judgeLists,
}

export function judgeAnswer(answer: Answer, history: History, violate: Violate): void {
  const [path = '', query = ''] = answer.path.split('?')
  const { status, body } = answer
  if (status === 500) {
    violate('diagnostics_500', `${answer.path} ${JSON.stringify(body)}`)
    return
  }
  const isExcused = history.faults.some(({ fault }) => EXCUSES.includes(fault))
  const mayBeMissing = path === '/delivery/status' || path.includes('/users/')
  if (status !== 200 && !(status === 404 && mayBeMissing)) {
    // An answer of many reads may come too late where packets take long, and says so.
    if (!isExcused && status !== 504)
      violate('diagnostics_unavailable', `${answer.path} ${status} ${JSON.stringify(body)}`)
    return
  }
  if (path === '/delivery/summary') judgeSums(body, violate)
  if (history.losses.length > 0 || history.hasClockSteps || history.wasFull) return
  const { operations } = history
  const by = (what: string) => operations.filter((one) => one.what === what)
  JUDGES[path]?.({ ...answer, path, query, history, violate, operations, by })
  if (body.completeness?.complete === true && body.completeness.truncated_sources?.length > 0)
    violate('complete_and_truncated', answer.path)
}
