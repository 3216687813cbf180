/** The line above the overview: what is wrong, as far as anybody says so. */
import type { JSX } from 'preact'
import type { DeliveryNode } from '../../../contract/delivery.js'
import type { SourceRow } from '../../../diagnostics/sources.js'
import type { FindingPage } from '../../../views/findings/finding.js'
import { hrefOf } from '../address.js'
import { NOT_TOLD } from '../answers.js'
import type { useAnswer } from '../hooks.js'
import type { Listed } from '../parts/list.js'
import { Trouble } from '../parts/state.js'
import { Unknown } from '../parts/text.js'
import { countOf, plain } from '../words.js'

/** An answer as the parts of the overview share it. */
export type Answered<T> = ReturnType<typeof useAnswer<T>>

/** The first thing that is read: facts, each with where to look. No threshold makes one of them good or bad. */
export function Headline({
  findings,
  nodes,
  sources,
}: {
  findings: Answered<FindingPage>
  nodes: Answered<Listed<DeliveryNode>>
  sources: Answered<{ items: SourceRow[] }>
}): JSX.Element {
  const silent = nodes.value?.items.filter(({ stale }) => stale).length
  const mute = sources.value?.items.filter(({ answered }) => !answered)
  const found = findings.value && `${findings.value.items.length}${findings.value.has_more ? '+' : ''}`
  if (findings.problem?.code === NOT_TOLD) return <Trouble problem={findings.problem} />
  return (
    <p class="headline">
      <a class={found && found !== '0' ? 'bad' : ''} href={hrefOf('/findings')}>
        {found === null ? <Unknown /> : found === '0' ? 'no' : found} finding{found !== '1' && 's'}
      </a>
      <a class={silent ? 'bad' : ''} href={hrefOf('/delivery/nodes')}>
        {silent === undefined ? <Unknown /> : `${countOf(silent)} of ${countOf(nodes.value?.items.length)}`} nodes
        silent
      </a>
      <a class={mute?.length ? 'bad' : ''} href={hrefOf('/sources')}>
        {mute === undefined ? (
          <>
            sources <Unknown />
          </>
        ) : mute.length === 0 ? (
          'all sources answer'
        ) : (
          `no answer from ${mute.map(({ source }) => plain(source)).join(', ')}`
        )}
      </a>
    </p>
  )
}
