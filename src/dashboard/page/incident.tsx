/** The past instead of the present: a band above the page, with the instants that can be chosen. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { IncidentBanner } from '../../incident/inspectors.js'
import type { Capabilities } from '../../internal/contract/capabilities.js'
import { goTo } from './address.js'
import { recordedPath } from './answers.js'
import { currentInstant, type Problem, present } from './fetch-route.js'
import { useAnswer, useLook } from './hooks.js'
import { choose, instantIn, stepMinutes } from './instants.js'
import { Text } from './parts/text.js'
import { durationText, spacedName, timeOf } from './words.js'

/** A recorder reads every five seconds. */
const STEP_MS = 5_000

/** A time to be typed. */
export function TimeField({ label, onChoose }: { label: string; onChoose: (instant: number) => void }): JSX.Element {
  const [typed, setTyped] = useState('')
  const instant = instantIn(typed)
  const isInvalid = typed !== '' && Number.isNaN(instant)
  const submit = (event: Event) => {
    event.preventDefault()
    if (typed === '' || isInvalid) return
    onChoose(instant)
    setTyped('')
  }
  return (
    <form class="add" onSubmit={submit}>
      <label>
        {label}{' '}
        <input
          type="text"
          aria-invalid={isInvalid}
          placeholder="14:03 or -5m"
          autocomplete="off"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value.trim())}
        />
      </label>
      <button type="submit">Go</button>
      <span role="status">{isInvalid && 'such as 14:03, 14:03:20 or -5m'}</span>
    </form>
  )
}

/** The instants of a recording: dragged, typed, or by steps of a minute; when nothing was recorded is hatched. */
function Instants({ recording, at }: { recording: NonNullable<IncidentBanner['recording']>; at: number }): JSX.Element {
  const [from, to] = [recording.from, recording.to].map((text) => Date.parse(text)) as [number, number]
  const share = (text: string) => (100 * (Date.parse(text) - from)) / Math.max(1, to - from)
  const { gaps, gaps_omitted, gap } = recording
  const [dragged, setDragged] = useState<number | null>(null)
  return (
    <div class="timeline">
      <button type="button" onClick={() => stepMinutes(-1)} title="one minute back: ,">
        ‹ 1 min
      </button>
      <span>
        <input
          type="range"
          min={from}
          max={to}
          step={STEP_MS}
          value={at}
          aria-label="Instant of the recording"
          aria-valuetext={timeOf(dragged ?? at)}
          onInput={(event) => setDragged(Number(event.currentTarget.value))}
          onChange={(event) => {
            setDragged(null)
            const instant = Number(event.currentTarget.value)
            // Its steps may not reach the end.
            choose(instant > to - STEP_MS ? to : instant)
          }}
        />
        <svg
          viewBox="0 0 100 2"
          preserveAspectRatio="none"
          role="img"
          aria-label={`${gaps.length + gaps_omitted} gaps`}
        >
          {gaps.map((each) => (
            <rect key={each.from} x={share(each.from)} width={share(each.to) - share(each.from)} y="0" height="2">
              <title>{`nothing was recorded from ${timeOf(each.from)} to ${timeOf(each.to)}`}</title>
            </rect>
          ))}
        </svg>
      </span>
      <button type="button" onClick={() => stepMinutes(1)} title="one minute on: .">
        1 min ›
      </button>
      <output>{timeOf(dragged ?? at)}</output>
      <TimeField label="time" onChoose={choose} />
      {gaps_omitted > 0 && ` The oldest ${gaps_omitted} gaps are not shown.`}
      {gap && (
        <b>
          Nothing was recorded from {timeOf(gap.from)} to {timeOf(gap.to)}: this is the state before.
        </b>
      )}
    </div>
  )
}

