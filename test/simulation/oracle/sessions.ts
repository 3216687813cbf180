/** Sessions: in the state that the operations leave it, and closed for good. */
import type { Operation } from '../record.js'
import { endOf, type Facts, groupBy, mayRun } from './facts.js'

const STATES: Record<string, string> = {
  'session.open': 'pending',
  'session.activate': 'active',
  'session.suspend': 'suspended',
  'session.close': 'closed',
}

function judgeSession({ violate }: Facts, id: string, own: Operation[]): void {
  const moves = own.filter((one) => STATES[one.what] && mayRun(one))
  const hasTtl = own.some(({ what, ttl_ms }) => what === 'session.open' && ttl_ms)
  for (const get of own.filter(({ what, state }) => what === 'session.get' && state === 'ok')) {
    if (get.value === null) {
      violate('session_gone', id)
      continue
    }
    const { state } = get.value
    const done = moves.filter((one) => one.state === 'ok' && one.ret < get.call).sort((a, b) => a.ret - b.ret)
    const last = done.at(-1)
    if (!last) continue
    if (done.some(({ what }) => what === 'session.close')) {
      if (state !== 'closed') violate('session_alive_after_close', `${id} ${state}`)
      continue
    }
    const possible = moves
      .filter((one) => one.call < get.ret && endOf(one) >= last.call)
      .map(({ what }) => STATES[what])
    if (!possible.includes(state) && !(state === 'expired' && hasTtl))
      violate('session_state', `${id} is ${state}; possible: ${possible.join(', ')}`)
  }
  const close = moves.find(({ what, state }) => what === 'session.close' && state === 'ok')
  if (!close) return
  for (const one of own)
    if (one !== close && STATES[one.what] && one.state === 'ok' && one.call > close.ret)
      violate('session_moved_after_close', `${id} ${one.what}`)
}

export function judgeSessions(facts: Facts): void {
  if (facts.isLossy || facts.hasClockSteps) return
  const moves = facts.history.operations.filter(({ what, session_id }) => session_id && what.startsWith('session.'))
  for (const [id, own] of groupBy(moves, ({ session_id }) => session_id)) judgeSession(facts, id, own)
}
