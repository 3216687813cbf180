/** `relayscope diff`: what is new, gone and changed between two incidents. */
import { diffIncidents, type IncidentDiff, type RouteDiff } from '../../incident/diff.js'
import type { Incident } from '../../incident/format.js'
import { parse, UsageError } from '../arguments.js'
import { readKey, readTarget } from '../reader/reader.js'
import { print, safeJson, visible } from '../text/table.js'
import { captureFrom, deploymentText, type Output } from './capture.js'
import { readIncidentFile } from './files.js'

const DIFF_HELP = `relayscope diff: shows what changed between two incidents

  npx relayscope diff before.json after.json
  npx relayscope diff before.json http://127.0.0.1:8080/ops/diagnostics

Each is a file, or the URL of a router, which is captured now. Rows that one of them may lack
are reported as unknown, not as new or gone.

  --json           the difference as one JSON object
  --key-file FILE  the admin key for a URL (default SERVICE_ADMIN_KEY)

Exit codes: 0 compared; 1 a file or a router cannot be read; 2 wrong usage.
`

const OPTIONS = {
  json: { type: 'boolean', default: false },
  'key-file': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

/** Lines of one kind that are shown; a terminal has no use for thousands. */
const SHOWN = 20

const some = (lines: readonly string[]): string[] =>
  lines.length <= SHOWN ? [...lines] : [...lines.slice(0, SHOWN), `  … and ${lines.length - SHOWN} more`]

const formatValue = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value))

function* linesOfRoute({ route, about, added, gone, changed, unchanged, unknown }: RouteDiff): Generator<string> {
  const named = (id: string) => (about[id] ? `${id} (${about[id]})` : id)
  yield `${route}: ${added.length} new, ${gone.length} gone, ${changed.length} changed, ${unchanged} unchanged`
  yield* some(added.map((id) => `  + ${named(id)}`))
  yield* some(gone.map((id) => `  - ${named(id)}`))
  yield* some(
    changed.map(({ id, fields }) => {
      const changes = fields.map(
        ({ field, before, after }) => `${field} ${formatValue(before)} → ${formatValue(after)}`,
      )
      return `  ~ ${id && `${named(id)}: `}${changes.join(', ')}`
    }),
  )
  for (const { in: side, ids, why } of unknown)
    yield `  ? unknown${ids.length > 0 ? ` for ${ids.length} rows` : ' what else'}: incomplete in ${side} (${why})`
}

/** The difference as a person reads it. */
export function* linesOf({ a, b, routes }: IncidentDiff): Generator<string> {
  yield `a: ${deploymentText(a.deployment)} at ${a.at}`
  yield `b: ${deploymentText(b.deployment)} at ${b.at}`
  if (a.deployment === null || b.deployment === null) yield 'an id is missing: these may be different deployments'
  else if (a.deployment !== b.deployment) yield 'these are different deployments'
  if (routes.length === 0) yield 'no difference'
  for (const route of routes) yield* linesOfRoute(route)
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
  const read = (text: string): Promise<Incident> =>
    /^https?:/.test(text) ? captureFrom(readTarget(text), key) : readIncidentFile(text)
  try {
    const [a, b] = [await read(positionals[0] as string), await read(positionals[1] as string)]
    const found = await diffIncidents(a, b)
    if (values.json) print(out, safeJson(found))
    else for (const line of linesOf(found)) print(out, visible(line))
    return 0
  } catch (error) {
    if (!(error instanceof Error) || error instanceof UsageError) throw error
    print(err, `relayscope: ${visible(error.message)}`)
    return 1
  }
}
