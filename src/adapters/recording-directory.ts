/** Recordings as a directory of bounded files. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { RecordingFiles } from '../incident/recorder.js'
import type { Segment } from '../incident/recording.js'
import {
  boundRules,
  checkOptions,
  defineBounds,
  required,
  resolveBounds,
  type Shape,
  TEXT,
} from '../internal/contract/checks.js'

/** Options of `recordingDirectory`. */
export interface RecordingDirectoryOptions {
  /** Path of the directory; created if missing, for its owner only. */
  path: string
  /** Segments that ended longer ago are deleted, in ms. @default 3600000 (one hour) */
  keepMs?: number | undefined
  /** Maximum bytes of all segments; the oldest ones are deleted. @default 268435456 (256 MiB) */
  maxBytes?: number | undefined
}

/** A directory that a recorder writes to. */
export interface RecordingDirectory extends RecordingFiles {
  /** Its segments, the oldest first, for `openRecording`. */
  segments(): Segment[]
}

const BOUNDS = defineBounds({ keepMs: 3_600_000, maxBytes: 268_435_456 })
const OPTIONS: Shape<RecordingDirectoryOptions> = { ...boundRules(BOUNDS), path: required(TEXT) }

const NAME = /^segment-(\d{15})-\d+\.ndjson$/
/** More than a recorder writes into one segment. */
const SEGMENT_BYTES = 134_217_728

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

/** Whether another process runs under `pid`. One that this user may not signal does. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) !== 'ESRCH'
  }
}

/**
 * Locks a directory for this process, until the returned function is called or the process exits. The lock of a process
 * that was killed is taken over.
 *
 * @throws an Error that names the process which has the lock.
 */
function lockDirectory(directory: string): () => void {
  const path = join(directory, 'recording.lock')
  for (;;) {
    try {
      writeFileSync(path, `${process.pid}`, { mode: 0o600, flag: 'wx' })
      break
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
    takeAway(path, directory)
  }
  const unlock = () => {
    process.off('exit', unlock)
    rmSync(path, { force: true })
  }
  process.once('exit', unlock)
  return unlock
}

/** Removes the lock of a process that does not run any more. */
function takeAway(path: string, directory: string): void {
  const read = (from: string): string => {
    try {
      return readFileSync(from, 'utf8')
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return ''
      throw error
    }
  }
  const holder = read(path)
  if (holder === '' && statSync(path, { throwIfNoEntry: false }) === undefined) return
  const isPid = /^[1-9]\d{0,9}$/.test(holder)
  if (!isPid || isRunning(Number(holder)))
    throw new Error(
      `${directory} is already being recorded to${isPid ? ` by process ${holder}` : ''}. If it is not, delete ${path}`,
    )
  // Another process may take it away at the same time, and lock: that lock is put back.
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    if (read(aside) === holder) rmSync(aside)
    else renameSync(aside, path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

/** Returns the text of a segment; '' if it was deleted, is too large or is not a regular file. */
function readSegment(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats?.isFile() && stats.size <= SEGMENT_BYTES ? readFileSync(path, 'utf8') : ''
}

/** The segment in the file `path`. */
export const segmentAt = (path: string): Segment => ({ name: path, read: () => readSegment(path) })

/** Whether the name of a file is that of a segment. */
export const isSegment = (path: string): boolean => path.endsWith('.ndjson')

/**
 * The segments in the directory `path`, the oldest first, for `openRecording`.
 *
 * @throws an Error that names a directory that cannot be read.
 */
export function segmentsIn(path: string): Segment[] {
  const names = readdirSync(path).filter((name) => NAME.test(name))
  return names.sort().map((name) => ({ name, read: () => readSegment(join(path, name)) }))
}

/** Opens a directory for a recorder: `recordingDirectory`. */
export function openRecordingDirectory(options: RecordingDirectoryOptions): RecordingDirectory {
  checkOptions(options, OPTIONS)
  const { path } = options
  const { keepMs, maxBytes } = resolveBounds(options, BOUNDS)
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const unlock = lockDirectory(path)
  let file: FileHandle | undefined

  /** Deletes segments that ended before `keepMs`, and the oldest ones beyond `maxBytes`; never the newest. */
  function prune(now: number): void {
    const names = segmentsIn(path).map(({ name }) => name)
    let bytes = names.reduce((sum, name) => sum + statSync(join(path, name)).size, 0)
    for (const [i, name] of names.slice(0, -1).entries()) {
      const endedAt = Number(NAME.exec(names[i + 1] as string)?.[1])
      if (endedAt >= now - keepMs && bytes <= maxBytes) return
      bytes -= statSync(join(path, name)).size
      rmSync(join(path, name))
    }
  }

  return {
    async begin(startedAt) {
      await file?.close()
      file = undefined
      prune(startedAt)
      file = await open(join(path, `segment-${String(startedAt).padStart(15, '0')}-${process.pid}.ndjson`), 'ax', 0o600)
    },
    async append(text) {
      await file?.appendFile(text)
    },
    async close() {
      try {
        await file?.close()
      } finally {
        file = undefined
        unlock()
      }
    },
    segments: () => segmentsIn(path),
  }
}
