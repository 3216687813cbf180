/** Sources and capabilities: what can be asked here, and who answers now. */
import type { JSX } from 'preact'
import type { Capabilities } from '../../../contract/capabilities.js'
import type { DeduplicatorSummary } from '../../../contract/deduplicator.js'
import type { SourceRow } from '../../../diagnostics/sources.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/fields.js'
import { Table } from '../parts/table.js'
import { Json, Names } from '../parts/value.js'
import { plain } from '../words.js'

const answeredOf = ({ answered, code }: SourceRow) =>
  answered ? <span class="ok">✓ answered</span> : <span class="bad">✕ {plain(code ?? 'no answer')}</span>

export function SourcesPage(): JSX.Element {
  const sources = useAnswer<{ items: SourceRow[] }>('/sources')
  const capabilities = useAnswer<Capabilities>('/capabilities')
  const deduplicator = useAnswer<DeduplicatorSummary>('/deduplicator/summary')
  return (
    <>
      <Card isMain title="Sources" answer={sources} note="each was asked its cheapest question just now">
        {({ items }) => (
          <Table
            label="Sources"
            rows={items}
            keyOf={({ source }) => source}
            markOf={({ answered }) => (answered ? '' : 'bad')}
            columns={[
              { head: 'source', cell: ({ source }) => plain(source) },
              { head: 'answered', cell: answeredOf },
              { head: 'took, ms', cell: ({ duration_ms }) => duration_ms, isNumber: true },
            ]}
          />
        )}
      </Card>
      <Card title="Deduplicator" answer={deduplicator} note="messages that have been seen">
        {(summary) => <Fields record={summary} />}
      </Card>
      <Card title="Capabilities" answer={capabilities} note="what can be asked; not a readiness check">
        {({ extensions: { operations, ...extensions }, ...flags }) => (
          <>
            <p class="dim">Can be asked</p>
            <Names names={[...namesOf(flags, true), ...((operations as string[] | undefined) ?? [])].map(plain)} />
            <p class="dim">Not part of this deployment</p>
            <Names names={namesOf(flags, false).map(plain)} />
            <p class="dim">The host says</p>
            <Json value={extensions} />
          </>
        )}
      </Card>
    </>
  )
}

const namesOf = (flags: Record<string, unknown>, isThere: boolean) =>
  Object.keys(flags).filter((name) => flags[name] === isThere)
