/** An incident instead of a live deployment: a prominent banner, and the instants of a recording. */
import type { JSX } from 'preact'
import type { Capabilities } from '../../contract/capabilities.js'
import type { IncidentBanner } from '../../incident/inspectors.js'
import { resetAuth } from './answers.js'
import { setInstant } from './fetch-route.js'
import { Text } from './parts/text.js'
import { durationText, pinClock, spacedName, timeOf } from './words.js'

/** What the router says of the incident that it answers from; `undefined` for a live deployment. */
export function incidentOf(capabilities: Capabilities | null): IncidentBanner | undefined {
  const incident = capabilities?.extensions.incident as IncidentBanner | undefined
  pinClock(incident ? Date.parse((incident.clocks.node ?? incident.clocks.observer).to) : null)
  return incident
}

function show(instant: number): void {
  setInstant(instant)
  resetAuth()
}

/** The instants of a recording; when nothing was recorded is hatched. */
function Timeline({ recording }: { recording: NonNullable<IncidentBanner['recording']> }): JSX.Element {
  const [from, to, at] = [recording.from, recording.to, recording.at].map((text) => Date.parse(text)) as [
    number,
    number,
    number,
  ]
  const share = (text: string) => (100 * (Date.parse(text) - from)) / Math.max(1, to - from)
  const { gaps, gaps_omitted, gap } = recording
  return (
    <div class="timeline">
      <label>
        {timeOf(recording.at)}
        <input
          type="range"
          min={from}
          max={to}
          step="1000"
          value={at}
          aria-label="Instant of the recording"
          aria-valuetext={timeOf(recording.at)}
          onChange={(event) => show(Number(event.currentTarget.value))}
        />
      </label>
      <svg viewBox="0 0 100 2" preserveAspectRatio="none" role="img" aria-label={`${gaps.length + gaps_omitted} gaps`}>
        {gaps.map((each) => (
          <rect key={each.from} x={share(each.from)} width={share(each.to) - share(each.from)} y="0" height="2">
            <title>{`nothing was recorded from ${timeOf(each.from)} to ${timeOf(each.to)}`}</title>
          </rect>
        ))}
      </svg>
      {gaps_omitted > 0 && ` The oldest ${gaps_omitted} gaps are not shown.`}
      {gap && (
        <b>
          Nothing was recorded from {timeOf(gap.from)} to {timeOf(gap.to)}: this is the state before.
        </b>
      )}
    </div>
  )
}

export function Banner({ incident }: { incident: IncidentBanner }): JSX.Element {
  const { clocks, user, limited, redacted, consistent, missing, missing_omitted, recording } = incident
  const { node, observer } = clocks
  const apart = node ? Date.parse(observer.to) - Date.parse(node.to) : 0
  return (
    <aside class="incident" aria-label="Incident">
      <p>
        <b>Incident, not live.</b> The clock is at{timeOf((node ?? observer).to)}
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
        {!consistent && ' It changed while it was captured: lists may contradict each other.'}
      </p>
      {missing.length > 0 && (
        <details>
          <summary>{missing.length + missing_omitted} things are missing or not whole</summary>
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
      )}
      {recording && <Timeline recording={recording} />}
    </aside>
  )
}
