/** The heading of the overview, and one number for each family that has been fed. */
import type { ComponentChildren, JSX } from 'preact'
import type { ConnectionChurnAnswer } from '../../../internal/contract/connections.js'
import type { DeliverySummaryAnswer } from '../../../internal/contract/delivery-summary.js'
import type { RpcSummaryAnswer } from '../../../internal/contract/rpc.js'
import type { ConnectionCount } from '../../../internal/views/counts.js'
import { hrefOf } from '../address.js'
import { NOT_SCOPABLE } from '../answers.js'
import { recentChurn } from '../charts/churn.js'
import { useAnswer } from '../hooks.js'
import type { Listed } from '../parts/list.js'
import { ProblemNote } from '../parts/state.js'
import { Text } from '../parts/text.js'
import { Hint } from '../parts/value.js'
import { countOf, durationText, spacedName } from '../words.js'
import type { Problems } from './attention.js'
import { Fact, foundIn, muteIn, silentIn } from './headline.js'

const LOST_REASON = 'heartbeat_lost'
const COUNT = '/connections/count'

/** The deployment, its nodes and clients, and whether its sources answer. */
export function Heading({ name, problems }: { name: string; problems: Problems }): JSX.Element {
  const { findings, nodes, sources } = problems
  const answer = useAnswer<ConnectionCount>(COUNT)
  const { value, isOld } = answer
  const clients = value && !isOld ? value.by_status?.connected : null
  const churn = useAnswer<ConnectionChurnAnswer>('/connections/churn')
  const recent = churn.value && !churn.isOld ? recentChurn(churn.value.items, churn.value.observed_at) : null
  const lost = recent?.gone.find(([reason]) => reason === LOST_REASON)?.[1]
  const isScoped = findings.problem?.code === NOT_SCOPABLE
  // All facts at once: none moves for another one.
  const isKnown = [answer, nodes, sources].every(({ value, problem }) => value || problem)
  return (
    <header class="page headline">
      <div class={isKnown ? 'facts-of' : 'facts-of unsettled'}>
        <h1>
          <Text value={name} />
        </h1>
        {!isScoped && nodes.problem?.status !== 501 && (
          <Fact
            name="silent nodes"
            href="/delivery/nodes"
            answer={nodes}
            isBad={nodes.value?.items.some(({ stale }) => stale) ?? false}
            caption={nodes.value && silentIn(nodes.value)}
          />
        )}
        {clients != null && (
          <a class="detail" href={hrefOf('/connections', { status: 'connected' })}>
            {countOf(clients)} client{clients === 1 ? '' : 's'}
          </a>
        )}
        {!isScoped && (
          <Fact
            name="sources"
            href="/sources"
            answer={sources}
            isBad={sources.value?.items.some(({ answered }) => !answered) ?? false}
            caption={sources.value && muteIn(sources.value.items)}
          />
        )}
        {lost && (
          <a class="warn" href={hrefOf('/connections', { ended_reason: LOST_REASON })}>
            {countOf(lost)} {spacedName(LOST_REASON)} in 3 min
          </a>
        )}
      </div>
      {isScoped && findings.problem ? (
        <ProblemNote problem={findings.problem} />
      ) : (
        <p class="dim">relayscope: clients, calls and commands of this deployment</p>
      )}
    </header>
  )
}

interface Figure {
  family: string
  label: string
  path: string
  href?: string
  /** The number; `null` if unknown, `false` if there is nothing to count. */
  // biome-ignore lint/suspicious/noExplicitAny: each answer is that of its path
  countIn(answer: any): number | false | null | undefined
  /** What is wrong, which is shown in colour. */
  // biome-ignore lint/suspicious/noExplicitAny: each answer is that of its path
  badIn?(answer: any): ComponentChildren
  /** What else is to say. */
  // biome-ignore lint/suspicious/noExplicitAny: each answer is that of its path
  restIn?(answer: any): ComponentChildren
}

/** What the last minutes did to the number of clients. */
function Change(): JSX.Element | null {
  const churn = useAnswer<ConnectionChurnAnswer>('/connections/churn')
  const recent = churn.value && !churn.isOld ? recentChurn(churn.value.items, churn.value.observed_at) : null
  return (
    recent && (
      <>
        {recent.change > 0 && '+'}
        {countOf(recent.change)} <Hint name="in 3 min" />
      </>
    )
  )
}

