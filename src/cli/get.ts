/** `relayscope get`: one answer of a router, as a table for a person and as JSON lines for a program. */
import { isNear } from '../internal/contract/checks.js'
import { ROUTES } from '../internal/diagnostics/routes.js'
import { parse, UsageError } from './arguments.js'
import { createReader, type Reader, readKey, readTarget } from './reader/reader.js'
import { cellOf, columnsOf, print, recordLines, safeJson, tableOf, visible } from './text/table.js'

export const GET_HELP = `relayscope get: prints one response of a diagnostics router

  npx relayscope get http://127.0.0.1:8080/ops/diagnostics '/connections?status=connected'

  --all            follow the cursor to the end of a list, at most 100 pages
  --json           print JSON lines; the default if the output is not a terminal
  --key-file FILE  the admin key (default SERVICE_ADMIN_KEY)

Exit codes: 0 answered; 1 refused or unreachable; 2 wrong usage.
`

const PAGES = 100

const OPTIONS = {
  all: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  'key-file': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

interface Page {
  items?: unknown
  has_more?: unknown
  next_cursor?: unknown
  omitted?: unknown
  completeness?: { complete?: unknown; truncated_sources?: unknown }
}

/** `route` with the cursor of the page before. */
function onwards(route: string, cursor: string): string {
  const [path, search] = route.split(/\?(.*)/s)
  const query = new URLSearchParams(search)
  query.set('cursor', cursor)
  return `${path}?${query}`
}

/** What says of a page that it is no whole. */
type Cut = Pick<Page, 'has_more' | 'omitted' | 'completeness'>

/** What is missing from the pages. It is printed to stderr, so that a table can be piped. */
function* cuts(pages: readonly Cut[], isAll: boolean): Generator<string> {
  const samples = pages.flatMap(({ completeness }) => (completeness?.complete === false ? [completeness] : []))
  const sources = new Set(samples.flatMap(({ truncated_sources }) => truncated_sources ?? []).map(cellOf))
  if (samples.length > 0) yield `a sample: incomplete in ${[...sources].join(', ') || 'some source'}`
  const hidden = pages.reduce((sum, { omitted }) => sum + (typeof omitted === 'number' ? omitted : 0), 0)
  if (hidden > 0) yield `${hidden} invalid records omitted`
  if (pages.at(-1)?.has_more === true)
    yield isAll ? `more than ${PAGES} pages: this is not all` : 'there are more: use --all'
}

/** The route that was meant by `path`: one whose literal segments differ from its own in at most two letters. */
function nearestRoute(path: string): string | undefined {
  const given = path.replace(/(?<=.)\/+$/, '').split('/')
  for (const edits of [0, 1, 2])
    for (const { path: template } of ROUTES) {
      const parts = template.split('/')
      const isMeant =
        parts.length === given.length &&
        parts.every((part, i) => part.startsWith('{') || isNear(decoded(given[i] as string), part, edits))
      const meant = parts.map((part, i) => (part.startsWith('{') ? given[i] : part)).join('/')
      if (isMeant && meant !== path) return meant
    }
  return undefined
}

const decoded = (segment: string): string => {
  try {
    return decodeURIComponent(segment).toLowerCase()
  } catch {
    return segment
  }
}

/** `problem`, with the route that was meant, if it says that there is none at `route`. */
function withSuggestion(problem: string, route: string): string {
  const meant = problem.startsWith('404 ') ? nearestRoute(route.split('?', 1)[0] as string) : undefined
  return meant === undefined ? problem : `${problem}. Did you mean ${visible(meant)}?`
}

/** The pages of a list, or the one answer. @throws the problem, as a text. */
async function* answers({ fetchRoute }: Reader, route: string, isAll: boolean): AsyncGenerator<Page> {
  let next = route
  for (let pages = 1; ; pages++) {
    const asked = await fetchRoute(next)
    if (asked.problem !== undefined) throw new Error(withSuggestion(asked.problem, route))
    const page = asked.value as Page
    yield page
    if (!isAll || page.has_more !== true || typeof page.next_cursor !== 'string' || pages === PAGES) return
    next = onwards(route, page.next_cursor)
  }
}

/** Columns that a table begins with: ids of the row, then its state. Instants are last, because they are wide. */
const FIRST: Readonly<Record<string, string>> = {
  '/delivery/nodes': 'node_id stale staleness_ms connection_waiters active_drainers updated_at',
  '/delivery/tenants': 'scope_id reserved_commands capacity oldest_deadline_at',
  '/delivery/commands': 'user_id client_id command_id state terminal.reason waits_for attempts.count action overdue',
  '/connections':
    'connection_id status ended_reason user_id client_id client_type node_id superseded_count last_seen_at connected_at',
  '/rpc/pending': 'correlation_id age_ms overdue action user_id client_id instance_id deadline_at',
  '/subscriptions': 'subscription_id pending dropped user_id session_id site_id node_id last_taken_at',
  '/findings': 'finding_id kind',
}

const firstOf = (route: string): readonly string[] => FIRST[route.split('?', 1)[0] as string]?.split(' ') ?? []

const isTabular = (value: unknown): value is object[] =>
  Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'object' && item !== null)

function printRecord(record: object, out: Output): void {
  const entries = Object.entries(record)
  print(out, recordLines(Object.fromEntries(entries.filter(([, value]) => !isTabular(value)))).join('\n'))
  for (const [name, value] of entries)
    if (isTabular(value)) print(out, `\n${name}\n${tableOf(value, columnsOf(out)).lines.join('\n')}`)
}

interface Gotten {
  readonly route: string
  readonly items: readonly object[]
  readonly page: Page
}

function printAnswer({ route, items, page }: Gotten, out: Output, err: Output): void {
  if (!Array.isArray(page.items)) {
    printRecord(page, out)
    return
  }
  const { lines, hidden } = tableOf(items, columnsOf(out), firstOf(route))
  print(out, items.length === 0 ? 'none' : lines.join('\n'))
  if (hidden.length > 0) print(err, `relayscope: columns not shown: ${hidden.join(', ')}. Use --json to see them`)
}

/**
 * Asks and prints. @returns the exit code.
 *
 * @throws UsageError for what cannot be asked.
 */
export async function get(
  args: readonly string[],
  env: Record<string, string | undefined>,
  out: Output,
  err: Output,
): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(out, GET_HELP.trimEnd())
    return 0
  }
  const [target, route = '/', ...rest] = positionals
  if (rest.length > 0 || !route.startsWith('/'))
    throw new UsageError('expected one URL and one route that begins with /')
  if (route.includes('#')) throw new UsageError('write # in a route as %23: the part after # would not be sent')
  const reader = createReader(readTarget(target), await readKey(values['key-file'], env))
  const isTable = out.isTTY === true && !values.json
  const items: object[] = []
  let last: Page = {}
  const pages: Cut[] = []
  try {
    for await (const page of answers(reader, route, values.all)) {
      last = page
      // Without its records: they have been printed.
      pages.push({ has_more: page.has_more, omitted: page.omitted, completeness: page.completeness })
      const found = Array.isArray(page.items) ? page.items : [page]
      if (isTable) items.push(...found)
      else for (const item of found) out.write(`${safeJson(item)}\n`)
    }
  } catch (error) {
    print(err, `relayscope: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
  if (isTable) printAnswer({ route, items, page: last }, out, err)
  for (const cut of cuts(pages, values.all)) print(err, `relayscope: ${cut}`)
  return 0
}
