/** What must be so in every history, from the documents alone. */
import type { History, Violate } from '../record.js'
import { judgeActions } from './actions.js'
import { judgeCalls, judgeClaims, judgeKeys } from './calls.js'
import { judgeDelivery } from './delivery.js'
import { judgeEvents } from './events.js'
import { endOf, Facts, FENCE_MS, isStale, isYes, mayRun, round } from './facts.js'
import { judgeMessages } from './messages.js'
import { judgeProgress } from './progress.js'
import { judgeSessions } from './sessions.js'

const ACCEPTED = new Set(['event', 'ingest', 'attach'])
const COUNTED = new Set(['acknowledge', 'settle'])

/** Calls of a superseded instance have no effect, and no other instance is refused as superseded. */
function judgeInstances(facts: Facts): void {
  const { history, violate } = facts
  for (const one of history.operations) {
    if (!one.instance_id || !facts.isCertain(one)) continue
    const counted = ACCEPTED.has(one.what) ? one.state === 'ok' : COUNTED.has(one.what) && isYes(one)
    if (counted && isStale(facts.connectsOf(one), one.instance_id, one.call))
      violate(
        one.what === 'reply' ? 'stale_reply' : 'stale_word',
        `${one.what} of ${one.instance_id} on ${one.node} at ${round(one.call)}`,
      )
    if (one.code !== 'stale_instance' || facts.isLossy || facts.hasClockSteps) continue
    const connects = facts.connectsOf(one)
    const own = connects.filter((c) => c.instance_id === one.instance_id && c.state === 'ok' && c.ret < one.call).at(-1)
    if (!own) continue
    const wasSuperseded = connects.some(
      (c) => c.instance_id !== one.instance_id && mayRun(c) && endOf(c) > own.call && c.call < one.ret,
    )
    // Of whichever of its connections: the last one may have begun while the operation was under way.
    const hasLeft = facts.all('disconnect').some((d) => d.instance_id === one.instance_id && d.call < one.ret)
    const beats = facts
      .all('heartbeat')
      .filter((b) => b.connection_id === own.connection_id && isYes(b) && b.ret < one.ret)
    const lastBeat = Math.max(own.call, ...beats.map((b) => b.call))
    if (!wasSuperseded && !hasLeft && one.ret - lastBeat < history.config.heartbeatTimeoutMs - 200)
      violate('stale_unfounded', `${one.what} of ${one.instance_id} at ${round(one.call)}`)
  }
}

const SLOW = new Set(['invoke', 'reply', 'event'])

function judgeAnswers(facts: Facts): void {
  const { history, violate } = facts
  for (const { node, message, stack } of history.reported) violate('reported', `${node}: ${message} ${stack ?? ''}`)
  if (!history.hasFinished) {
    const open = history.operations.filter(({ state }) => state === 'open')
    const names = open.slice(0, 4).map(({ node, what, call }) => `${node} ${what} of ${round(call)}`)
    violate('hung', `an actor has not ended after healing: ${names.join(', ')}`)
  }
  for (const one of history.operations) {
    const { what, node, state, code, call, ret } = one
    if (state === 'open' && history.quietAt - call > 12_000 && what !== 'invoke')
      violate('unanswered', `${what} on ${node} of ${round(call)}`)
    if (code !== 'unavailable' || SLOW.has(what)) continue
    if (history.config.store === 'memory') violate('memory_unavailable', what)
    // At most four commands one after the other, of 2 s each.
    if (ret - call > 8_500 && !facts.wasPaused(node, call, ret))
      violate('late_refusal', `${what} on ${node} was refused after ${round(ret - call)} ms`)
  }
}

/** Judges a whole history. */
export function judge(history: History, violate: Violate): void {
  if (!history.reading) return
  for (const one of history.operations) {
    if (one.state !== 'died') continue
    const life = history.lives.find(({ node, number }) => node === one.node && number === one.life)
    one.diedAt = (life?.to ?? Number.POSITIVE_INFINITY) + FENCE_MS
  }
  const facts = new Facts(history, violate)
  judgeAnswers(facts)
  judgeInstances(facts)
  judgeDelivery(facts, history.reading)
  judgeProgress(facts)
  judgeMessages(facts, history.reading)
  judgeEvents(facts, history.reading)
  judgeSessions(facts)
  judgeCalls(facts)
  judgeClaims(facts)
  judgeKeys(facts)
  judgeActions(facts)
}

/** Counters and bounds of a deployment, which stay as long as it does. */
const KEPT = [
  /^(shards|renewed)$/,
  /:seq$/,
  /^calls:(counts|seq)$/,
  /^messages:/,
  /^streams:/,
  /^emptied/,
  /^history:/,
  /^spilled:/,
  /^delivery:(leases|order|scope-seq|told|inbox|counts|kept-at|first-chunk|first-open)/,
  /^nodes:/,
  /^dedup:(held|counts)$/,
]

/** Judges what is left in the store when everything should be forgotten. */
export function judgeLeft({ left }: History, violate: Violate): void {
  const names = (left ?? []).map((line) => line.replace(/^relayscope:\{[^}]*\}:/, ''))
  const rest = names.filter((line) => !KEPT.some((kept) => kept.test(line.replace(/ \(.*\)$/, ''))))
  if (rest.length > 0) violate('left_in_store', `${rest.length} keys: ${rest.slice(0, 12).join(', ')}`)
}
