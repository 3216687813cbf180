/** One user on one axis of time: each client with its presence, and the commands, calls and contexts that it had. */
import type { JSX } from 'preact'
import type { ConnectionAnswer } from '../../../internal/contract/connections.js'
import type { ContextAnswer } from '../../../internal/contract/contexts.js'
import type { DeliveryCommandAnswer } from '../../../internal/contract/delivery.js'
import type { EndedCallAnswer, PendingCallAnswer } from '../../../internal/contract/rpc.js'
import { useTick } from '../hooks.js'
import { hrefOfRecord } from '../parts/field.js'
import { plainText, Text } from '../parts/text.js'
import { TONES } from '../parts/value.js'
import { clock, countOf, spacedName, timeOf } from '../words.js'
import { type Axis, axisBetween, Span, Ticks, timeIn } from './axis.js'
import { OPEN_STATES } from './command-chart.js'

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
  glyph: string | undefined
  tone: string | undefined
}

interface Client {
  name: string
  bars: Bar[]
  latest: number
}

const GLYPHS: Readonly<Record<string, string>> = {
  resulted: '✓',
  failed: '✕',
  expired: '✕',
  cancelled: '–',
  rejected: '✕',
}

const NOW = Infinity

/** Every record of the last hour as a bar, by client, the most recent first, and how many have unknown times. */
function clientsOf({ connections, commands, calls, contexts }: Records): { clients: Client[]; untimed: number } {
  const now = clock()
  const clients = new Map<string, Client>()
  let untimed = 0
  /** `end` is `NOW` for a record that has not ended. */
  function add(
    kind: string,
    name: string,
    record: object,
    start: string | null | undefined,
    end: unknown,
    state: string,
  ) {
    const own = record as Readonly<Record<string, unknown>>
    const [from, to] = [timeIn(start), end === NOW ? now : timeIn(end as string | null)]
    if (from === null || to === null) untimed++
    else if (to >= now - MOST_MS) {
      const id = String(own[name])
      const key = String(own.client_id ?? 'unknown client')
      const client = clients.get(key) ?? { name: key, bars: [], latest: 0 }
      clients.set(key, client)
      const caption = plainText(`${name.replace('_id', '').replace('correlation', 'call')} ${id}, ${spacedName(state)}`)
      const isCommand = kind === 'run'
      client.bars.push({
        ...{ id, kind, from, to, caption, href: hrefOfRecord(name, own) },
        glyph: isCommand ? (GLYPHS[state] ?? '○') : undefined,
        tone: isCommand ? TONES.get(state) : undefined,
      })
      client.latest = Math.max(client.latest, to)
    }
  }
  for (const each of connections) {
    const { status, connected_at, disconnected_at, ended_reason } = each
    add(
      'there',
      'connection_id',
      each,
      connected_at,
      status === 'connected' ? NOW : disconnected_at,
      ended_reason ?? status,
    )
  }
  for (const each of contexts)
    add(
      'context',
      'context_id',
      each,
      each.created_at,
      /active|idle/.test(each.status) ? NOW : each.updated_at,
      each.status,
    )
  for (const each of calls) {
    const isEnded = 'outcome' in each
    add(
      'call',
      'correlation_id',
      each,
      each.started_at,
      isEnded ? each.ended_at : NOW,
      isEnded ? `${each.outcome}` : 'pending',
    )
  }
  for (const each of commands) {
    const isOpen = OPEN_STATES.some((open) => open === each.state)
    add('run', 'command_id', each, each.admission?.at, isOpen ? NOW : each.terminal?.at, each.state)
  }
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
    <section class="event-chart user-axis" aria-label="The last hour by client">
      <Ticks axis={axis} caption={(ms) => timeOf(axis.from + ms)} />
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
