/** How far a command is: one line on the standard error, if that is a terminal. */
import type { CaptureProgress } from '../../incident/capture.js'

/** A stream of the process, such as the standard error. */
export interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** Milliseconds between two texts. */
const PAUSE_MS = 100

const UNITS = ['B', 'kB', 'MB', 'GB'] as const

/** `bytes` as a person reads it, such as `1.5 MB`. */
export function bytesText(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const amount = bytes / 1_000 ** unit
  return `${unit === 0 ? amount : amount.toFixed(1)} ${UNITS[unit]}`
}

/** A number of things. */
export const counted = (count: number, one: string): string =>
  `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`

export const captureText = ({ routes, rows, bytes }: CaptureProgress): string =>
  `${counted(routes, 'route')}, ${counted(rows, 'row')}, ${bytesText(bytes)}`

export interface Progress {
  /** Replaces the line, at most every 100 ms. */
  show(text: string): void
  /** Removes the line, before something else is printed. */
  clear(): void
}

export function createProgress(err: Output, now: () => number = () => performance.now()): Progress {
  let width = 0
  let shownAt = Number.NEGATIVE_INFINITY
  return {
    show(text) {
      if (!err.isTTY || now() - shownAt < PAUSE_MS) return
      shownAt = now()
      const line = `relayscope: ${text}`.slice(0, (err.columns ?? 80) - 1)
      err.write(`\r${line.padEnd(width)}`)
      width = line.length
    },
    clear() {
      if (width > 0) err.write(`\r${' '.repeat(width)}\r`)
      width = 0
    },
  }
}
