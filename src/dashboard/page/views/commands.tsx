/** Commands, by where they stand. */

import type { DeliveryCommandAnswer, DeliveryMailboxAnswer } from '../../../contract/delivery.js'
import { partsOf } from '../../../contract/evidence.js'
import { ENDS, OPEN_STATES } from '../charts/river.js'
import { Field } from '../parts/field.js'
import { choice, flag, ORDER, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { Unknown } from '../parts/text.js'
import { Term, Time } from '../parts/value.js'
import { spacedName } from '../words.js'

const stateOf = ({ state, overdue }: DeliveryCommandAnswer) => (
  <>
    <Term value={state} /> {overdue && <Term value="overdue" />}
  </>
)

function attemptsOf(command: DeliveryCommandAnswer) {
  const { count, confirmed, last_outcome } = partsOf(command).attempts
  if (count === null) return <Unknown />
  return (
    count > 0 && (
      <>
        {count === confirmed ? count : `${count}, ${confirmed ?? '?'} confirmed`}{' '}
        <span class="dim">
          <Term value={last_outcome} />
        </span>
      </>
    )
  )
}

/** Why it ended, or what it waits for. */
const reasonOf = ({ terminal, waits_for }: DeliveryCommandAnswer) =>
  terminal ? (
    <Term value={terminal.reason} />
  ) : (
    waits_for && <span class="dim">{waits_for === 'unknown' ? <Unknown /> : `waits for ${spacedName(waits_for)}`}</span>
  )

const saidOf = (state: string | null) =>
  state === null ? <Unknown /> : <Term value={state === 'none' ? null : state} />

/** Mostly the user's own, which is not worth a second look. */
const scopeOf = ({ admission, user_id }: DeliveryCommandAnswer) =>
  admission?.scope_id && admission.scope_id === user_id ? (
    <span class="dim">= user</span>
  ) : (
    <Field name="scope_id" record={admission ?? { scope_id: null }} />
  )

/** When it ended, or until when it may. */
const untilOf = ({ admission, terminal }: DeliveryCommandAnswer) =>
  terminal ? (
    <Time at={terminal.at} />
  ) : (
    admission?.deadline_at && (
      <span class="dim">
        by <Time at={admission.deadline_at} />
      </span>
    )
  )

export const COMMANDS: ListView<DeliveryCommandAnswer> = {
  path: '/delivery/commands',
  title: 'Commands',
  about: 'Newest first. No state proves that an effect happened.',
  filters: [
    choice('state', [...OPEN_STATES, ...ENDS]),
    flag('overdue'),
    text('user_id'),
    text('client_id'),
    text('command_id'),
    text('scope_id'),
    text('action'),
    text('reason'),
    text('trace_id'),
    ORDER,
  ],
  // Commands without a user differ by their scope.
  keyOf: ({ user_id, client_id, command_id, admission }) =>
    JSON.stringify([user_id, client_id, command_id, admission?.scope_id]),
  markOf: ({ overdue, terminal }) => (overdue ? 'bad' : terminal ? 'past' : ''),
  columns: [
    'command_id',
    { head: 'state', width: '13ch', cell: stateOf },
    { head: 'because', width: 'min(26ch, 28vw)', cell: reasonOf },
    'action',
    'user_id',
    'client_id',
    { head: 'admitted', cell: ({ admission }) => <Time at={admission?.at ?? null} age="short" /> },
    { head: 'ended', cell: untilOf },
    { head: 'attempts', cell: attemptsOf },
    { head: 'client said', cell: ({ acknowledgement }) => saidOf(acknowledgement?.state ?? null) },
    { head: 'scope_id', cell: scopeOf },
  ],
}

// Mailboxes that a connection is attached to: who waits for commands, where, and how many wait for it.

export const MAILBOXES: ListView<DeliveryMailboxAnswer> = {
  path: '/delivery/mailboxes',
  title: 'Mailboxes',
  about: 'Clients that wait for commands. A client without a mailbox takes none.',
  filters: [text('user_id'), text('client_id'), text('node_id')],
  keyOf: ({ user_id, client_id }) => JSON.stringify([user_id, client_id]),
  columns: ['client_id', 'user_id', 'waiting_commands', 'node_id', 'instance_id', 'attached_at'],
}
