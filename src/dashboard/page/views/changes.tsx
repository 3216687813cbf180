/** What changed between two recorded instants: new, changed and gone rows of each family, with their pages as of then. */
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { compareRows, type FieldChange } from '../../../incident/compare.js'
import { type Address, hrefAt, hrefOf } from '../address.js'
import { CHANGES, incidentIn, recordedPath, unavailableReason } from '../answers.js'
import { currentInstant, present } from '../fetch-route.js'
import { useAnswer } from '../hooks.js'
import { NotRecorded, TimeField } from '../incident.js'
import { spanOf } from '../instants.js'
import { hrefOfRecord } from '../parts/field.js'
import type { Filter } from '../parts/filters.js'
import type { Listed } from '../parts/list.js'
import { ProblemNote } from '../parts/state.js'
import { Text } from '../parts/text.js'
import { countOf, labelOf, spacedName, timeOf } from '../words.js'
import { CALLS, ENDED_CALLS } from './calls.js'
import { COMMANDS, MAILBOXES } from './commands.js'
import { CONNECTIONS } from './connections.js'
import { CONTEXTS } from './contexts.js'
import { NODES } from './nodes.js'
import { SESSIONS, SITES } from './sessions.js'
import { WINDOWS } from './windows.js'

type Row = Readonly<Record<string, unknown>>

const FINDINGS = {
  path: '/findings',
  title: 'Findings',
  keyOf: ({ finding_id }: { finding_id: string }) => finding_id,
}

interface Compared {
  path: string
  title: string
  filters?: readonly Filter[]
  // biome-ignore lint/suspicious/noExplicitAny: the records of a list are its own matter
  keyOf(row: any): string
}

/** Lists that are compared, and the field that has the id of a row. */
const COMPARED: readonly (readonly [view: Compared, id: string])[] = [
  [FINDINGS, ''],
  [CONNECTIONS, 'connection_id'],
  [COMMANDS, 'command_id'],
  [CALLS, 'correlation_id'],
  [ENDED_CALLS, 'correlation_id'],
  [CONTEXTS, 'context_id'],
  [WINDOWS, 'window_id'],
  [SITES, 'site_id'],
  [SESSIONS, 'session_id'],
  [MAILBOXES, 'client_id'],
  [NODES, 'node_id'],
]

/** Rows of a list that are read, lines that are shown of it, rows that a line names, and fields of a change. */
const [READ, LINES, NAMED, FIELDS] = [500, 12, 3, 3]
const MINUTE_MS = 60_000
/** Spans that are looked for most often, in minutes. */
const SPANS = [1, 5, 30]

/** Rows of `own` by id. Beyond the last one that `other` has too, a list that was cut does not say what is new or gone. */
function comparable(own: Listed<Row>, other: Listed<Row>, keyOf: Compared['keyOf']): Map<string, Row> {
  const known = new Set(other.items.map(keyOf))
  const end = other.has_more ? own.items.findLastIndex((row) => known.has(keyOf(row))) + 1 : own.items.length
  // The evidence of a finding differs with each reading.
  return new Map(own.items.slice(0, end).map(({ evidence, ...row }) => [keyOf(row), row]))
}

const wordOf = (value: unknown) => (value == null ? '–' : spacedName(String(value)))

interface Change {
  row: Row
  /** An instant at which it was there. */
  at: number
}

/** The change in words: rows of which the same is to say stand on one line. Values that only one row has are left out. */
function changeIn(fields: readonly FieldChange[]): string {
  const isWord = (value: unknown) => typeof value !== 'object' && !/\d{3}/.test(String(value))
  const shown = fields
    .slice(0, FIELDS)
    .map(({ field, before, after }) =>
      isWord(before ?? '') && isWord(after ?? '')
        ? `${labelOf(field)} ${wordOf(before)} → ${wordOf(after)}`
        : labelOf(field),
    )
  return shown.join(', ') + (fields.length > FIELDS ? ` and ${fields.length - FIELDS} more` : '')
}

/** What a row that came or went was. */
function stateIn({ kind, state, status, outcome, action, ended_reason, terminal }: Row): string {
  const words = [
    kind,
    state ?? status ?? outcome ?? action,
    ended_reason ?? (terminal as Row | null | undefined)?.reason,
  ]
  return words.filter(Boolean).map(wordOf).join(' ')
}

