/** Commands as a flow: admitted, waiting, attempted, acknowledged, and how they ended. Where there is no room beside, it goes down. */
import type { JSX } from 'preact'
import { hrefOf } from '../address.js'
import { TONES } from '../parts/value.js'
import { countOf, spacedName } from '../words.js'

/** Where commands stand now. */
export interface Stage {
  state: string
  /** `null`: nobody knows. */
  count: number | null
  /** There are more than were counted. */
  isMore: boolean
  note: string | null
  isOld: boolean
}

export interface End {
  state: string
  count: number
}

interface BoxProps {
  name: string
  /** `null`: nobody knows. */
  count: number | null
  href: string
  note: string | null
  isMore?: boolean
  isOld?: boolean
}

const Box = ({ name, count, href, note, isMore, isOld }: BoxProps): JSX.Element => (
  <div class={isOld ? 'old' : ''}>
    <a href={href} class={`box ${isMore ? 'sample' : ''}`}>
      {spacedName(name)}{' '}
      <b>
        {count === null ? '?' : countOf(count)}
        {isMore && '+'}
      </b>
    </a>
    {note && <small>{note}</small>}
  </div>
)

interface FlowProps {
  /** `undefined` where it is not told. */
  admitted: number | null | undefined
  stages: readonly Stage[]
  ends: readonly End[]
}

const listOf = (state?: string) => hrefOf('/delivery/commands', { state })

export const Flow = ({ admitted, stages, ends }: FlowProps): JSX.Element => (
  <div class="flow">
    {admitted !== undefined && <Box name="admitted" count={admitted} href={listOf()} note="since the nodes started" />}
    {stages.map(({ state, ...stage }) => (
      <Box key={state} {...stage} name={state} href={listOf(state)} />
    ))}
    {ends.length > 0 && (
      <div class="ends">
        {ends.map(({ state, count }) => (
          <a key={state} href={listOf(state)}>
            <b class={count > 0 ? TONES.get(state) : 'dim'}>{countOf(count)}</b> {spacedName(state)}
          </a>
        ))}
      </div>
    )}
  </div>
)
