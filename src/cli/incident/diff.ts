/** `relayscope diff`: what is new, gone and changed between two incidents. */
import { compareRows, type FieldChange } from '../../incident/compare.js'
import { diffIncidents, type IncidentDiff, type RouteDiff } from '../../incident/diff.js'
import type { Incident } from '../../incident/format.js'
import { isObject } from '../../internal/relay-client/wire.js'
import { parse, UsageError } from '../arguments.js'
import { readKey, readTarget } from '../reader/reader.js'
import { clip, columnsOf, print, safeJson, visible, wrap } from '../text/table.js'
import { captureFrom, deploymentText } from './capture.js'
import { readIncidentFile } from './files.js'
import { captureText, createProgress, type Output } from './progress.js'

const DIFF_HELP = `relayscope diff: shows what changed between two incidents

  npx relayscope diff before.json after.json
  npx relayscope diff before.json http://127.0.0.1:8080/ops/diagnostics

Each is a file, a recording (its last instant), or the URL of a router, which is captured now.
Rows that one of them may lack are reported as unknown, not as new or gone. Lines are as wide
as the terminal; --json has every value in full.

  --json           the difference as one JSON object
  --key-file FILE  the admin key for a URL (default SERVICE_ADMIN_KEY)

Exit codes: 0 compared; 1 a file or a router cannot be read; 2 wrong usage.
`

const OPTIONS = {
  json: { type: 'boolean', default: false },
  'key-file': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

/** Rows of one kind, and fields of one row, that are shown; a terminal has no use for thousands. */
const SHOWN = 20

const some = <T>(all: readonly T[], linesOfOne: (one: T) => string[], indent: string): string[] => [
  ...all.slice(0, SHOWN).flatMap(linesOfOne),
  ...(all.length > SHOWN ? [`${indent}… and ${all.length - SHOWN} more`] : []),
]

/** The ids that a row consists of, joined by slashes, without what else is part of its id. */
function nameOf(id: string): string {
  try {
    const parts: unknown = JSON.parse(id)
    if (Array.isArray(parts)) return parts.filter((part) => typeof part !== 'object').join('/')
  } catch {
    // Most ids are plain text.
  }
  return id
}

/** A value in at most `width` columns; a list that takes more is counted. */
function formatValue(value: unknown, width: number): string {
  if (value === undefined) return 'nothing'
  const text = visible(JSON.stringify(value))
  return Array.isArray(value) && text.length > width ? `${value.length} entries` : clip(text, width)
}

/** The entries of a list by their first field, or by themselves; `null` for anything else, or if two are the same. */
function entriesOf(value: unknown): Map<string, object> | null {
  if (!Array.isArray(value)) return null
  const entries = value.map((entry): [string, object] =>
    isObject(entry) ? [String(Object.values(entry)[0]), entry] : [JSON.stringify(entry), {}],
  )
  const byName = new Map(entries)
  return byName.size === value.length ? byName : null
}

function linesOfField({ field, before, after }: FieldChange, width: number): string[] {
  const name = clip(visible(field), width >> 1)
  const most = Math.max(10, (width - name.length - 10) >> 1)
  const [was, is] = [formatValue(before, most), formatValue(after, most)]
  const isCounted = / entries$/.test(was) || / entries$/.test(is)
  const [a, b] = isCounted ? [entriesOf(before), entriesOf(after)] : []
  if (!a || !b) return [`      ${name} ${was} → ${is}`]
  const { added, gone, changed } = compareRows(a, b)
  const named = (id: string) => `${field}[${visible(id)}]`
  return [
    ...added.map((id) => `      + ${named(id)}`),
    ...gone.map((id) => `      - ${named(id)}`),
    ...changed.flatMap(({ id, fields }) =>
      fields.flatMap((one) => linesOfField({ ...one, field: `${named(id)}.${one.field}` }, width)),
    ),
  ]
}

function* linesOfRoute(
  { route, about, added, gone, changed, unchanged, unknown }: RouteDiff,
  width: number,
): Generator<string> {
  const named = (id: string) => (about[id] ? `${nameOf(id)} (${about[id]})` : nameOf(id))
  yield `${route}: ${added.length} new, ${gone.length} gone, ${changed.length} changed, ${unchanged} unchanged`
  yield* some(added, (id) => [`  + ${named(id)}`], '  ')
  yield* some(gone, (id) => [`  - ${named(id)}`], '  ')
  const changes = ({ id, fields }: (typeof changed)[number]) => [
    ...(id === '' ? [] : [`  ~ ${named(id)}`]),
    ...some(
      fields.flatMap((field) => linesOfField(field, width)),
      (line) => [line],
      '      ',
    ),
  ]
  yield* some(changed, changes, '  ')
  for (const { in: side, ids, why } of unknown)
    yield `  ? unknown${ids.length > 0 ? ` for ${ids.length} rows` : ' what else'}: incomplete in ${side} (${why})`
}

/** The difference as a person reads it, in lines of at most `width` columns. */
export function* linesOf(diff: IncidentDiff, width: number): Generator<string> {
  for (const line of wholeLines(diff, width))
    if (line.startsWith('  ? ')) yield* wrap(visible(line), width, 4).split('\n')
    else yield clip(visible(line), width)
}

function* wholeLines({ a, b, routes }: IncidentDiff, width: number): Generator<string> {
  yield `a: ${deploymentText(a.deployment)} at ${a.at}`
  yield `b: ${deploymentText(b.deployment)} at ${b.at}`
  if (a.deployment === null || b.deployment === null) yield 'an id is missing: these may be different deployments'
  else if (a.deployment !== b.deployment) yield 'these are different deployments'
  if (routes.length === 0) yield 'no difference'
  for (const route of routes) yield* linesOfRoute(route, width)
}

/** Compares and prints. @returns the exit code. @throws UsageError for what cannot be compared. */
export async function diff(
  args: readonly string[],
  env: Record<string, string | undefined>,
  out: Output,
  err: Output,
): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(out, DIFF_HELP.trimEnd())
    return 0
  }
  if (positionals.length !== 2) throw new UsageError('diff takes two files or URLs')
  const key = await readKey(values['key-file'], env)
  const progress = createProgress(err)
  async function read(text: string): Promise<Incident> {
    progress.show(`reading ${visible(text)}`)
    if (!/^https?:/.test(text)) {
      const read = await readIncidentFile(text)
      return 'damaged' in read ? read.at(null) : read
    }
    return captureFrom(readTarget(text), key, { onProgress: (read) => progress.show(captureText(read)) })
  }
  try {
    const [a, b] = [await read(positionals[0] as string), await read(positionals[1] as string)]
    const found = await diffIncidents(a, b)
    progress.clear()
    if (values.json) print(out, safeJson(found))
    else for (const line of linesOf(found, columnsOf(out))) print(out, line)
    return 0
  } catch (error) {
    progress.clear()
    if (!(error instanceof Error) || error instanceof UsageError) throw error
    print(err, `relayscope: ${visible(error.message)}`)
    return 1
  }
}
