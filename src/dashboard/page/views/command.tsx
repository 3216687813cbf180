/** One command as a line of evidence: what is proven, what is not, and what nobody knows. */
import type { ComponentChildren, JSX } from 'preact'
import type { DeliveryStatus } from '../../../contract/delivery.js'
import { type Address, pathWithQuery } from '../address.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Field } from '../parts/field.js'
import { Excerpt } from '../parts/list.js'
import { Term, Time } from '../parts/value.js'
import { durationText } from '../words.js'
import { CONNECTIONS } from './connections.js'

interface StepProps {
  name: string
  /** `done`: on record. `open`: it may still come. `missed`: it can not come any more. */
  stand: 'done' | 'open' | 'missed' | 'bad'
  at: string | null
  said: ComponentChildren
  proves: string
  not: string
}

const MARKS = { done: '●', open: '○', missed: '–', bad: '✕' }
const READS = { done: 'on record', open: 'not on record yet', missed: 'never recorded', bad: 'on record' }

const Step = ({ name, stand, at, said, proves, not }: StepProps): JSX.Element => (
  <li class={stand}>
    <span class="mark" title={READS[stand]}>
      {MARKS[stand]}
    </span>
    <div>
      <h2>
        {name} <span class="dim">{at === null ? READS[stand] : <Time at={at} age="full" />}</span>
      </h2>
      <p>{said}</p>
      <p class="evidence">
        {(stand === 'done' || stand === 'bad') && (
          <span>
            <b>Proves</b> {proves}
          </span>
        )}
        <span>
          <b>Does not prove</b> {not}
        </span>
      </p>
    </div>
  </li>
)

const ENDS: Record<string, readonly [proves: string, not: string]> = {
  resulted: ['that someone entitled to reported a result.', 'that the result is right, or that an effect happened.'],
  failed: ['that someone entitled reported a failure.', 'that nothing happened outside.'],
  expired: ['that the deadline passed first.', 'that the client did not run it, or will not still.'],
  cancelled: ['that someone asked to stop before the end.', 'that the client stopped.'],
  rejected: ['that it was refused on arrival and never queued.', 'that it stays refused.'],
}

/** Of a failure that nobody reported. */
const FAILURES: Record<string, string> = {
  attempts_exhausted: 'that the attempts were exhausted.',
  payload_missing: 'that its payload was gone before it could be handed over.',
}

function Admission({ admission: { state, at, scope_id, deadline_at } }: DeliveryStatus): JSX.Element {
  const isIn = state === 'admitted'
  return (
    <Step
      name={isIn ? 'Admitted' : 'Rejected'}
      stand={isIn ? 'done' : 'bad'}
      at={at}
      said={
        <>
          on account of <Field name="scope_id" record={{ scope_id }} />
          {deadline_at && (
            <>
              ; deadline <Time at={deadline_at} age="full" />
            </>
          )}
        </>
      }
      proves={isIn ? 'that capacity is reserved for it until its end.' : 'that it was never queued.'}
      not={isIn ? 'that anyone is there to receive it.' : 'that it stays refused.'}
    />
  )
}

function Attempts({ attempts, recovery, terminal }: DeliveryStatus): JSX.Element {
  const { count, confirmed, last_at, last_outcome } = attempts
  return (
    <Step
      name={count > 1 ? `Attempted ${count} times` : 'Attempted'}
      stand={count > 0 ? (last_outcome === 'rejected' ? 'bad' : 'done') : terminal ? 'missed' : 'open'}
      at={last_at}
      said={
        count === 0 ? (
          'Nobody has claimed it for a connection.'
        ) : (
          <>
            Known to have been handed over: {confirmed} of {count}. The last, by node{' '}
            <Field name="last_node_id" record={attempts} />:{' '}
            {last_outcome ? <Term value={last_outcome} /> : 'its outcome is open'}
            {last_outcome === 'timed_out' &&
              (confirmed === count ? ', handed over and not acknowledged' : ', not acknowledged or not confirmed')}
            {recovery.count > 0 && (
              <>
                . Planned again {recovery.count} times, the last because of <Term value={recovery.reason} />
              </>
            )}
          </>
        )
      }
      proves={
        confirmed > 0
          ? 'that a connection took the write on this side, as often as that is known.'
          : 'that a node claimed it for a connection.'
      }
      not={
        count > 1
          ? 'how often the client received it: it may have seen it more than once.'
          : 'that it arrived: bytes may lie in a buffer of a client that is gone.'
      }
    />
  )
}

function Acknowledgement({
  acknowledgement: { state, at, instance_id },
  terminal,
  ...key
}: DeliveryStatus): JSX.Element {
  return (
    <Step
      name={state === 'refused' ? 'Refused by the client' : 'Acknowledged'}
      stand={state === 'none' ? (terminal ? 'missed' : 'open') : state === 'refused' ? 'bad' : 'done'}
      at={at}
      said={
        state === 'none' ? (
          'Nobody entitled has said anything.'
        ) : (
          <>
            by instance <Field name="instance_id" record={{ ...key, instance_id }} />
          </>
        )
      }
      proves={
        state === 'refused'
          ? 'that the client said it will not run it.'
          : 'that the client has it: it is never handed over again.'
      }
      not={
        state === 'none'
          ? 'that the client has not run it: its word may have been lost.'
          : state === 'refused'
            ? 'that the client ran none of it before it refused.'
            : 'that it began, finished, or will.'
      }
    />
  )
}

function End({ terminal, admission, acknowledgement }: DeliveryStatus): JSX.Element {
  const [proves = '', not = 'that it makes progress, or that it does not.'] = ENDS[terminal?.state ?? ''] ?? []
  const took = terminal && durationText(new Date(terminal.at).getTime() - new Date(admission.at).getTime())
  return (
    <Step
      name="Ended"
      stand={terminal ? (terminal.state === 'resulted' ? 'done' : 'bad') : 'open'}
      at={terminal?.at ?? null}
      said={
        terminal ? (
          <>
            <Term value={terminal.state} />
            {terminal.reason && ': '}
            <Term value={terminal.reason} />, {took} after it was admitted
          </>
        ) : (
          'No end is recorded.'
        )
      }
      proves={
        terminal?.state !== 'failed'
          ? proves
          : acknowledgement.state === 'refused'
            ? 'that the client refused it.'
            : (FAILURES[terminal.reason ?? ''] ?? proves)
      }
      not={not}
    />
  )
}

export function CommandPage({ address: { path, query } }: { address: Address }): JSX.Element {
  const answer = useAnswer<DeliveryStatus>(pathWithQuery(path, query))
  const { value } = answer
  return (
    <>
      <Card
        isMain
        title="Command"
        answer={answer}
        note="no field proves that an effect happened outside"
        gone="It is kept for a time after its end, an hour by default; or it was never admitted; or its ids are spelled otherwise."
      >
        {(status) => (
          <>
            <p>
              <code>{status.command_id}</code> for <Field name="client_id" record={status} /> of{' '}
              <Field name="user_id" record={status} />
            </p>
            <ol class="steps">
              <Admission {...status} />
              <Attempts {...status} />
              <Acknowledgement {...status} />
              <End {...status} />
            </ol>
          </>
        )}
      </Card>
      {value?.user_id && value.client_id && (
        <Excerpt view={CONNECTIONS} query={{ user_id: value.user_id, client_id: value.client_id }} />
      )}
    </>
  )
}
