/** Sources and capabilities: what can be asked here, and who answers now. */
import type { JSX } from 'preact'
import type { Capabilities } from '../../../internal/contract/capabilities.js'
import type { DeduplicatorSummaryAnswer } from '../../../internal/contract/deduplicator.js'
import type { SourceRow } from '../../../internal/diagnostics/sources.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/field.js'
import { problemName } from '../parts/state.js'
import { Table, type TableView } from '../parts/table.js'
import { spacedName } from '../words.js'

const ABSENT = <span class="dim">Not part of this deployment.</span>

const SOURCES: TableView<SourceRow> = {
  keyOf: ({ source }) => source,
  markOf: ({ answered }) => (answered ? '' : 'bad'),
  columns: [
    { head: 'source', cell: ({ source }) => spacedName(source) },
    {
      head: 'now',
      width: 'min(24ch, 40vw)',
      cell: ({ answered, code }) =>
        answered ? <span class="ok">✓ answered</span> : <span class="bad">✕ {problemName(code as string)}</span>,
    },
    'duration_ms',
    { head: 'warnings', cell: ({ warnings }) => warnings?.map(({ detail }) => detail).join(' ') ?? null },
  ],
}

export const SourcesPage = (): JSX.Element => (
  <>
    <Card isMain title="Sources" answer={useAnswer<{ items: SourceRow[] }>('/sources')} note="each was asked just now">
      {({ items }) => <Table label="Sources" rows={items} look={SOURCES} />}
    </Card>
    <Card
      title="Deduplicator"
      answer={useAnswer<DeduplicatorSummaryAnswer>('/deduplicator/summary')}
      note="messages that have been seen"
    >
      {(summary) => <Fields record={summary} />}
    </Card>
    <Card title="Capabilities" answer={useAnswer<Capabilities>('/capabilities')} note="what can be asked">
      {({ extensions, ...offered }) => (
        <Fields
          record={{ ...offered, ...extensions }}
          show={Object.fromEntries(Object.entries(offered).flatMap(([name, is]) => (is ? [] : [[name, ABSENT]])))}
        />
      )}
    </Card>
  </>
)
