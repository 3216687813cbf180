/** Commands, by where they stand. */

import type { DeliveryCommandAnswer, DeliveryMailboxAnswer } from '../../../internal/contract/delivery.js'
import { partsOf } from '../../../internal/contract/evidence.js'
import { ENDS, OPEN_STATES } from '../charts/command-chart.js'
import { Field, idOf, whoOf } from '../parts/field.js'
import { choice, flag, ORDER, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { Unknown } from '../parts/text.js'
import { Term, Time } from '../parts/value.js'
import { spacedName } from '../words.js'

/** How many there were and what became of them. Once the client has replied, only their number matters. */
function attemptsOf(command: DeliveryCommandAnswer) {
  const { attempts, acknowledgement } = partsOf(command)
  const { count, confirmed, last_outcome } = attempts
  if (count === null) return <Unknown />
  if (count === 0 || acknowledgement.state !== 'none') return count
  const last = last_outcome === 'handed_over' ? '' : `, last ${spacedName(last_outcome ?? 'pending')}`
  return `${count === confirmed ? '' : `${count}, `}${confirmed ?? '?'} sent${last}`
}

/** Why it ended, or what it waits for. */
const reasonOf = ({ terminal, waits_for }: DeliveryCommandAnswer) =>
  terminal ? (
    <Term value={terminal.reason} />
  ) : (
    waits_for && <span class="dim">{waits_for === 'unknown' ? <Unknown /> : `waits for ${spacedName(waits_for)}`}</span>
  )

/** Where it stands, and why. */
const stateOf = (command: DeliveryCommandAnswer) => (
  <>
    <Term value={command.state} /> {command.overdue && <Term value="overdue" />} {reasonOf(command)}
  </>
)

const saidOf = (state: string | null) =>
  state === null ? <Unknown /> : <Term value={state === 'none' ? null : state} />

/** Mostly the user's own, which is not worth a second look. */
const scopeOf = ({ admission, user_id }: DeliveryCommandAnswer) =>
  admission && admission.scope_id !== user_id && <Field name="scope_id" record={admission} />

/** When it ended, or until when it may. */
const untilOf = ({ admission, terminal }: DeliveryCommandAnswer) =>
  terminal ? (
    <Time at={terminal.at} age="short" />
  ) : (
    admission?.deadline_at && (
      <span class="dim">
        deadline <Time at={admission.deadline_at} age="short" />
      </span>
    )
  )

export const COMMANDS: ListView<DeliveryCommandAnswer> = {
  path: '/delivery/commands',
  title: 'Commands',
  about: 'Newest first. No state proves that an effect happened.',
  filters: [
    choice('state', ['open', ...OPEN_STATES, ...ENDS]),
    flag('overdue'),
    text('user_id'),
    text('client_id'),
    text('command_id'),
    text('scope_id'),
    text('action'),
    text('reason'),
    text('trace_id'),
    text('from'),
    text('to'),
    ORDER,
  ],
  // Commands without a user differ by their scope.
  keyOf: ({ user_id, client_id, command_id, admission }) =>
    JSON.stringify([user_id, client_id, command_id, admission?.scope_id]),
  markOf: ({ overdue, terminal }) => (overdue ? 'bad' : terminal ? 'past' : ''),
  presets: [
    ['open', { state: 'open' }],
    ['overdue', { overdue: 'true' }],
    ['failed', { state: 'failed' }],
  ],
  countBy: 'action',
  columns: [
    whoOf('command_id'),
    { head: 'state', width: 'min(34ch, 42vw)', cell: stateOf },
    { head: 'admitted', width: '10ch', cell: ({ admission }) => <Time at={admission?.at ?? null} age="short" /> },
    'action',
    { head: 'ended', cell: untilOf },
    { head: 'attempts', cell: attemptsOf },
    { head: 'client said', cell: ({ acknowledgement }) => saidOf(acknowledgement?.state ?? null) },
    idOf('command_id'),
    { head: 'scope_id', cell: scopeOf },
  ],
}

// Mailboxes that a connection is attached to: who waits for commands, where, and how many wait for it.

export const MAILBOXES: ListView<DeliveryMailboxAnswer> = {
  path: '/delivery/mailboxes',
  title: 'Mailboxes',
  about: 'Clients that wait for commands. A client without a mailbox receives none.',
  filters: [text('user_id'), text('client_id'), text('node_id')],
  keyOf: ({ user_id, client_id }) => JSON.stringify([user_id, client_id]),
  columns: ['client_id', 'user_id', 'waiting_commands', 'attached_at', 'node_id', 'instance_id'],
}
