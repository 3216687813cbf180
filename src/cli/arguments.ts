/** What the command line says, and what it may say. */

import { type ParseArgsConfig, parseArgs } from 'node:util'
import { isTraceUrl } from '../dashboard/dashboard.js'
import { shown as shownValue } from '../internal/contract/checks.js'
import { isOrigin } from '../internal/contract/options.js'
import { createHostGuard } from '../internal/http/guard.js'
import { decodeSegment, parsePrefix } from '../internal/http/target.js'
import { ShownFamilies } from '../redis/composition/families.js'
import { checkDeploymentId } from '../redis/store/keys.js'

export const COMMANDS = [
  'observe',
  'get',
  'why',
  'status',
  'mcp',
  'capture',
  'open',
  'diff',
  'record',
  'remove',
  'docs',
] as const

export const HELP = `relayscope: read-only diagnostics of a relay

  relayscope observe  serves the diagnostics of one deployment from its Redis
  relayscope get      prints one response of a router
  relayscope why      explains why a command has not arrived
  relayscope status   prints the overview of a relay
  relayscope mcp      serves the diagnostics of a router to an agent over stdio
  relayscope capture  writes the current state of a relay to a file
  relayscope open     serves such a file with the dashboard, offline
  relayscope diff     shows what changed between two such files
  relayscope record   records the state of a relay over time to a directory
  relayscope remove   deletes everything that a deployment has in its Redis
  relayscope docs     prints the documentation, offline: a page, or what contains a word

Each command has --help. --version prints the version.
`

export const OBSERVE_HELP = `relayscope observe: serves the read-only diagnostics of one deployment from a separate process

  npx relayscope observe --redis redis://127.0.0.1:6379 --deployment prod

  --redis URL         the store, single or Cluster; also from RELAYSCOPE_REDIS_URL, which
                      keeps a password out of the list of processes
  --deployment ID     a deployment in that store (A-Z a-z 0-9 _ -, at most 64)
  --host ADDRESS      where to listen (default 127.0.0.1)
  --port NUMBER       default 4780; 0 takes a free one
  --prefix PATH       the path before every route (default none)
  --spill DIRECTORY   where the nodes put large payloads, if it is a shared directory
  --without NAME      a family that no host writes to, which would be shown as empty: connections,
                      contexts, browserWindows, rpc, history, deduplicator, delivery, sites,
                      sessions or subscriptions; repeatable
  --no-dashboard      serve the routes only, without /dashboard
  --trace-url URL     where the dashboard links trace ids, with {trace_id} in its place
  --metrics           also serve /metrics for Prometheus; send the key as a bearer token
  --mcp               also serve /mcp for agents on this machine or at --host
  --allow-host NAME   a host name by which agents on other machines reach /mcp; repeatable
  --cors ORIGIN       an origin whose pages may read the routes, https://ops.example.org; repeatable
  --legacy NAME,GROUP an older command stream to report on, and its consumer group
  --help, --version

SERVICE_ADMIN_KEY is the key that callers send as X-Admin-Key. Without it only this machine
is served, and any other --host is an error.

Exit codes: 0 ended by SIGINT or SIGTERM; 1 the store or the port cannot be used; 2 wrong usage.
`

const DEFAULT_PORT = 4_780

/** The default paths of what is served in addition to the routes. */
export const MOUNT_PATHS = { dashboard: '/dashboard', metrics: '/metrics', mcp: '/mcp' } as const

/** A command line that cannot be carried out. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export interface ObserveArguments {
  redis: string
  deployment: string
  host: string
  port: number
  prefix: string
  dashboard: boolean
  /** Where the dashboard links trace ids. */
  traceUrl: string | undefined
  metrics: boolean
  mcp: boolean
  /** Names by which others reach it, with or without their port. */
  allowHosts: string[]
  /** Origins whose pages may read the routes. */
  cors: string[]
  /** Families that are not shown. */
  without: string[]
  spill: string | undefined
  legacy: { stream: string; group: string } | undefined
}