/** What is missing, or not whole. */
const Missing = ({ missing, missing_omitted }: IncidentBanner): JSX.Element | false =>
  missing.length > 0 && (
    <details>
      <summary>
        {missing.length + missing_omitted} {missing.length + missing_omitted === 1 ? 'thing is' : 'things are'} missing
        or not whole
      </summary>
      <ul>
        {missing.map(({ route, of, reason, detail }, i) => (
          <li key={i}>
            <Text
              value={`${route}${of === null ? '' : ` ${Object.values(of).join(' ')}`}: ${spacedName(reason)}: ${detail}`}
            />
          </li>
        ))}
        {missing_omitted > 0 && <li>{missing_omitted} more</li>}
      </ul>
    </details>
  )

/** An opened incident: that nothing is live, and what the file has. `incident` is that of the shown instant. */
export function Banner({ incident }: { incident: IncidentBanner }): JSX.Element {
  const { clocks, user, limited, redacted, consistent, recording } = incident
  const { node, observer } = clocks
  const apart = node ? Date.parse(observer.to) - Date.parse(node.to) : 0
  return (
    <aside class="incident" aria-label="Incident">
      <p>
        <b>Incident, not live.</b> The clock is at {timeOf((node ?? observer).to)}
        {node ? ` of the node` : ` of the observer; that of the node is unknown`}
        {Math.abs(apart) > 1_000 &&
          `; the observer's clock was ${durationText(Math.abs(apart))} ${apart > 0 ? 'ahead' : 'behind'}`}
        .
        {user !== null && (
          <>
            {' '}
            Only user <Text value={user} />.
          </>
        )}
        {limited && ' This is a part: the caller was not allowed to see everything.'}
        {redacted && ' Redacted: ids are pseudonyms.'}
        {!consistent && ' It changed while it was captured: lists may not fit together.'}
      </p>
      <Missing {...incident} />
      {recording && <Instants recording={recording} at={Date.parse(recording.at)} />}
    </aside>
  )
}

/** What a live router has recorded, asked for once: at the instant, or by now if the instant was not recorded. */
function useRecorded(instant: number | null): IncidentBanner | undefined {
  const now = useMemo(present, [instant])
  const then = useAnswer<Capabilities>(instant === null ? null : recordedPath(instant))
  const latest = useAnswer<Capabilities>(instant === null || then.problem ? recordedPath(now) : null)
  return (then.value ?? latest.value)?.extensions.incident as IncidentBanner | undefined
}

/** The band below the header: as of when the page is, and every other instant. */
export function TimeBand({ onClose }: { onClose: () => void }): JSX.Element {
  const instant = currentInstant()
  const incident = useRecorded(instant)
  const { recording } = incident ?? {}
  const [age] = useLook(() => [durationText(present() - (instant ?? 0), true)])
  return (
    <aside class={instant === null ? 'bar when' : 'bar when then'} aria-label="Time">
      {instant === null ? (
        'Live. Choose an earlier time:'
      ) : (
        <b>
          As of {timeOf(instant)}, {age} ago
        </b>
      )}{' '}
      <button type="button" onClick={instant === null ? onClose : () => goTo(null)}>
        {instant === null ? 'Close' : 'Back to live'}
      </button>
      {recording && <Instants recording={recording} at={instant ?? Date.parse(recording.to)} />}
      {instant !== null && incident && (
        <Missing {...incident} missing={incident.missing.filter(({ route }) => !route.includes('{'))} />
      )}
    </aside>
  )
}

/** Instead of a page: why there is nothing as of the instant. */
export function NotRecorded({ problem: { status, title } }: { problem: Problem }): JSX.Element {
  const [from, to] = title.match(/\d{4}-\d\d-\d\dT[\d:.]+Z/g) ?? []
  return (
    <section class="card">
      <h1>{status === 0 ? 'No answer' : 'Not recorded'}</h1>
      <p>
        {status === 503
          ? 'Nothing is recorded yet, or the recording cannot be read now.'
          : status
            ? 'Nothing was recorded then.'
            : title}
        {from && to && ` The recording has ${timeOf(from)} to ${timeOf(to)}.`}
      </p>
      {from && (
        <button type="button" onClick={() => goTo(Date.parse(from))}>
          Show {timeOf(from)}
        </button>
      )}
    </section>
  )
}
