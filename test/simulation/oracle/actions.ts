/** Actions of viewers: run at most once for a key, and never where it was said that they were not. */
import type { Operation } from '../record.js'
import { type Facts, groupBy } from './facts.js'

/** Whether an answer says that the action did not run. */
function saysNotRun({ state, value }: Operation): boolean {
  if (state !== 'ok' || value.status === 200 || value.status === 504) return false
  const { code, outcome } = value.body
  return code !== 'idempotency_in_progress' && outcome !== 'unknown' && code !== 'unavailable'
}

export function judgeActions(facts: Facts): void {
  const { violate, history, isLossy } = facts
  const invocations = groupBy(facts.all('invoke'), ({ key, n, session_id }) => (key ? `${session_id} ${key}` : n))
  for (const [name, own] of facts.certain(invocations)) {
    const numbers = new Set(own.map(({ n }) => n))
    const runs = history.runs.filter(({ key }) => numbers.has(key))
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
