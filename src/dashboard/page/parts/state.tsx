/** How far an answer can be believed: since when it is so, of how much it speaks, and why there is none. */
import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Completeness } from '../../../internal/contract/capabilities.js'
import { hrefOf } from '../address.js'
import { isOld, NOT_SCOPABLE, pollStatus, queryState, unavailableReason } from '../answers.js'
import type { Problem } from '../fetch-route.js'
import { useAnswer, useLook } from '../hooks.js'
import { clock, countOf, isPinned, spacedName, timeOf } from '../words.js'
import { Text } from './text.js'

interface ProblemNoteProps {
  problem: Problem
  /** Why a record may not be there, and where to look then, if there is more to say than of any record. */
  gone?: ComponentChildren
}

/** What operators call it. */
const PROBLEMS: Readonly<Record<string, string>> = {
  inspector_unavailable: 'source not reachable',
  inspector_timeout: 'source too slow',
  invalid_query: 'filter not accepted',
}

export const problemName = (code: string) => PROBLEMS[code] ?? spacedName(code)

const DOCS_URL = document.documentElement.dataset.docs ?? ''

/** Where the docs explain it: `file` is a page of the package and a heading in it. */
export function Help({ file }: { file: string }): JSX.Element {
  const [, name = '', heading = ''] = /^docs\/(\w+)\.md(#\w+)?$/.exec(file) ?? []
  return (
    <a href={DOCS_URL.replace('{name}', name) + heading} target="_blank" rel="noreferrer">
      Read more
    </a>
  )
}

/** Some of the users that the key is for, as far as a source knows them. */
function OwnUsers(): JSX.Element {
  const { value } = useAnswer<{ items: { user_id: string }[] }>('/users?limit=3')
  return (
    <a href={hrefOf('/users')}>
      {value?.items[0] ? Text({ value: value.items.map(({ user_id }) => user_id).join(', ') }) : 'these'}
    </a>
  )
}

/** Explains why there is no answer. Only faults look like alarms. */
export function ProblemNote({ problem: { status, code, title, help }, gone }: ProblemNoteProps): JSX.Element {
  if (status === 501)
    return (
      <p class="absent">
        Not part of this deployment
        {title && !code && `. Give the router the source ${spacedName(title)} to see it here`}.
      </p>
    )
  if (code === NOT_SCOPABLE)
    return (
      <p class="absent">
        Your key is for some users, such as <OwnUsers />. What covers all users is not shown.
      </p>
    )
  if (status === 404)
    return (
      <p class="absent">
        <strong>No such record</strong>.{' '}
        {gone ?? 'It was removed some time after its end, never existed, or your key does not cover its user.'}
      </p>
    )
  if (isPinned() && status === 503)
    return (
      <p class="absent">
        <strong>Not recorded</strong>. It was not read at that time, or is never recorded, such as payloads and
        histories.
      </p>
    )
  return (
    <p class="trouble">
      <strong>{status === 0 ? 'No answer' : problemName(code)}</strong> {status > 0 && status}{' '}
      <span class="dim">
        {title}
        {help && (
          <>
            . <Help file={help} />.
          </>
        )}
      </span>
    </p>
  )
}

/** The views that are not part of the deployment, in one line instead of a card each. */
export function Absent({ views }: { views: readonly { path: string; title: string }[] }): JSX.Element | null {
  const absent = views.flatMap(({ path, title }) => {
    const reason = unavailableReason(path)
    return reason?.status === 501 ? [reason.title ? `${title} (${spacedName(reason.title)})` : title] : []
  })
  if (absent.length === 0) return null
  return (
    <p class="absent">
      Not part of this deployment: {absent.join(', ')}. Give the router the source in brackets to see it here.
    </p>
  )
}

interface Bounded {
  items?: readonly unknown[]
  has_more?: boolean
  omitted?: number
  completeness?: Completeness
}

/** What was cut short, by source. A sample never reads as a total, and what failed not as what reached its bound. */
export function truncationsOf({ completeness }: Bounded): string[] {
  const { truncated_sources, examined, limits } = completeness ?? { truncated_sources: [], examined: {}, limits: {} }
  const failed = truncated_sources.filter((source) => !examined[source])
  const cut = truncated_sources.flatMap((source) => {
    const read = examined[source]
    if (!read) return []
    return read < (limits[source] ?? 0)
      ? `incomplete: ${spacedName(source)} was not read to its end (${countOf(read)} entries read)`
      : `a sample: ${spacedName(source)} was cut short at ${countOf(read)} entries`
  })
  const names = failed[1] ? `${failed.length} sources` : failed.map(spacedName)
  return failed[0] ? [`incomplete: ${names} could not be read`, ...cut] : cut
}

/** How much of a list is shown; `total` is `null` if unknown. */
function extentOf(page: Bounded, total: number | null | undefined): string {
  const { items = [], has_more, omitted } = page
  const length = countOf(items.length)
  return [
    total != null && total > items.length
      ? `${length} of ${countOf(total)}`
      : `${length}${has_more ? ', more follow' : ' in all'}`,
    ...(omitted ? [`${countOf(omitted)} left out: unreadable`] : []),
    ...truncationsOf(page),
  ].join(' · ')
}

interface StateProps {
  answer: Omit<ReturnType<typeof useAnswer>, 'value'> & { value: Bounded | null }
  total?: number | null | undefined
  children?: ComponentChildren
}

/** Each time that is shown is drawn, which idle pages do most of all. The header has the exact one. */
const STEP_MS = 10_000

/** When the answer to `path` was so: exact once it is old, and until then at most 10 s before its last confirmation. */
export function AsOf({ path }: { path: string | null }): JSX.Element {
  const asOf = () => queryState(path ?? '').asOf ?? 0
  const [first] = useState(asOf)
  const steady = () => Math.max(first, Math.floor(asOf() / STEP_MS) * STEP_MS)
  return <>{useLook(() => [timeOf(isPinned() ? clock() : isOld(path) ? asOf() : steady())])}</>
}

/** The line under a heading. */
export function State({ answer: { path, value, asOf, problem, isOld }, total, children }: StateProps): JSX.Element {
  const isKnown = asOf !== null
  const waits = pollStatus().isPaused ? 'not fetched while paused' : <span class="loading">loading</span>
  const parts = [
    value?.items && value.has_more !== undefined && extentOf(value, total),
    // Of an instant that is not the present, the band above says of when everything is.
    isKnown
      ? !isPinned() && (
          <>
            as of <AsOf path={path} />
          </>
        )
      : !problem && waits,
    isKnown && isOld && 'may have changed since',
    isKnown && problem && (
      <span class="trouble">
        {problem.status === 0 ? 'No answer' : `${problemName(problem.code)} ${problem.status}`}
      </span>
    ),
    isKnown && children && <span class="dim">{children}</span>,
  ].filter(Boolean)
  return (
    <span class={isOld && isKnown ? 'state old' : 'state'}>
      {parts.flatMap((part, i) => (i > 0 ? [' · ', part] : part))}
    </span>
  )
}
