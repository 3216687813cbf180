/** `relayscope open`: an incident behind the same router and dashboard, on this machine, without the deployment. */
import { createDashboard } from '../../dashboard/dashboard.js'
import { createReplay, type ReplaySource } from '../../incident/recording.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { MOUNT_PATHS, parse, readPort, UsageError } from '../arguments.js'
import { serve, underOneRoof } from '../serve.js'
import { print, visible } from '../text/table.js'
import { summaryOf } from './capture.js'
import { readAt, readIncidentFile } from './files.js'
import type { Output } from './progress.js'

const OPEN_HELP = `relayscope open: serves an incident or a recording with the dashboard, offline

  npx relayscope open incident.json
  npx relayscope open recording --at 03:00

  --port NUMBER  port on 127.0.0.1 (default 0: a free one)
  --at TIME      instant of a recording: 03:00 (the latest one, local time), or ISO 8601 (default its end)

The clock stays at the time of the capture. Routes that were not captured return 503.

Exit codes: 0 ended by SIGINT or SIGTERM; 1 the file or the port cannot be used; 2 wrong usage.
`

const OPTIONS = {
  port: { type: 'string', default: '0' },
  at: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

const CLOSE_TIMEOUT_MS = 1_000

/** @param tell Receives a sentence for each segment that is damaged. */
async function sourceOf(path: string, at: string | undefined, tell: (line: string) => void): Promise<ReplaySource> {
  const read = await readIncidentFile(path)
  if (!('damaged' in read)) {
    if (at !== undefined) throw new UsageError('--at is for a recording: a capture shows one instant')
    return { at: () => read }
  }
  for (const { name, line } of read.damaged) tell(`${name} is damaged: line ${line} and what follows is not shown`)
  const first = at === undefined ? read.to : readAt('at', at, read.to)
  if (first < read.from || first > read.to)
    throw new UsageError(`--at must be within the recording, from ${toTimestamp(read.from)} to ${toTimestamp(read.to)}`)
  return { at: (instant) => read.at(instant ?? first) }
}

/** Serves until it receives a signal. @returns the exit code. @throws UsageError for files that cannot be opened. */
export async function open(
  args: readonly string[],
  signalled: Promise<unknown>,
  out: Output,
  err: Output,
): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(out, OPEN_HELP.trimEnd())
    return 0
  }
  const [path, ...rest] = positionals
  if (path === undefined || rest.length > 0) throw new UsageError('open takes one file or directory')
  const port = readPort(values.port)
  try {
    const tell = (line: string) => print(err, `relayscope: ${visible(line)}`)
    const source = await sourceOf(path, values.at, tell)
    const replay = await createReplay(source)
    const dashboard = createDashboard({ api: '', prefix: MOUNT_PATHS.dashboard, title: 'incident' })
    const server = await serve(underOneRoof(replay, [dashboard]), {
      host: '127.0.0.1',
      port,
      allowedHosts: ['loopback'],
      closeTimeoutMs: CLOSE_TIMEOUT_MS,
    })
    for (const line of summaryOf(await source.at(null))) tell(line)
    print(out, `serving the incident (not live) at ${server.url}/`)
    print(out, `dashboard: ${server.url}${dashboard.prefix}/`)
    await signalled
    await server.close()
    return 0
  } catch (error) {
    if (!(error instanceof Error) || error instanceof UsageError) throw error
    print(err, `relayscope: ${visible(error.message)}`)
    return 1
  }
}
