/** Incidents as files: read within their bound, written whole or not at all. */
import { readFileSync, statSync } from 'node:fs'
import { open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { INCIDENT_BYTES, type Incident } from '../../incident/format.js'
import { IncidentRefused, readIncident } from '../../incident/read.js'
import { SEGMENT_BYTES } from '../../incident/recording.js'
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

/** @throws an Error that names the file and says what is wrong with it. */
export async function readIncidentFile(path: string): Promise<Incident> {
  try {
    return readIncident(await readBytes(path))
  } catch (error) {
    throw new Error(`cannot open ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

/** Replaces a file atomically, readable only by its owner. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    await writeFile(temporary, text, { mode: 0o600, flag: 'wx' })
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw new Error(`cannot write ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

export const isDirectory = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() === true

/** The text of one segment of a recording; empty for one that was deleted, is too large or is no regular file. */
export function readSegment(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats?.isFile() && stats.size <= SEGMENT_BYTES ? readFileSync(path, 'utf8') : ''
}
