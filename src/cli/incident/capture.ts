/** `relayscope capture`: what a router answers now, as one file. */

import { type CaptureOptions, captureIncident } from '../../incident/capture.js'
import { captureLast } from '../../incident/capture-last.js'
import { CaptureFailed, type Incident } from '../../incident/format.js'
import { shown } from '../../internal/contract/checks.js'
import { parse, UsageError } from '../arguments.js'
import { readKey, readTarget } from '../reader/reader.js'
import { print, visible } from '../text/table.js'
import { isFile, readSince, readSpan, writeWhole } from './files.js'
import { bytesText, captureText, counted, createProgress, type Output } from './progress.js'

const CAPTURE_HELP = `relayscope capture: writes the current state of a relay to a file

  npx relayscope capture http://127.0.0.1:8080/ops/diagnostics -o incident.json

  -o, --output FILE  a file that does not exist yet; - for standard output
  --user ID          only rows of this user
  --last TIME        what its recorder has of the last 10m, 1h, as a recording (without the options below)
  --since TIME       omit rows that ended before: 30m, 2h, 1d, or an ISO 8601 instant
  --redact           replace every id by a pseudonym; drop metadata, payloads and free text
  --max-bytes N      maximum size of the file (default and maximum 67108864)
  --key-file FILE    the admin key (default SERVICE_ADMIN_KEY); never written to the file

The file lists what is missing and why. Open it with: npx relayscope open incident.json

Exit codes: 0 captured; 1 refused, unreachable or interrupted; 2 wrong usage.
`

const OPTIONS = {
  output: { type: 'string', short: 'o' },
  user: { type: 'string' },
  last: { type: 'string' },
  since: { type: 'string' },
  redact: { type: 'boolean', default: false },
  'max-bytes': { type: 'string' },
  'key-file': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

/** A whole number of an option. @throws UsageError that names it. */
export function readNumber(name: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!/^\d{1,15}$/.test(text) || value < 1 || value > most)
    throw new UsageError(`--${name} must be a number from 1 to ${most}, not ${shown(text)}`)
  return value
}

/** The router at `url`, as a capture asks it. */
export const remoteRouter = (url: string) => ({ prefix: url, fetch: (request: Request) => fetch(request) })

/** The headers of a request with that key. */
export const headersOf = (key: string | null): Record<string, string> => (key === null ? {} : { 'x-admin-key': key })

/** Captures from `url` with that key. */
export const captureFrom = (url: string, key: string | null, options: CaptureOptions = {}): Promise<Incident> =>
  captureIncident(remoteRouter(url), { ...options, headers: headersOf(key) })

/** How a person reads the id of a deployment. A router without a shared store has none. */
export const deploymentText = (id: string | null): string =>
  id === null ? 'deployment without an id' : `deployment ${shown(id)}`

/** What an incident holds and what it lacks, line by line. */
export function* summaryOf({
  deployment,
  parts,
  missing,
  consistent,
  clocks,
  user,
  limited,
  redaction,
  recording,
}: Incident): Generator<string> {
  const rows = parts.reduce((sum, part) => sum + (part.rows?.length ?? 1), 0)
  const limits = [user !== null && `user ${user} only`, redaction !== null && 'redacted'].filter(Boolean)
  const note = limits.length > 0 ? ` (${limits.join(', ')})` : ''
  yield `${deploymentText(deployment.id)} at ${(clocks.node ?? clocks.observer).to}${note}: ${rows} records of ${parts.length} routes`
  if (limited) yield 'this is a part: the caller was not allowed to see everything'
  const gap = recording?.gap
  if (gap) yield `nothing was recorded from ${gap.from} to ${gap.to}: what follows is what was last known before`
  if (!consistent) yield 'the deployment changed during the capture: lists may contradict each other by what changed'
  for (const { route, reason, count, detail, of } of missing
    .filter(({ reason }) => reason !== 'not_deployed')
    .slice(0, 20))
    yield `${route}${of === null ? '' : ' (one key)'}: ${reason}${count === null ? '' : ` (${count})`}: ${detail}`
  const absent = missing.filter(({ reason }) => reason === 'not_deployed')
  if (absent.length > 0) yield `not part of the deployment: ${absent.map(({ route }) => route).join(', ')}`
}

/** Rejects once `signalled` has resolved. */
function abortedBy(signalled: Promise<unknown>): AbortSignal {
  const controller = new AbortController()
  void signalled.then(() => controller.abort(new CaptureFailed('interrupted: nothing was written')))
  return controller.signal
}

/** Captures and writes. @returns the exit code. @throws UsageError for what cannot be captured. */
export async function capture(
  args: readonly string[],
  { env, signalled }: { env: Record<string, string | undefined>; signalled: Promise<unknown> },
  out: Output,
  err: Output,
): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(out, CAPTURE_HELP.trimEnd())
    return 0
  }
  const [target, ...rest] = positionals
  if (rest.length > 0) throw new UsageError('capture takes one URL')
  const url = readTarget(target)
  const { output, user, since, redact } = values
  if (output === undefined) throw new UsageError('Missing required option --output FILE, or -o FILE')
  if (output !== '-' && (await isFile(output)))
    throw new UsageError(`${shown(output)} exists, and an incident is not overwritten: choose another name`)
  const maxBytes = readNumber('max-bytes', values['max-bytes'], 67_108_864)
  const key = await readKey(values['key-file'], env)
  const signal = abortedBy(signalled)
  const progress = createProgress(err)
  try {
    if (values.last !== undefined) {
      if (user !== undefined || since !== undefined || redact || maxBytes !== undefined)
        throw new UsageError('--last takes no other option than --output and --key-file')
      const text = await captureLast(remoteRouter(url), {
        headers: headersOf(key),
        lastMs: readSpan('last', values.last),
        onProgress: (captured, of, characters) =>
          progress.show(`${captured} of ${counted(of, 'instant')}, ${bytesText(characters)}`),
        signal,
      })
      progress.clear()
      if (output === '-') out.write(text)
      else await writeWhole(output, text, signal)
      return 0
    }
    const incident = await captureFrom(url, key, {
      redact,
      onProgress: (read) => progress.show(captureText(read)),
      signal,
      ...(user === undefined ? {} : { user }),
      ...(since === undefined ? {} : { since: readSince('since', since, Date.now()) }),
      ...(maxBytes === undefined ? {} : { maxBytes }),
    })
    progress.clear()
    if (output === '-') out.write(`${JSON.stringify(incident)}\n`)
    else await writeWhole(output, `${JSON.stringify(incident)}\n`, signal)
    for (const line of summaryOf(incident)) print(err, `relayscope: ${visible(line)}`)
    return 0
  } catch (error) {
    progress.clear()
    if (!(error instanceof Error) || error instanceof UsageError) throw error
    print(err, `relayscope: ${visible(error.message)}`)
    return 1
  }
}
