/** `relayscope why`: why a command has not arrived, link by link. */
import type { DeliveryWhy } from '../internal/views/why-links.js'
import { parse, UsageError } from './arguments.js'
import { createReader, type Reader, readKey, readTarget } from './reader/reader.js'
import { cellOf, columnsOf, print, safeJson, wrap } from './text/table.js'

export const WHY_HELP = `relayscope why: why a command has not arrived, link by link

  npx relayscope why http://127.0.0.1:8080/ops/diagnostics sync-0042

  --user ID        the user of the command
  --client ID      the client of the command. Without both, the command is looked up in
                   the list of retained commands
  --json           JSON; also if the output is not a terminal
  --key-file FILE  the admin key (default SERVICE_ADMIN_KEY)

Exit codes: 0 answered; 1 refused, unreachable or not found; 2 wrong usage.
`

const OPTIONS = {
  user: { type: 'string' },
  client: { type: 'string' },
  json: { type: 'boolean', default: false },
  'key-file': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

/** Maximum number of pages of `/delivery/commands` that are read to find the command. */
const PAGES = 20

interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

interface Key {
  user_id: string
  client_id: string
  command_id: string
}

interface Listed {
  user_id: string | null
  client_id: string | null
  admission: { scope_id: string }
}

/** The body of `route`. @throws Error with the problem as its message */
async function read<T>({ fetchRoute }: Reader, route: string): Promise<T> {
  const result = await fetchRoute(route)
  if (result.problem !== undefined) throw new Error(result.problem)
  return result.value as T
}

/** The keys of all retained commands with the id. */
async function find(reader: Reader, command_id: string, given: Partial<Key>): Promise<Key[]> {
  const found: Key[] = []
  let cursor: string | null = null
  for (let page = 0; page < PAGES; page++) {
    const query = new URLSearchParams({ command_id, limit: '100', ...given, ...(cursor === null ? {} : { cursor }) })
    const listed = await read<{ items: Listed[]; has_more: boolean; next_cursor: string | null }>(
      reader,
      `/delivery/commands?${query}`,
    )
    for (const { user_id, client_id, admission } of listed.items)
      found.push({ user_id: user_id ?? admission.scope_id, client_id: client_id ?? admission.scope_id, command_id })
    if (!listed.has_more) return found
    cursor = listed.next_cursor
  }
  // The one that was found may not be the only one.
  if (found.length !== 1) throw new Error('too many retained commands to search: use --user and --client')
  return found
}

/** One word for a shell: ids are written by clients. */
const quoted = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

async function keyOf(reader: Reader, command_id: string, given: Partial<Key>): Promise<Key> {
  const { user_id, client_id } = given
  if (user_id !== undefined && client_id !== undefined) return { user_id, client_id, command_id }
  const found = await find(reader, command_id, given)
  const [only, ...others] = found
  if (!only)
    throw new Error(`no retained command has the id ${command_id}. Use --user and --client to explain it anyway`)
  if (others.length === 0) return only
  const owners = found.slice(0, 10).map((key) => `--user ${quoted(key.user_id)} --client ${quoted(key.client_id)}`)
  throw new Error(`${found.length} commands have the id ${command_id}; use one of\n${owners.join('\n')}`)
}

/** Where the text of a link begins. */
const INDENT = 24

const MARKS = { true: 'yes', false: 'NO', null: '?' } as const

function linesOf({
  user_id,
  client_id,
  command_id,
  verdict,
  links,
  not_looked_at,
  completeness,
}: DeliveryWhy): string[] {
  const lines = [`command ${command_id} for client ${client_id} of user ${user_id}`]
  for (const { link, holds, means, does_not_mean, evidence } of links) {
    const isVerdict = link === verdict?.link
    lines.push(`${isVerdict ? '>' : ' '} ${MARKS[`${holds}`].padEnd(4)}${link.replaceAll('_', ' ').padEnd(18)}${means}`)
    if (isVerdict) lines.push(`${' '.repeat(INDENT)}${does_not_mean}`)
    const fields = evidence.map(({ field, value }) => `${field} ${cellOf(value)}`)
    if (fields.length > 0) lines.push(`${' '.repeat(INDENT)}${fields.join(', ')}`)
  }
  for (const { link, source, reason } of not_looked_at)
    lines.push(`not read for ${link.replaceAll('_', ' ')}: ${source} (${reason.replaceAll('_', ' ')})`)
  if (!completeness.complete) lines.push(`a sample: incomplete in ${completeness.truncated_sources.join(', ')}`)
  lines.push(
    verdict
      ? `${verdict.holds === false ? 'broken at' : 'unknown from'}: ${verdict.link.replaceAll('_', ' ')}`
      : 'every link holds',
  )
  return lines
}

/**
 * Fetches and prints. @returns the exit code.
 *
 * @throws UsageError for invalid arguments
 */
export async function why(
  args: readonly string[],
  env: Record<string, string | undefined>,
  out: Output,
  err: Output,
): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(out, WHY_HELP.trimEnd())
    return 0
  }
  const [target, command_id, ...rest] = positionals
  if (command_id === undefined || rest.length > 0) throw new UsageError('expected one URL and one command id')
  const reader = createReader(readTarget(target), await readKey(values['key-file'], env))
  const { user, client } = values
  try {
    const given = { ...(user !== undefined && { user_id: user }), ...(client !== undefined && { client_id: client }) }
    const key = await keyOf(reader, command_id, given)
    const answer = await read<DeliveryWhy>(reader, `/delivery/why?${new URLSearchParams({ ...key })}`)
    if (out.isTTY === true && !values.json) {
      const width = columnsOf(out)
      print(
        out,
        linesOf(answer)
          .map((line) => wrap(line, width, INDENT))
          .join('\n'),
      )
    } else out.write(`${safeJson(answer)}\n`)
    return 0
  } catch (error) {
    print(err, `relayscope: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
}
