/** Incidents as files: read within their bound, written whole or not at all. */
import { readFileSync, statSync } from 'node:fs'
import { open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { INCIDENT_BYTES, type Incident } from '../../incident/format.js'
import { IncidentRefused, readIncident } from '../../incident/read.js'
import { SEGMENT_BYTES } from '../../incident/recording.js'
import { reasonOf } from '../serve.js'

/** The bytes of a file, at most `maxBytes`. @throws IncidentRefused for a larger one, or an Error that names the file. */
async function readBytes(path: string, maxBytes: number = INCIDENT_BYTES): Promise<Buffer> {
  try {
    const file = await open(path)
    try {
      const { size } = await file.stat()
      if (size > maxBytes) throw new IncidentRefused('too_large', `the file has more than ${maxBytes} bytes`)
      return await file.readFile()
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof IncidentRefused) throw error
    throw new Error(`cannot read ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

/** @throws an Error that names the file and says what is wrong with it. */
export async function readIncidentFile(path: string): Promise<Incident> {
  const bytes = await readBytes(path)
  try {
    return readIncident(bytes)
  } catch (error) {
    throw new Error(`cannot open ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

/** Writes `text` in place of what is there, for this user alone: nobody ever reads half of it. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const beside = `${path}.${process.pid}.tmp`
  try {
    await writeFile(beside, text, { mode: 0o600, flag: 'wx' })
    await rename(beside, path)
  } catch (error) {
    await rm(beside, { force: true })
    throw new Error(`cannot write ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

export const isDirectory = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() === true

/** The text of one segment of a recording; of one that is too large nothing. */
export const readSegment = (path: string): string =>
  statSync(path).size > SEGMENT_BYTES ? '' : readFileSync(path, 'utf8')
