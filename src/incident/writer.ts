/** Writes the segments of a recorder to `files`, which may fail or hang while the recording in memory continues. */
import { runWithin } from '../internal/async/deadline.js'

/** Where a recorder also writes its segments, such as `recordingDirectory` of `relayscope/node`. */
export interface RecordingFiles {
  /** Begins a segment, and ends the one before. `startedAt` is epoch ms by the clock of this machine. */
  begin(startedAt: number): Promise<void>
  /** Adds complete lines to the segment. What it has resolved for is kept if the process is killed. */
  append(text: string): Promise<void>
  /** Ends the segment. */
  close(): Promise<void>
}

/** Time limit for one call of `files`. */
const WRITE_MS = 5_000

export type Writer = ReturnType<typeof createWriter>

/** Never rejects. `report` gets the first error, and the first one after a text was written again. */
export function createWriter(files: RecordingFiles | undefined, report: (error: unknown) => void) {
  let isOpen = files === undefined
  /** A call that did not settle in time: no other one is made before it does. */
  let isBusy = false
  let isReported = false

  async function call(work: (to: RecordingFiles) => unknown): Promise<void> {
    if (!files) return
    const settled = (async () => work(files))().finally(() => {
      isBusy = false
    })
    isBusy = true
    const late = () => new Error(`the option "files" did not settle within ${WRITE_MS} ms`)
    try {
      await runWithin(() => settled, { ms: WRITE_MS, late })
    } catch (error) {
      isOpen = false
      if (!isReported) report(error)
      isReported = true
    }
  }

  async function append(text: string): Promise<void> {
    if (!isOpen) return
    await call((to) => to.append(text))
    if (isOpen) isReported = false
  }

  return {
    /** Whether all of the last segment was written. */
    isOpen: () => isOpen,
    append,
    /** Begins a segment with a text. */
    async begin(startedAt: number, text: () => Promise<string>): Promise<void> {
      if (isBusy) return
      isOpen = true
      await call((to) => to.begin(startedAt))
      if (isOpen) await append(await text())
    },
    /** Also where `files` has failed: it may have a lock. */
    close: () => call((to) => to.close()),
  }
}
