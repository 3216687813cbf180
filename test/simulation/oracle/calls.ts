/** Calls, claims of message ids and idempotency keys: each has one winner. */
import type { Operation } from '../record.js'
import { endOf, type Facts, groupBy, isYes, mayRun, round } from './facts.js'

function judgeCall(facts: Facts, call: Operation, settles: Operation[]): void {
  const { history, violate, hasClockSteps } = facts
  const { correlation_id, node, end, timeoutMs, resolvedAt = Number.NaN } = call
  const about = `call ${correlation_id} of ${node} at ${round(call.call)}`
  const won = settles.filter(isYes)
  if (won.length > 1) violate('settled_twice', about)
  if (won.some(({ isForeign }) => isForeign)) violate('foreign_counted', about)
  const possible = settles.filter(mayRun)
  if (end === 'result' && !possible.some(({ isResult, token }) => isResult && token === call.result))
    violate('result_from_nowhere', about)
  if (end === 'error' && !possible.some(({ isResult, token }) => !isResult && token === call.rejected?.token))
    violate('result_from_nowhere', `${about}: ${call.rejected}`)
  if (end === 'cancelled' && call.abortedAt === undefined) violate('cancelled_by_nobody', about)
  if (end === 'timeout' && resolvedAt < call.call + timeoutMs - 2 && !hasClockSteps) violate('timeout_early', about)
  const lives = history.lives.some(
    (life) => life.node === node && life.number === call.life && life.to === Number.POSITIVE_INFINITY,
  )
  if (!lives) return
  if (end === undefined) violate('call_never_ended', about)
  const [winner] = won
  if (!winner) return
  const isTroubled =
    (end === 'timeout' && resolvedAt - call.call - timeoutMs > 1_900) ||
    history.faults.some(
      ({ fault, node: where, at }) =>
        at > winner.call - 8_000 && at < resolvedAt && (where === node || fault.startsWith('store')),
    )
  if (!isTroubled && end !== (winner.isResult ? 'result' : 'error'))
    violate('reply_lost', `${about}: settled at ${round(winner.ret)}, ended as ${end} at ${round(resolvedAt)}`)
}

export function judgeCalls(facts: Facts): void {
  const settles = groupBy(facts.all('rpc.settle'), ({ correlation_id }) => correlation_id)
  for (const call of facts.all('rpc.open'))
    if (call.state === 'ok' && facts.isCertain(call)) judgeCall(facts, call, settles.get(call.correlation_id) ?? [])
}

export function judgeClaims(facts: Facts): void {
  if (facts.hasClockSteps) return
  const { violate, history } = facts
  const { dedupTtlMs } = history.config
  const messages = groupBy(facts.all('claim', 'release'), ({ user_id, message_id }) => `${user_id} ${message_id}`)
  for (const [key, own] of facts.certain(messages)) {
    const claims = own.filter(({ what }) => what === 'claim')
    const releases = own.filter((one) => one.what === 'release' && mayRun(one))
    const won = claims.filter(isYes)
    for (const a of won)
      for (const b of won) {
        const isReleased = releases.some((release) => release.call < b.ret && endOf(release) > a.call)
        if (a.i < b.i && b.ret - a.call < dedupTtlMs - 50 && !isReleased)
          violate('claimed_twice', `${key} at ${round(a.call)} and ${round(b.call)}`)
      }
    for (const b of claims) {
      if (b.state !== 'ok' || b.value !== false) continue
      const isHeld = claims.some(
        (a) => a !== b && mayRun(a) && a.call < b.ret && endOf(a) + dedupTtlMs + 2_500 > b.call,
      )
      if (!isHeld) violate('claim_denied', `${key} at ${round(b.call)}`)
    }
  }
}

function judgeKey(facts: Facts, key: string, own: Operation[]): void {
  const { violate, hasClockSteps } = facts
  const all = own.filter(({ what }) => what === 'key.claim')
  const claims = all.filter(({ state }) => state === 'ok')
  const won = claims.filter(({ value }) => value.state === 'claimed')
  const releases = own.filter((one) => one.what === 'key.release' && mayRun(one))
  const keeps = own.filter((one) => one.what === 'key.keep' && mayRun(one))
  for (const a of won)
    for (const b of won)
      if (a.i < b.i && !releases.some(({ attempt, call }) => attempt === a.attempt && call < b.ret))
        violate('key_claimed_twice', `${key} at ${round(a.call)} and ${round(b.call)}`)
  for (const one of claims) {
    const { state, answer } = one.value
    const others = all.filter((other) => other !== one && mayRun(other) && other.call < one.ret)
    if (state === 'reused' && !others.some(({ fingerprint }) => fingerprint !== one.fingerprint))
      violate('key_reused_by_nobody', key)
    if (state === 'running' && others.length === 0) violate('key_running_by_nobody', key)
    if (state === 'ended' && answer && !keeps.some(({ attempt, call }) => attempt === answer.result && call < one.ret))
      violate('answer_from_nowhere', key)
    if (hasClockSteps) continue
    const kept = keeps.find((keep) => keep.state === 'ok' && keep.ret < one.call)
    const first = kept && won.find(({ attempt }) => attempt === kept.attempt)
    const isKept = kept && first && kept.ret - first.call < 2_900 && one.fingerprint === kept.fingerprint
    if (isKept && !(state === 'ended' && answer?.result === kept.attempt))
      violate('answer_lost', `${key}: kept at ${round(kept.ret)}, then ${state} at ${round(one.call)}`)
  }
}

export function judgeKeys(facts: Facts): void {
  const keys = groupBy(facts.all('key.claim', 'key.release', 'key.keep'), ({ user_id, key }) => `${user_id} ${key}`)
  for (const [key, own] of facts.certain(keys)) judgeKey(facts, key, own)
}
