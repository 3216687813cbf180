/** One call on one axis of time: sent, answered or ended otherwise, and whether its client was connected. */
import type { JSX } from 'preact'
import type { ConnectionAnswer } from '../../../internal/contract/connections.js'
import type { EndedCallAnswer, PendingCallAnswer } from '../../../internal/contract/rpc.js'
import { useTick } from '../hooks.js'
import { clock, durationText, spacedName, timeOf } from '../words.js'
import { axisBetween, Lane, Mark, Span, Ticks, timeIn } from './axis.js'
import { ClientLane } from './event-chart.js'

type Call = PendingCallAnswer | EndedCallAnswer

interface End {
  at: number | null
  caption: string
  glyph: string
  tone: string
}

/** How it ended, in one word; `null` for one that is open. */
function endOf(call: Call): End | null {
  if (!('ended_at' in call)) return null
  const { outcome, connection_reason } = call
  const at = timeIn(call.ended_at)
  if (outcome === 'succeeded') return { at, caption: 'answered', glyph: '✓', tone: 'ok' }
  if (outcome === 'failed') return { at, caption: 'answered with an error', glyph: '✕', tone: 'bad' }
  const caption =
    outcome === 'unanswered' && connection_reason
      ? `connection ended: ${spacedName(connection_reason)}`
      : spacedName(outcome ?? 'ended')
  return { at, caption, glyph: '✕', tone: 'bad' }
}

interface CallChartProps {
  call: Call
  /** Connections of its client; `null` if unknown. */
  connections: readonly ConnectionAnswer[] | null
}

export function CallChart({ call, connections }: CallChartProps): JSX.Element {
  const end = endOf(call)
  useTick(end ? Infinity : 1_000)
  const from = timeIn(call.started_at)
  const to = end ? end.at : clock()
  if (from === null || to === null) return <p class="dim">When it was sent or ended is unknown.</p>
  const deadline = 'deadline_at' in call ? timeIn(call.deadline_at) : null
  const axis = axisBetween(from, Math.max(from + 1, to, deadline ?? 0))
  return (
    <section class="event-chart" aria-label="What happened, by time">
      <Ticks axis={axis} caption={(ms) => (ms === 0 ? timeOf(from) : `+${durationText(ms)}`)} />
      <Lane name="call">
        <Span axis={axis} from={from} to={to} kind="run" caption="open" />
        <Mark axis={axis} time={from} glyph="●" caption="sent" />
        {end && <Mark axis={axis} time={to} glyph={end.glyph} caption={end.caption} tone={end.tone} />}
        {deadline !== null && <Mark axis={axis} time={deadline} glyph="▼" caption="deadline" tone="dim" />}
      </Lane>
      <ClientLane connections={connections} axis={axis} />
    </section>
  )
}
