/** Recordings as a directory; the modules of Node are loaded with the first one. */
import type { RecordingDirectory, RecordingDirectoryOptions } from './recording-directory.js'

/**
 * Opens a directory for a recorder, which only appends to it: `kill -9` leaves all that was written. One process at a time
 * writes to a directory.
 *
 * @throws TypeError or RangeError that names the option; an Error that names the process that is already writing to it, or says why it cannot be used.
 * @example
 * const files = await recordingDirectory({ path: 'recording' })
 * const recorder = createFlightRecorder({ inspectors, files })
 */
export async function recordingDirectory(options: RecordingDirectoryOptions): Promise<RecordingDirectory> {
  const { openRecordingDirectory } = await import('./recording-directory.js')
  return openRecordingDirectory(options)
}
