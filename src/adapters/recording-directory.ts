/** Recordings as a directory of bounded files. */
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimes,
  writeSync,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Segment } from '../incident/recording.js'
import type { RecordingFiles } from '../incident/writer.js'
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

/** A lock that was not refreshed for so long is stale, also if a process runs under its pid. */
const STALE_MS = 60_000

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

/** Whether a process runs under `pid`. One that this user may not signal does. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** Directories that this process has locked. */
const held = new Set<string>()

const readLock = (path: string): { holder: string; refreshedAt: number } | null => {
  try {
    return { holder: readFileSync(path, 'utf8'), refreshedAt: statSync(path).mtimeMs }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

/** Creates the lock. @returns false if there is one, or another process took it away while it was empty. */
function writeLock(path: string): boolean {
  let file: number
  try {
    file = openSync(path, 'wx', 0o600)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
  try {
    writeSync(file, `${process.pid}`)
    return readLock(path)?.holder === `${process.pid}`
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
}

/**
 * Locks a directory for this process, until the returned function is called or the process exits. A lock is taken over if
 * it names no process that runs, or was not refreshed for a minute: pids repeat, as after the restart of a container.
 *
 * @throws an Error that names the process which has the lock.
 */
function lockDirectory(directory: string): () => void {
  const path = join(directory, 'recording.lock')
  const name = realpathSync(directory)
  const refuse = (holder: string) => {
    throw new Error(
      `${directory} is already being recorded to by process ${holder}. If it is not, delete ${path}, or wait a minute`,
    )
  }
  if (held.has(name)) refuse(`${process.pid}`)
  while (!writeLock(path)) takeAway(path, refuse)
  held.add(name)
  const timer = setInterval(() => {
    const now = new Date()
    utimes(path, now, now, () => {})
  }, STALE_MS / 4).unref()
  let isHeld = true
  const unlock = () => {
    if (!isHeld) return
    isHeld = false
    held.delete(name)
    clearInterval(timer)
    process.off('exit', unlock)
    if (readLock(path)?.holder === `${process.pid}`) rmSync(path, { force: true })
  }
  process.once('exit', unlock)
  return unlock
}

/** Removes a lock, or refuses to: its process runs, and has refreshed it. */
function takeAway(path: string, refuse: (holder: string) => void): void {
  const lock = readLock(path)
  if (lock === null) return
  const { holder, refreshedAt } = lock
  // Its own pid is that of an earlier process: pids repeat in containers.
  const isOther = /^[1-9]\d{0,9}$/.test(holder) && Number(holder) !== process.pid
  if (isOther && Math.abs(Date.now() - refreshedAt) < STALE_MS && isRunning(Number(holder))) refuse(holder)
  // Another process may take it away at the same time, and lock: that lock is put back.
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    if (readLock(aside)?.holder === holder) rmSync(aside)
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
  let name = ''

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
      name = join(path, `segment-${String(startedAt).padStart(15, '0')}-${process.pid}.ndjson`)
      file = await open(name, 'ax', 0o600)
    },
    async append(text) {
      if (!file) return
      const { nlink, size } = await file.stat()
      if (nlink === 0) throw new Error(`${name} was deleted while it was recorded to`)
      try {
        await file.appendFile(text)
      } catch (error) {
        // Without its first lines the segment is worth nothing, and each further attempt begins another one.
        if (size === 0) rmSync(name, { force: true })
        throw error
      }
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
