/** One user on one axis of time: each client with its presence, and the commands, calls and contexts that it had. */
import type { JSX } from 'preact'
import type { ConnectionAnswer } from '../../../contract/connections.js'
import type { ContextAnswer } from '../../../contract/contexts.js'
import type { DeliveryCommandAnswer } from '../../../contract/delivery.js'
import type { EndedCallAnswer, PendingCallAnswer } from '../../../contract/rpc.js'
import { hrefOf } from '../address.js'
import { useTick } from '../hooks.js'
import { plainText, Text } from '../parts/text.js'
import { TONES } from '../parts/value.js'
import { clock, countOf, durationText, spacedName, timeOf } from '../words.js'
import { type Axis, axisBetween, Span, Ticks, timeIn } from './axis.js'
import { OPEN_STATES } from './river.js'

/** The axis covers at most the last hour, and at least the last minute. */
const MOST_MS = 3_600_000
const LEAST_MS = 60_000
/** Clients that have a lane; the most recent ones. */
const LANES = 8

interface Records {
  connections: readonly ConnectionAnswer[]
  commands: readonly DeliveryCommandAnswer[]
  calls: readonly (PendingCallAnswer | EndedCallAnswer)[]
  contexts: readonly ContextAnswer[]
}

interface Bar {
  id: string
  kind: string
  from: number
  to: number
  caption: string
  href: string
  /** Shown at its end. */
  glyph?: string
  tone?: string
}

interface Client {
  name: string
  bars: Bar[]
  latest: number
}

const encoded = encodeURIComponent
const GLYPHS: Readonly<Record<string, string>> = {
  resulted: '✓',
  failed: '✕',
  expired: '✕',
  cancelled: '–',
  rejected: '✕',
}

/** A bar with times that may be unknown. */
type GivenBar = Omit<Bar, 'from' | 'to'> & Record<'from' | 'to', number | null>

/** Every record of the last hour as a bar, by client, the most recent first, and how many have unknown times. */
function clientsOf({ connections, commands, calls, contexts }: Records): { clients: Client[]; untimed: number } {
  const now = clock()
  const clients = new Map<string, Client>()
  let untimed = 0
  const add = (name: string | null, { from, to, ...rest }: GivenBar) => {
    if (from === null || to === null) {
      untimed++
      return
    }
    const bar: Bar = { ...rest, from, to }
    if (bar.to < now - MOST_MS) return
    const key = name ?? 'unknown client'
    const client = clients.get(key) ?? { name: key, bars: [], latest: 0 }
    clients.set(key, client)
    client.bars.push({ ...bar, caption: plainText(bar.caption) })
    client.latest = Math.max(client.latest, bar.to)
  }
  for (const { connection_id, client_id, status, connected_at, disconnected_at, ended_reason } of connections)
    add(client_id, {
      id: connection_id,
      kind: 'there',
      from: timeIn(connected_at),
      to: status === 'connected' ? now : timeIn(disconnected_at),
      caption: `connection ${connection_id}${disconnected_at ? `, ${spacedName(ended_reason ?? 'disconnected')}` : ''}`,
      href: hrefOf(`/connections/${encoded(connection_id)}`),
    })
  for (const { context_id, client_id, created_at, updated_at, status } of contexts)
    add(client_id, {
      id: context_id,
      kind: 'context',
      from: timeIn(created_at),
      to: status === 'active' || status === 'idle' ? now : timeIn(updated_at),
      caption: `context ${context_id}, ${status}`,
      href: hrefOf(`/contexts/${encoded(context_id)}`),
    })
  for (const call of calls) {
    const { correlation_id, client_id, started_at, action } = call
    const ended = 'outcome' in call ? call : null
    add(client_id, {
      id: correlation_id,
      kind: 'call',
      from: timeIn(started_at),
      to: ended ? timeIn(ended.ended_at) : now,
      caption: `call ${correlation_id} (${action ?? 'action unknown'}), ${spacedName(ended?.outcome ?? 'pending')}`,
      href: hrefOf(`/rpc/${ended ? 'ended' : 'pending'}/${encoded(correlation_id)}`),
    })
  }
  for (const { command_id, client_id, user_id, admission, terminal, state } of commands)
    add(client_id, {
      id: command_id,
      kind: 'run',
      from: timeIn(admission?.at),
      to: OPEN_STATES.some((open) => open === state) ? now : timeIn(terminal?.at),
      caption: `command ${command_id}, ${spacedName(state)}`,
      href: hrefOf('/delivery/status', {
        user_id: user_id ?? admission?.scope_id,
        client_id: client_id ?? admission?.scope_id,
        command_id,
      }),
      glyph: GLYPHS[state] ?? '○',
      tone: TONES.get(state) ?? '',
    })
  const ordered = [...clients.values()].sort((a, b) => b.latest - a.latest || (a.name < b.name ? -1 : 1))
  return { clients: ordered, untimed }
}

const Lane = ({ client, axis }: { client: Client; axis: Axis }): JSX.Element => (
  <div class="lane">
    <span class="name" title={plainText(client.name)}>
      <Text value={client.name} />
    </span>
    {/* The same records stand in the tables below, where they are counted and reached by keys. */}
    <div class="track" aria-hidden="true">
      {client.bars.map(({ id, kind, from, to, caption, href, glyph, tone }) => (
        <a key={kind + id} href={href} tabIndex={-1} title={`${caption}, ${timeOf(from)}`}>
          <Span axis={axis} from={from} to={to} kind={kind} caption={caption} />
          {glyph && (
            <span class={`end ${tone}`} style={{ left: axis.at(to) }}>
              {glyph}
            </span>
          )}
        </a>
      ))}
    </div>
  </div>
)

export function UserAxis(records: Records): JSX.Element {
  useTick(5_000)
  const { clients, untimed } = clientsOf(records)
  const now = clock()
  const earliest = Math.min(now - LEAST_MS, ...clients.flatMap(({ bars }) => bars.map(({ from }) => from)))
  const axis = axisBetween(Math.max(now - MOST_MS, earliest), now)
  if (clients.length === 0 && untimed === 0) return <p class="empty">Nothing is kept of the last hour.</p>
  return (
    <section class="score user-axis" aria-label="The last hour by client">
      <Ticks
        axis={axis}
        caption={(ms) => (ms >= axis.to - axis.from ? 'now' : `${durationText(axis.to - axis.from - ms, true)} ago`)}
      />
      {clients.slice(0, LANES).map((client) => (
        <Lane key={client.name} client={client} axis={axis} />
      ))}
      {clients.length > LANES && (
        <p class="dim">{countOf(clients.length - LANES)} more clients are in the tables below.</p>
      )}
      {untimed > 0 && <p class="dim">{countOf(untimed)} records without known times are in the tables below.</p>}
      <p class="legend">
        <span class="key there">connected</span>
        <span class="key command">command, to its end ✓ ✕ or still open ○</span>
        <span class="key call">call</span>
        <span class="key context">context</span>
      </p>
    </section>
  )
}
