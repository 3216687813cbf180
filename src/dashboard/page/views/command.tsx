/** One command: its state, what happened over time, what that proves, and related records. */

import type { JSX } from 'preact'
import type { ConnectionAnswer } from '../../../internal/contract/connections.js'
import type { DeliveryCommandAnswer, DeliveryStatusAnswer } from '../../../internal/contract/delivery.js'
import { partsOf } from '../../../internal/contract/evidence.js'
import { type Address, decoded, hrefOf, pathWithQuery } from '../address.js'
import { EventChart } from '../charts/event-chart.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Copy } from '../parts/copy.js'
import { Field } from '../parts/field.js'
import { valuesIn } from '../parts/filters.js'
import { Excerpt, type Listed } from '../parts/list.js'
import { Text } from '../parts/text.js'
import { Term, Time, TONES } from '../parts/value.js'
import { clock, durationText, spacedName } from '../words.js'
import { MAILBOXES } from './commands.js'
import { CONNECTIONS } from './connections.js'
import { type Fact, verdictOf } from './evidence.js'
import { useWhy, Why, WhyVerdict } from './why.js'

interface FactsProps {
  title: string
  glyph: string
  facts: readonly Fact[]
  /** When the command was admitted. */
  admitted: string | null | undefined
}

/** When a fact was recorded, counted from the admission. */
const Offset = ({ at, admitted }: { at: string | null | undefined; admitted: string | null | undefined }) =>
  at != null &&
  at !== admitted &&
  (admitted == null ? (
    <Time at={at} />
  ) : (
    <time class="dim" title={at}>
      +{durationText(Date.parse(at) - Date.parse(admitted))}
    </time>
  ))

const Facts = ({ title, glyph, facts, admitted }: FactsProps): JSX.Element => (
  <div class="facts">
    <h2>{title}</h2>
    <ul class="plain">
      {facts.map(({ text, at, field }) => (
        <li key={text} title={`from ${field}`}>
          <span aria-hidden="true">{glyph}</span> {text} <Offset at={at} admitted={admitted} />
        </li>
      ))}
      {facts.length === 0 && <li class="dim">–</li>}
    </ul>
  </div>
)

const JOB_URL = document.documentElement.dataset.job

/** The page of a BullMQ job elsewhere; nothing for another command, or without the option. */
function JobLink({ command_id }: DeliveryStatusAnswer): JSX.Element | null {
  const parts = command_id.split(':')
  if (!JOB_URL || parts.length !== 2) return null
  // Both parts are percent-encoded in the id, and not always in the way of a URL.
  const [queue, job_id] = parts.map((part) => encodeURIComponent(decoded(part))) as [string, string]
  return (
    <p>
      <a href={JOB_URL.replaceAll('{queue}', queue).replaceAll('{job_id}', job_id)} target="_blank" rel="noreferrer">
        Open the job
      </a>
    </p>
  )
}

/** The client, the scope, the admission and the deadline of a command. */
function Whose({ status }: { status: DeliveryStatusAnswer }): JSX.Element {
  const { terminal, user_id } = status
  const { admission } = partsOf(status)
  return (
    <p>
      for <Field name="client_id" record={status} /> of <Field name="user_id" record={status} />
      {admission.scope_id !== null && admission.scope_id !== user_id && (
        <>
          {' · scope '}
          <Field name="scope_id" record={admission} />
        </>
      )}{' '}
      · {admission.state ?? 'admission unknown'} <Time at={admission.at} age="full" />
      {terminal && (
        <>
          {' · ended '}
          {terminal.at && admission.at ? (
            <>after {durationText(Date.parse(terminal.at) - Date.parse(admission.at))}</>
          ) : (
            <Time at={terminal.at} />
          )}
        </>
      )}
      {!terminal && admission.deadline_at && (
        <>
          {' · deadline '}
          <Time at={admission.deadline_at} age="full" /> {status.overdue && <Term value="overdue" />}
        </>
      )}
      {status.trace_id && ' · trace '}
      <Field name="trace_id" record={status} />
    </p>
  )
}

interface NeighboursProps {
  title: string
  status: DeliveryStatusAnswer
  query: Record<string, string>
}

