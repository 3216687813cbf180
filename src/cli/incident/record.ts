/** `relayscope record`: what a router answers over time, as a directory of bounded segments. */

import { openRecordingDirectory } from '../../adapters/recording-directory.js'
import { createFlightRecorder } from '../../incident/recorder.js'
import { parse, UsageError } from '../arguments.js'
import { readKey, readTarget } from '../reader/reader.js'
import { print, visible } from '../text/table.js'
import { headersOf, readNumber, remoteRouter } from './capture.js'
import { readSpan } from './files.js'
import { bytesText, counted, createProgress, type Output } from './progress.js'

const RECORD_HELP = `relayscope record: records the state of a relay over time to a directory

  npx relayscope record http://127.0.0.1:8080/ops/diagnostics --keep 6h -o recording
  npx relayscope open recording --at 03:00

  -o, --output DIRECTORY  output directory; created if missing
  --keep TIME             how much to keep: 30m, 6h, 2d (default 6h)
  --max-bytes N           maximum size of all segments (default 268435456)
  --key-file FILE         the admin key (default SERVICE_ADMIN_KEY); never written

While it does not run or the router is unreachable, the recording has a gap.

Exit codes: 0 ended by SIGINT or SIGTERM; 1 refused, unreachable, or write failed; 2 wrong usage.
`

const OPTIONS = {
  output: { type: 'string', short: 'o' },
  keep: { type: 'string', default: '6h' },
  'max-bytes': { type: 'string', default: '268435456' },
  'key-file': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

const BYTES_MAX = 1_099_511_627_776

/** Records until it receives a signal. @returns the exit code. @throws UsageError for invalid arguments. */
export async function record(
  args: readonly string[],
  { env, signalled }: { env: Record<string, string | undefined>; signalled: Promise<unknown> },
  out: Output,
  err: Output,
): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(out, RECORD_HELP.trimEnd())
    return 0
  }
  const [target, ...rest] = positionals
  if (rest.length > 0) throw new UsageError('record takes one URL')
  const url = readTarget(target)
  if (values.output === undefined) throw new UsageError('Missing required option --output DIRECTORY, or -o DIRECTORY')
  const keepMs = readSpan('keep', values.keep)
  const maxBytes = readNumber('max-bytes', values['max-bytes'], BYTES_MAX) as number
  const key = await readKey(values['key-file'], env)
  const progress = createProgress(err)
  function tell(error: unknown): void {
    progress.clear()
    print(err, `relayscope: ${visible(error instanceof Error ? error.message : String(error))}`)
  }
  print(out, `recording ${url} to ${values.output}, the last ${values.keep}`)
  try {
    const directory = openRecordingDirectory({ path: values.output, keepMs, maxBytes })
    let bytes = 0
    async function append(text: string): Promise<void> {
      await directory.append(text)
      bytes += text.length
      const { from = 0, to = 0 } = recorder.span() ?? {}
      progress.show(`${counted(Math.round((to - from) / 1_000), 'second')} in memory, ${bytesText(bytes)} written`)
    }
    let isStarted = false
    const recorder = createFlightRecorder({
      router: remoteRouter(url),
      headers: headersOf(key),
      keepMs,
      files: { begin: (at) => directory.begin(at), append, close: () => directory.close() },
      onError: (error) => void (isStarted && tell(error)),
    })
    // A recorder keeps no process alive: this one is there for it.
    const alive = setInterval(() => {}, 60_000)
    try {
      await recorder.started
      isStarted = true
      await signalled
    } finally {
      clearInterval(alive)
      progress.clear()
      await recorder.close()
    }
    return 0
  } catch (error) {
    if (!(error instanceof Error)) throw error
    tell(error)
    return 1
  }
}
