/** Actions of viewers: run at most once for a key, and never where it was said that they were not. */
import type { Operation } from '../record.js'
import { type Facts, groupBy, round } from './facts.js'

/** Whether an answer says that the action did not run. */
function saysNotRun({ state, value }: Operation): boolean {
  if (state !== 'ok' || value.status === 200 || value.status === 504) return false
  const { code, outcome } = value.body
  return code !== 'idempotency_in_progress' && outcome !== 'unknown' && code !== 'unavailable'
}

/** A key is held only while a call with it is under way: one that was not sent frees it. */
function judgeHeldKey(facts: Facts, name: string, own: readonly Operation[]): void {
  if (facts.history.config.store !== 'memory' && !own.every((one) => facts.isCalm(one))) return
  for (const one of own) {
    if (one.value?.body.code !== 'idempotency_in_progress') continue
    const others = own.filter((other) => other !== one && other.call < one.ret)
    if (others.every(({ ret }) => ret < one.call)) facts.violate('key_held', `${name} at ${round(one.call)}`)
  }
}

/** A viewer has as many calls under way at a node as it may have, not one more and not one less. */
function judgeShares(facts: Facts): void {
  const { violate, history } = facts
  const { callsPerViewer } = history.config
  const placeOf = ({ node, life, owner }: Operation) => `${owner} on ${node} in life ${life}`
  const byNumber = groupBy(facts.all('invoke'), ({ n }) => n)
  const firstRuns = new Map(history.runs.map(({ key, at }) => [key, at]).reverse() as [string, number][])
  for (const [place, own] of groupBy(facts.all('invoke'), placeOf)) {
    for (const one of own) {
      if (one.value?.body.code !== 'share_exceeded') continue
      const others = own.filter((other) => other !== one && other.call < one.ret && other.ret > one.call)
      if (others.length < callsPerViewer) violate('share_refused', `${one.n} of ${place}: ${others.length} under way`)
    }
    // Of calls with one number only one runs, whichever it is.
    const numbers = [...byNumber].filter(
      ([n, calls]) => firstRuns.has(n) && calls.every((one) => placeOf(one) === place),
    )
    for (const [n] of numbers) {
      const at = firstRuns.get(n) as number
      const running = numbers.filter(
        ([other, calls]) =>
          (firstRuns.get(other) as number) <= at && calls.every(({ call, ret }) => call > at || ret > at + 1),
      )
      if (running.length <= callsPerViewer) continue
      violate('share_exceeded', `${running.length} calls of ${place} at ${round(at)}`)
      break
    }
  }
}

export function judgeActions(facts: Facts): void {
  const { violate, history, isLossy } = facts
  judgeShares(facts)
  const invocations = groupBy(facts.all('invoke'), ({ key, n, session_id }) => (key ? `${session_id} ${key}` : n))
  for (const [name, own] of facts.certain(invocations)) {
    const numbers = new Set(own.map(({ n }) => n))
    const runs = history.runs.filter(({ key }) => numbers.has(key))
    judgeHeldKey(facts, name, own)
    if (runs.length > 1 && !isLossy) violate('ran_twice', `${name} ran ${runs.length} times`)
    if (runs.length > 0 && own.every(saysNotRun))
      violate(
        'ran_though_denied',
        `${name}: ${own.map(({ value }) => `${value.status} ${value.body.code}`).join(', ')}`,
      )
    for (const { state, value } of own) {
      if (state !== 'ok') continue
      const { status, body } = value
      if (status === 500) violate('relay_500', `invoke: ${JSON.stringify(body)}`)
      if (status === 200 && body.status === 'succeeded' && !runs.some(({ key }) => key === body.result?.n))
        violate('answer_of_another', `${name}: ${JSON.stringify(body)}`)
      if (body.code === 'unavailable' && body.outcome !== 'unknown' && runs.length > 0 && own.length === 1)
        violate('ran_though_denied', `${name}: unavailable, and it ran`)
    }
  }
}
