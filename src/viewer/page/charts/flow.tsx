/** Commands as a flow: admitted, waiting, attempted, acknowledged, and how they ended. */
import type { JSX } from 'preact'
import { hrefOf } from '../address.js'
import { countOf, plain } from '../words.js'

/** Where commands stand now. */
export interface Stage {
  state: string
  /** `null`: nobody knows. */
  count: number | null
  /** There are more than were counted. */
  isMore: boolean
  /** Of the first in the list. */
  oldest: string | null
  /** What stands out among them. */
  trouble: string | null
  note: string | null
}

export interface End {
  state: string
  count: number
}

const W = 170
const GAP = 46
const TOP = 8
const H = 78

const TONES: Record<string, string> = { resulted: 'ok', failed: 'bad', expired: 'warn', rejected: 'bad', cancelled: '' }

const figureOf = ({ count, isMore }: Pick<Stage, 'count' | 'isMore'>) =>
  count === null ? '?' : `${countOf(count)}${isMore ? '+' : ''}`

interface BoxProps {
  x: number
  name: string
  figure: string
  href: string
  isSample: boolean
  lines: readonly (string | null)[]
  trouble: string | null
}

const Box = ({ x, name, figure, href, isSample, lines, trouble }: BoxProps): JSX.Element => (
  <a href={href}>
    <rect class={trouble ? 'box bad' : 'box'} x={x} y={TOP} width={W} height={H} rx="8" />
    {isSample && <rect class="sample" x={x} y={TOP + H - 8} width={W} height="8" />}
    <text class="small" x={x + 14} y={TOP + 24}>
      {name}
    </text>{' '}
    <text class="big" x={x + 14} y={TOP + 56}>
      {figure}
    </text>
    {[trouble, ...lines]
      .filter((line) => line !== null)
      .map((line, i) => (
        <text key={line} class={line === trouble ? 'small trouble' : 'small'} x={x + 2} y={TOP + H + 20 + i * 18}>
          {line}
        </text>
      ))}
  </a>
)

interface FlowProps {
  admitted: number | null
  stages: readonly Stage[]
  ends: readonly End[]
}

const stageLines = ({ oldest, note }: Stage) => [oldest && `oldest ${oldest}`, note]

export function Flow({ admitted, stages, ends }: FlowProps): JSX.Element {
  const x = (i: number) => 2 + i * (W + GAP)
  const width = x(stages.length + 1) + 150
  const middle = TOP + H / 2
  const step = 34
  const endY = (i: number) => middle + (i - (ends.length - 1) / 2) * step
  const height = Math.max(TOP + H + 48, endY(ends.length - 1) + 24)
  const said = stages.map((stage) => `${figureOf(stage)} ${stage.state}`).join(', ')
  const ended = ends.map(({ state, count }) => `${countOf(count)} ${plain(state)}`).join(', ')
  const shift = Math.max(0, TOP + 8 - (endY(0) - 14))
  return (
    // biome-ignore lint/a11y/useSemanticElements: a drawing is no set of fields
    <svg
      class="flow"
      viewBox={`0 ${-shift} ${width} ${height + shift}`}
      role="group"
      aria-label={`Now ${said}. Ended: ${ended}.`}
    >
      <Box
        x={x(0)}
        name="admitted"
        figure={admitted === null ? '?' : countOf(admitted)}
        href={hrefOf('/delivery/commands')}
        isSample={false}
        lines={['since the nodes started']}
        trouble={null}
      />
      {stages.map((stage, i) => (
        <g key={stage.state}>
          <path class="way" d={`M${x(i) + W + 6} ${middle}h${GAP - 12}`} />
          <Box
            x={x(i + 1)}
            name={plain(stage.state)}
            figure={figureOf(stage)}
            href={hrefOf('/delivery/commands', { state: stage.state })}
            isSample={stage.isMore}
            lines={stageLines(stage)}
            trouble={stage.trouble}
          />
        </g>
      ))}
      {ends.map(({ state, count }, i) => {
        const from = x(stages.length) + W + 6
        const to = x(stages.length + 1)
        const y = endY(i)
        return (
          <a key={state} href={hrefOf('/delivery/commands', { state })}>
            <path class="way" d={`M${from} ${middle}C${from + 24} ${middle} ${to - 28} ${y} ${to - 6} ${y}`} />
            <text class={count > 0 ? `end ${TONES[state] ?? ''}` : 'end none'} x={to} y={y + 5}>
              {countOf(count)} <tspan class="small">{plain(state)}</tspan>
            </text>
          </a>
        )
      })}
    </svg>
  )
}