/** Workers or windows, and how many of them are stale. */
const presence = (family: string, label: string, path: string): Figure => ({
  family,
  label,
  path,
  // A source that does not know whose its contexts are has no workers to count.
  countIn: ({ by_status, total }) =>
    total > 0 && by_status && (by_status.active ?? 0) + (by_status.idle ?? 0) + (by_status.open ?? 0),
  badIn: ({ by_status }) => by_status?.stale > 0 && `${countOf(by_status.stale)} stale`,
  restIn: ({ by_status }) =>
    by_status?.idle != null && (
      <a href={hrefOf('/contexts', { ownership: 'worker', status: 'idle' })}>{countOf(by_status.idle)} idle</a>
    ),
})

const FIGURES: readonly Figure[] = [
  {
    family: 'Clients',
    label: 'clients',
    path: COUNT,
    href: hrefOf('/connections', { status: 'connected' }),
    countIn: ({ by_status }: ConnectionCount) => by_status?.connected,
    badIn: ({ of_silent_nodes }: ConnectionCount) => !!of_silent_nodes && `${countOf(of_silent_nodes)} on silent nodes`,
    restIn: () => <Change />,
  },
  {
    family: 'Calls',
    label: 'open calls',
    path: '/rpc/summary',
    href: hrefOf('/rpc/pending'),
    countIn: ({ pending }: RpcSummaryAnswer) => pending,
    badIn: ({ overdue, counters }: RpcSummaryAnswer) =>
      overdue
        ? `${countOf(overdue)} past their deadline`
        : !!counters?.unanswered && `${countOf(counters.unanswered)} unanswered`,
    restIn: ({ oldest_age_ms }: RpcSummaryAnswer) =>
      oldest_age_ms != null && `the oldest for ${durationText(oldest_age_ms, true)}`,
  },
  {
    family: 'Commands',
    label: 'open commands',
    path: '/delivery/summary',
    href: hrefOf('/delivery/commands', { state: 'open' }),
    countIn: ({ tracked_commands }: DeliverySummaryAnswer) => tracked_commands,
    badIn: ({ by_state }: DeliverySummaryAnswer) =>
      (['failed', 'expired', 'rejected'] as const)
        .flatMap((name) => (by_state?.[name] ? `${countOf(by_state[name])} ${name}` : []))
        .join(', '),
  },
  presence('Workers', 'workers', '/contexts/count?ownership=worker'),
  presence('Windows', 'windows', '/browser-windows/count'),
  { family: 'Sites', label: 'sites', path: '/sites', countIn: ({ items }: Listed<unknown>) => items.length },
]

/** A number that leads to its list. */
function FamilyNumber({ label, path, href, countIn, badIn, restIn }: Figure): JSX.Element | null {
  const { value, isOld } = useAnswer<Listed<unknown>>(path)
  const count = value && countIn(value)
  if (count === false) return null
  const bad = value && badIn?.(value)
  return (
    <li class={isOld && value ? 'old' : ''}>
      <a href={href ?? hrefOf(path.replace('/count', ''))}>
        <b>
          {count == null ? '?' : countOf(count)}
          {value?.has_more && '+'}
        </b>{' '}
        {count === 1 ? label.replace(/s$/, '') : label}
      </a>
      <small class={bad ? 'bad' : ''}>{bad || (value && restIn?.(value))}</small>
    </li>
  )
}

/** One number for each family that has been fed, problems first. */
export function Numbers({ problems, isFed }: { problems: Problems; isFed(name: string): boolean }): JSX.Element {
  const { findings, isAlarm } = problems
  const found = findings.value && foundIn(findings.value)
  const [, count, rest] = /^([\d,]+\+?) (.*)$/.exec(found ?? '') ?? []
  return (
    <ul class="plain numbers">
      {findings.problem?.code !== NOT_SCOPABLE && (
        <li>
          <Fact
            name="findings"
            href="/findings"
            answer={findings}
            isBad={isAlarm}
            caption={
              count ? (
                <>
                  <b>{count}</b> {rest}
                </>
              ) : (
                found
              )
            }
          />
        </li>
      )}
      {FIGURES.map((figure) => isFed(figure.family) && <FamilyNumber key={figure.label} {...figure} />)}
    </ul>
  )
}