const OPTIONS = {
  redis: { type: 'string' },
  deployment: { type: 'string' },
  host: { type: 'string', default: '127.0.0.1' },
  port: { type: 'string', default: String(DEFAULT_PORT) },
  prefix: { type: 'string', default: '' },
  spill: { type: 'string' },
  without: { type: 'string', multiple: true },
  legacy: { type: 'string' },
  'no-dashboard': { type: 'boolean', default: false },
  'trace-url': { type: 'string' },
  metrics: { type: 'boolean', default: false },
  mcp: { type: 'boolean', default: false },
  'allow-host': { type: 'string', multiple: true },
  cors: { type: 'string', multiple: true },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const

/** `text` without what follows the scheme of a URL: that may be a password. */
const masked = (text: string) => text.replace(/:\/\/.*/s, '://…')

/** An argument as an error shows it. */
const shown = (text: string) => shownValue(masked(text))

/** @throws UsageError, with a sentence that says what to change and repeats no password. */
export function readArguments(
  args: readonly string[],
  env: Record<string, string | undefined>,
): ObserveArguments | 'help' | 'observe help' | 'version' {
  const { values, positionals } = parse(args, OPTIONS)
  const [command, ...rest] = positionals
  if (values.help) return command === 'observe' ? 'observe help' : 'help'
  if (values.version) return 'version'
  if (command !== 'observe' || rest.length > 0)
    throw new UsageError(
      command === undefined
        ? `missing command: expected one of ${COMMANDS.join(', ')}`
        : `${shown(positionals.join(' '))} is unknown: the commands are ${COMMANDS.join(', ')}, one at a time`,
    )
  const served = { dashboard: !values['no-dashboard'], metrics: values.metrics, mcp: values.mcp }
  return {
    redis: readUrl(values.redis ?? env.RELAYSCOPE_REDIS_URL),
    deployment: readDeployment(values.deployment),
    host: values.host,
    port: readPort(values.port),
    prefix: readPrefix(values.prefix, served),
    ...served,
    traceUrl: readTraceUrl(values['trace-url'], served.dashboard),
    allowHosts: readHosts(values['allow-host'] ?? [], values.mcp),
    cors: readOrigins(values.cors ?? []),
    without: readFamilies(values.without ?? []),
    spill: values.spill,
    legacy: values.legacy === undefined ? undefined : readLegacy(values.legacy),
  }
}

/** @throws UsageError, in one sentence. */
export function parse<const T extends NonNullable<ParseArgsConfig['options']>>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    // Node explains at length how to pass a positional that looks like an option.
    throw new UsageError(masked(error instanceof Error ? (error.message.split('. ')[0] as string) : String(error)))
  }
}

/** @throws UsageError unless it is the URL of a store. */
export function readUrl(text: string | undefined): string {
  if (text === undefined || text === '') throw new UsageError('Missing required option --redis, e.g. redis://host:6379')
  const protocol = URL.canParse(text) ? new URL(text).protocol : ''
  if (protocol !== 'redis:' && protocol !== 'rediss:')
    throw new UsageError('--redis must be a redis:// or rediss:// URL')
  const { username, password, pathname } = new URL(text)
  if (!/^\/?\d*$/.test(pathname)) throw new UsageError('--redis may only have a database number after the host')
  if (decodeSegment(`${username}:${password}`) === null)
    throw new UsageError('--redis must have its user and password percent-encoded: % is %25')
  return text
}

/** @throws UsageError for a prefix that another mounted part already covers. */
function readPrefix(text: string, served: Record<keyof typeof MOUNT_PATHS, boolean>): string {
  const path = parsePath(text)
  for (const part of ['dashboard', 'metrics', 'mcp'] as const)
    if (served[part] && parsePrefix(MOUNT_PATHS[part]).covers(path))
      throw new UsageError(`--prefix must not be below ${MOUNT_PATHS[part]}, which is already served`)
  return path
}

function parsePath(text: string): string {
  try {
    return parsePrefix(text, '--prefix').path
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** @throws UsageError unless it is the id of a deployment. */
export function readDeployment(text: string | undefined): string {
  if (text === undefined) throw new UsageError('Missing required option --deployment')
  try {
    return checkDeploymentId(text)
  } catch {
    throw new UsageError(`--deployment must be 1 to 64 of A-Z a-z 0-9 _ -, not ${shown(text)}`)
  }
}

/** @throws UsageError for an invalid port. */
export function readPort(text: string): number {
  const port = Number(text)
  if (!/^[0-9]{1,5}$/.test(text) || port > 65_535)
    throw new UsageError(`--port must be a number from 0 to 65535, not ${shown(text)}`)
  return port
}

function readTraceUrl(text: string | undefined, isServed: boolean): string | undefined {
  if (text !== undefined && !isServed) throw new UsageError('--trace-url is for the dashboard, which is not served')
  if (text !== undefined && !isTraceUrl(text))
    throw new UsageError('--trace-url must be an http(s) URL with {trace_id} after its host, without credentials')
  return text
}

function readHosts(names: string[], isAsked: boolean): string[] {
  if (names.length > 0 && !isAsked)
    throw new UsageError('--allow-host is for --mcp: every other part answers to any name')
  for (const name of names) {
    try {
      createHostGuard([name])
    } catch {
      throw new UsageError(`--allow-host must be a host name, with or without its port, not ${shown(name)}`)
    }
  }
  return names
}

function readOrigins(origins: string[]): string[] {
  for (const origin of origins)
    if (!isOrigin(origin))
      throw new UsageError(`--cors must be an origin like https://ops.example.org, not ${shown(origin)}`)
  return origins
}

function readFamilies(names: string[]): string[] {
  const known = Object.keys(ShownFamilies.shape)
  for (const name of names)
    if (!known.includes(name)) throw new UsageError(`--without must be one of ${known.join(', ')}, not ${shown(name)}`)
  return names
}

function readLegacy(text: string): { stream: string; group: string } {
  const [stream, group, ...rest] = text.split(',')
  if (!stream || !group || rest.length > 0)
    throw new UsageError(`--legacy must be the name of a stream, a comma, and a group, not ${shown(text)}`)
  return { stream, group }
}
