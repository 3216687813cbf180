/** Incidents as files: read within their bound, written whole or not at all. */
import { open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { isSegment, segmentAt, segmentsIn } from '../../adapters/recording-directory.js'
import { INCIDENT_BYTES, type Incident } from '../../incident/format.js'
import { IncidentRefused, readIncident } from '../../incident/read.js'
import { openRecording, type Recording } from '../../incident/recording.js'
import { shown } from '../../internal/contract/checks.js'
import { UsageError } from '../arguments.js'
import { reasonOf } from '../serve.js'

/** The bytes of a file or pipe, at most `INCIDENT_BYTES`. @throws IncidentRefused for more. */
async function readBytes(path: string): Promise<Buffer> {
  const file = await open(path)
  const chunks: Buffer[] = []
  let bytes = 0
  // A pipe or a device has no size to check first.
  for await (const chunk of file.createReadStream() as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength
    if (bytes > INCIDENT_BYTES) throw new IncidentRefused('too_large', `the file has more than ${INCIDENT_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** How the first line of a segment begins. */
const SEGMENT_START = '{"kind":"snapshot"'

/** The incident or the recording at `path`. @throws an Error that names the file and says what is wrong with it. */
export async function readIncidentFile(path: string): Promise<Incident | Recording> {
  try {
    if (await isDirectory(path)) return openRecording(segmentsIn(path))
    if (isSegment(path)) return openRecording([segmentAt(path)])
    const bytes = await readBytes(path)
    if (bytes.toString('latin1', 0, SEGMENT_START.length) === SEGMENT_START)
      throw new IncidentRefused('wrong_format', 'the file is a recording: give it a name that ends in .ndjson')
    return readIncident(bytes)
  } catch (error) {
    throw new Error(`cannot open ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

/** Replaces a file atomically, readable only by its owner. Rejects, and writes nothing, once `signal` aborts. */
export async function writeWhole(path: string, text: string, signal?: AbortSignal): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    await writeFile(temporary, text, { mode: 0o600, flag: 'wx', ...(signal && { signal }) })
    signal?.throwIfAborted()
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    signal?.throwIfAborted()
    throw new Error(`cannot write ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

const isDirectory = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() === true

export const isFile = async (path: string): Promise<boolean> => (await stat(path).catch(() => null))?.isFile() === true

// Instants as a person writes them on the command line.

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Milliseconds of `90s`, `30m`, `6h` or `2d`. @throws UsageError that names the option. */
export function readSpan(name: string, text: string): number {
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const ms = Number(amount) * (UNITS[unit ?? ''] ?? Number.NaN)
  if (!(ms > 0)) throw new UsageError(`--${name} must be a time such as 30m, 6h or 2d, not ${shown(text)}`)
  return ms
}

/** Epoch ms of an ISO 8601 instant, or of that long before `now`. @throws UsageError that names the option. */
export function readSince(name: string, text: string, now: number): number {
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? now - readSpan(name, text) : at
}

/**
 * Epoch ms of an ISO 8601 instant, or the last instant up to `to` with this time of the day in the zone of this machine.
 *
 * @throws UsageError that names the option.
 */
export function readAt(name: string, text: string, to: number): number {
  const [, hours, minutes, seconds = '0'] = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(text) ?? []
  if (hours === undefined) {
    const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
    if (Number.isNaN(at))
      throw new UsageError(
        `--${name} must be a time of day such as 03:00, or an instant in ISO 8601, not ${shown(text)}`,
      )
    return at
  }
  const at = new Date(to)
  at.setHours(Number(hours), Number(minutes), Number(seconds), 0)
  if (at.getTime() > to) at.setDate(at.getDate() - 1)
  return at.getTime()
}
