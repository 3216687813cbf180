/** Why a command has not arrived: the chain from its admission to its end, and the first link that does not hold. */
import type { JSX } from 'preact'
import type { DeliveryWhy, WhyLink } from '../../../internal/views/why-links.js'
import { hrefOf, pathWithQuery } from '../address.js'
import { isIndexKnown, offers } from '../answers.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Json, Time } from '../parts/value.js'
import { spacedName } from '../words.js'
import type { AnswerState } from './headline.js'

const ROUTE = '/delivery/why'

/** The answer for one command; `null` where the router has no such route. */
export function useWhy(query: Record<string, string> | null): AnswerState<DeliveryWhy> | null {
  // Asked for with the rest of the page: the index of routes may come later.
  const isOffered = offers(ROUTE) || !isIndexKnown()
  const answer = useAnswer<DeliveryWhy>(isOffered && query ? pathWithQuery(ROUTE, query) : null)
  return isOffered && query ? answer : null
}

/** The first link that does not hold, in a sentence. Of a command that is over, what is unknown explains nothing. */
export function WhyVerdict({ links, verdict, isOver }: DeliveryWhy & { isOver: boolean }): JSX.Element | null {
  const link = links.find((each) => each.link === verdict?.link)
  if (!link || (isOver && link.holds === null)) return null
  return (
    <p class="first-link">
      <strong class={link.holds === false ? 'bad' : 'warn'}>
        {link.holds === false ? 'Not reached' : 'Unknown'}: {spacedName(link.link)}.
      </strong>{' '}
      {link.means}
    </p>
  )
}

const LOOKS = {
  true: ['✓', 'ok', 'holds'],
  false: ['✕', 'bad', 'broken'],
  null: ['?', 'warn', 'unknown'],
} as const

const REASONS: Record<string, string> = {
  absent: 'not part of this deployment',
  failed: 'no answer',
  cut_short: 'not read to its end',
  over: 'says nothing about a command that is over',
}

function Link({ link, isFirst }: { link: WhyLink; isFirst: boolean }): JSX.Element {
  const { holds, means, does_not_mean, evidence } = link
  const [glyph, tone, read] = LOOKS[`${holds}`]
  return (
    <li class={isFirst ? 'first' : ''}>
      <details open={isFirst}>
        <summary>
          <span class={tone} aria-hidden="true">
            {glyph}
          </span>{' '}
          {spacedName(link.link)} <span class="hidden">{read}</span>
        </summary>
        <p>{means}</p>
        <p class="dim">{does_not_mean}</p>
        {evidence.map(({ source, route, field, value, observed_at }) => (
          <p key={route + field} class="dim">
            <a href={hrefOf(route)}>{spacedName(source)}</a> {field} = <Json value={value} /> <Time at={observed_at} />
          </p>
        ))}
      </details>
    </li>
  )
}

export const Why = ({ answer }: { answer: AnswerState<DeliveryWhy> }): JSX.Element => (
  <Card title="Why" answer={answer} note="the first link that does not hold is open">
    {({ links, verdict, not_looked_at }) => (
      <>
        <ol class="plain chain">
          {links.map((link) => (
            <Link key={link.link} link={link} isFirst={link.link === verdict?.link} />
          ))}
        </ol>
        {not_looked_at.map(({ link, source, reason }) => (
          <p key={link + source} class="dim">
            For {spacedName(link)}, {spacedName(source)} was not used: {REASONS[reason]}.
          </p>
        ))}
      </>
    )}
  </Card>
)