/** Neighbours that are listed, and those that are counted. */
const [LISTED, COUNTED] = [9, 100]
const HOUR_MS = 3_600_000

/** How many of the commands admitted in the last hour stand where, the most common first. */
function tallyOf({ items, has_more }: Listed<DeliveryCommandAnswer>): string {
  const recent = items.filter(({ admission }) => admission?.at && clock() - Date.parse(admission.at) < HOUR_MS)
  const tally = valuesIn(recent, 'state').map(([state, count]) => `${count} ${spacedName(state)}`)
  const isCut = has_more && recent.length === items.length
  return `${isCut ? `newest ${COUNTED} of the last hour` : 'last hour'}: ${tally.join(', ') || 'none'}`
}

/** The newest commands that `query` lets through, the newest first, and how those of the last hour stand. */
function Neighbours({ title, status, query }: NeighboursProps): JSX.Element {
  const path = pathWithQuery('/delivery/commands', { ...query, limit: String(COUNTED) })
  const answer = useAnswer<Listed<DeliveryCommandAnswer>>(path)
  return (
    <Card title={title} href={hrefOf('/delivery/commands', query)} answer={answer}>
      {(page) => (
        <>
          <p>{tallyOf(page)}</p>
          <ul class="inline neighbours">
            {page.items.slice(0, LISTED).map((command) => (
              <li key={command.command_id} aria-current={command.command_id === status.command_id ? 'true' : undefined}>
                <span class={TONES.get(command.state)}>{spacedName(command.state)}</span>{' '}
                <Field name="command_id" record={command} />{' '}
                <span class="dim">
                  <Time at={command.admission?.at ?? null} />
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  )
}

export function CommandPage({ address: { path, query } }: { address: Address }): JSX.Element {
  const answer = useAnswer<DeliveryStatusAnswer>(pathWithQuery(path, query))
  const { value } = answer
  const client = value?.user_id && value.client_id ? { user_id: value.user_id, client_id: value.client_id } : null
  const connections = useAnswer<Listed<ConnectionAnswer>>(
    client && pathWithQuery('/connections', { ...client, limit: '20' }),
  )
  // Its status does not name its action.
  const own = useAnswer<Listed<DeliveryCommandAnswer>>(
    client && pathWithQuery('/delivery/commands', { ...client, command_id: query.get('command_id'), limit: '1' }),
  )
  const action = own.value?.items[0]?.action
  const asked = useWhy(Object.fromEntries(query))
  const why = client && asked
  return (
    <>
      <Card
        isMain
        title="Command"
        answer={answer}
        gone="It is kept for an hour by default after its end, or was never admitted, or its ids are spelled otherwise."
      >
        {(status) => {
          const { state, reason, unknown, proven, notProven, unknowns } = verdictOf(status)
          const admitted = partsOf(status).admission.at
          return (
            <>
              <p class="verdict">
                <strong>
                  <Term value={state} />
                </strong>{' '}
                {reason !== null && <Term value={reason} />} <span class="dim">{unknown}</span>
              </p>
              {why?.value && !why.isOld && <WhyVerdict {...why.value} isOver={status.terminal !== null} />}
              {/* The verdict has its place before it comes; a result has none. */}
              {why && !why.value && !why.problem && state !== 'resulted' && <p class="first-link loading">why</p>}
              <p>
                <code>
                  <Text value={status.command_id} />
                </code>{' '}
                <Copy name="id" text={() => status.command_id} />
              </p>
              <Whose status={status} />
              <JobLink {...status} />
              <EventChart status={status} connections={connections.isOld ? null : (connections.value?.items ?? null)} />
              <div class="side">
                <Facts title="Proven" glyph="●" facts={proven} admitted={admitted} />
                <Facts title="Not proven" glyph="–" facts={notProven} admitted={admitted} />
                <Facts title="Unknown" glyph="?" facts={unknowns} admitted={admitted} />
              </div>
            </>
          )
        }}
      </Card>
      {why && <Why answer={why} />}
      {value && client && <Neighbours title="Same client" status={value} query={client} />}
      {value && action && <Neighbours title="Same action" status={value} query={{ action }} />}
      {client && <Excerpt view={MAILBOXES} query={client} />}
      {client && <Excerpt view={CONNECTIONS} query={client} />}
    </>
  )
}
