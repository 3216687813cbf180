/** Captures what a router with a recorder answered in the last minutes. */
import { toTimestamp } from '../internal/contract/ids.js'
import {
  custom,
  defineOptions,
  duration,
  func,
  type Input,
  readOptions,
  timer,
  withMethods,
} from '../internal/contract/options.js'
import { isObject, isText } from '../internal/relay-client/wire.js'
import { type Change, follow } from './follow.js'
import { CaptureFailed } from './format.js'
import { SEGMENT_BYTES, snapshotLine } from './recording.js'
import { type CapturedRouter, describe, type FetchReply, fetcherOf, offeredParts, recordedHeader } from './source.js'

/** Options of `captureLast`. */
export const CaptureLastOptions = defineOptions({
  /** Headers of every request, with the key of the caller. Never written. @default none */
  headers: custom<Readonly<Record<string, string>>>('an object of header fields', isObject).optional(),
  /** How far back, in ms. @default 600000 (ten minutes) */
  lastMs: duration(600_000),
  /** Time between two captured instants in ms. @default 5000 */
  everyMs: timer(5_000),
  /** Called after each captured instant, with how many there are, and the size of the text so far. */
  onProgress: func<(captured: number, of: number, characters: number) => void>().default(() => () => {}),
  /** Cancels the capture. */
  signal: withMethods<AbortSignal>('addEventListener').optional(),
  /** Epoch ms by the clock of this machine. @default Date.now */
  now: func<() => number>().default(() => Date.now),
})
export interface CaptureLastOptions extends Input<typeof CaptureLastOptions> {}

type Described = Awaited<ReturnType<typeof describe>>

/** Returns the time of the router's clock, in epoch ms. @throws CaptureFailed if no route tells it to this caller. */
async function clockOf(fetchReply: FetchReply, { routes }: Described): Promise<number> {
  // A caller who may see some users only may not read the sources, but counts.
  const counts = routes.filter(({ path, available }) => available && path.endsWith('/count'))
  for (const path of ['/sources', ...counts.map((route) => route.path)]) {
    const { value } = await fetchReply(path)
    const at = isText(value?.observed_at) ? Date.parse(value.observed_at) : Number.NaN
    if (!Number.isNaN(at)) return at
  }
  throw new CaptureFailed('nothing was captured: this key cannot read any route with the time of the router')
}

/** Returns the first and the last recorded instant of the router, in epoch ms. @throws CaptureFailed if it has no recorder. */
async function spanOf(fetchReply: FetchReply, described: Described): Promise<{ from: number; to: number }> {
  const at = await clockOf(fetchReply, described)
  const { value, refused } = await fetchReply(`/at/${at}/capabilities`)
  const incident = isObject(value?.extensions) ? value.extensions.incident : undefined
  const recording = isObject(incident) ? incident.recording : undefined
  if (!isObject(recording))
    throw new CaptureFailed(`the router has no recording of the last minutes: ${refused?.detail ?? 'no answer'}`)
  return { from: Date.parse(String(recording.from)), to: Date.parse(String(recording.to)) }
}

/**
 * Captures what `router` answered in the last minutes, from its recorder: one segment of a recording, for `openRecording`.
 *
 * @returns the text of the segment.
 * @throws CaptureFailed where the router has no recorder or refuses the caller, or the segment would be larger than 128 MiB;
 * the reason of `signal` when cancelled.
 * @example
 * await writeFile('last.ndjson', await captureLast(router, { headers: { 'x-admin-key': key }, lastMs: 600_000 }))
 */
export async function captureLast(router: CapturedRouter, options: CaptureLastOptions = {}): Promise<string> {
  const given = readOptions(CaptureLastOptions, options)
  const { headers = {}, lastMs, everyMs, onProgress, signal = new AbortController().signal, now } = given
  const fetchReply = fetcherOf(router, headers, signal)
  const described = await describe(fetchReply)
  const { from, to } = await spanOf(fetchReply, described)
  const first = Math.max(from, to - lastMs)
  const count = Math.floor((to - first) / everyMs) + 1
  let at = first
  const followed = offeredParts(described)
    .filter(({ keys }) => keys.length === 0)
    .map((part) => follow(part, (path, tag) => fetchReply(`/at/${at}${path}`, tag), signal))
  const header = recordedHeader(described, toTimestamp(first), now() - (to - first))
  let text = `${snapshotLine({ ...header, parts: [] }, false, true)}\n`
  for (let i = 0; i < count; i++) {
    // The last instant is that of the last reading.
    at = i === count - 1 ? to : first + i * everyMs
    const changes: (Change | { kind: 'seen' })[] = []
    for (const one of followed) changes.push(...(await one.read()))
    if (followed.every((one) => one.isLost())) throw new CaptureFailed('nothing was captured: no route has an answer')
    for (const change of [...changes, { kind: 'seen' }])
      text += `${JSON.stringify({ ...change, at: toTimestamp(at) })}\n`
    if (text.length > SEGMENT_BYTES) throw new CaptureFailed(`the last minutes take more than ${SEGMENT_BYTES} bytes`)
    onProgress(i + 1, count, text.length)
  }
  return text
}