/** A row that leads to its page as of then. */
function Name({ change: { row, at }, id }: { change: Change; id: string }): JSX.Element {
  const { kind, subject, user_id, owner = user_id, client_id } = row
  const names = subject ? Object.values(subject) : [owner, client_id, row[id]]
  const hash = subject ? hrefOf(FINDINGS.path, { kind: String(kind) }) : hrefOfRecord(id, row)
  const short = [...new Set(names.filter(Boolean))].map((name) => String(name).replace(/^.{20,}(?=.{8}$)/, '…'))
  return (
    <a href={hrefAt(at, hash)} title={names.join(' / ')}>
      <Text value={short.join(' / ')} />
    </a>
  )
}

interface FamilyProps {
  view: Compared
  id: string
  from: number
  to: number
}

/** What changed in one list. */
function Family({ view: { path, title, keyOf, filters = [] }, id, from, to }: FamilyProps): JSX.Element | null {
  // What had ended before is the same in both.
  const query = `?limit=${READ}${filters.some(({ name }) => name === 'from') ? `&from=${from}` : ''}`
  const before = useAnswer<Listed<Row>>(`/at/${from}${path}${query}`)
  const after = useAnswer<Listed<Row>>(`/at/${to}${path}${query}`)
  const [a, b] = [before.value, after.value]
  const found = useMemo(() => {
    if (!a || !b) return null
    const [was, is] = [comparable(a, b, keyOf), comparable(b, a, keyOf)]
    const { added, changed, gone, unchanged } = compareRows(was, is)
    const lines = new Map<string, Change[]>()
    const add = (line: string, row: Row | undefined, at: number) =>
      row && lines.set(line, [...(lines.get(line) ?? []), { row, at }])
    for (const key of added) add(`+ ${stateIn(is.get(key) ?? {})}`, is.get(key), to)
    for (const { id: key, fields } of changed) add(`~ ${changeIn(fields)}`, is.get(key), to)
    for (const key of gone) add(`− ${stateIn(was.get(key) ?? {})}`, was.get(key), from)
    const counts = [`${added.length} new`, `${changed.length} changed`, `${gone.length} gone`, `${unchanged} unchanged`]
    return {
      lines: [...lines].sort(([, one], [, other]) => other.length - one.length),
      said:
        counts.filter((count) => !count.startsWith('0 ')).join(' · ') ||
        (a.has_more || b.has_more ? 'not comparable' : 'none'),
    }
  }, [a, b])
  const problem = before.problem ?? after.problem
  if (problem?.status === 501 || problem?.status === 403) return null
  const lines = found?.lines ?? []
  return (
    <section class="card">
      <h2>{title}</h2>
      <span class="state">
        {problem ? 'not recorded' : (found?.said ?? <span class="loading">loading</span>)}
        {(a?.has_more || b?.has_more) && ` · a sample: the first ${READ} of each time`}
      </span>
      <ul class="plain">
        {lines.slice(0, LINES).map(([line, changes]) => (
          <li key={line}>
            <Text value={line} /> {changes[1] && <b>{countOf(changes.length)} × </b>}
            {changes.slice(0, NAMED).map((change, i) => [i > 0 && ', ', <Name key={i} change={change} id={id} />])}
            {changes.length > NAMED && <span class="dim"> and {countOf(changes.length - NAMED)} more</span>}
          </li>
        ))}
        {lines.length > LINES && <li class="dim">{countOf(lines.length - LINES)} more</li>}
      </ul>
    </section>
  )
}

export function ChangesPage({ address: { query } }: { address: Address }): JSX.Element {
  const absent = unavailableReason(CHANGES)
  const instant = currentInstant()
  const to = useMemo(() => instant ?? present(), [instant, query])
  const path = recordedPath(to)
  const { problem } = useAnswer(absent ? null : path)
  const recorded = spanOf(incidentIn(path))
  const from = Math.max(Number(query.get('from')) || to - 5 * MINUTE_MS, recorded?.from ?? 0)
  const since = (at: number) => hrefOf(CHANGES, { from: `${at}` })
  return (
    <>
      <header class="page">
        <h1>What changed</h1>
        {recorded && (
          <>
            <p class="dim">
              From {timeOf(from)} to {timeOf(to)}.
            </p>
            <div class="add">
              {SPANS.map((minutes) => (
                <a key={minutes} class="chip" href={since(to - minutes * MINUTE_MS)}>
                  last {minutes} min
                </a>
              ))}
              <TimeField label="from" onChoose={(at) => location.assign(since(at))} />
            </div>
          </>
        )}
      </header>
      {absent && <ProblemNote problem={absent} />}
      {problem && <NotRecorded problem={problem} />}
      {recorded &&
        COMPARED.map(([view, id]) => <Family key={view.path + from + to} view={view} id={id} from={from} to={to} />)}
    </>
  )
}
