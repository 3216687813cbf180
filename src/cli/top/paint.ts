/** How a line of `top` is drawn: its colours, and no wider than the terminal. */
import { padTo, visible, widthOf } from '../text/visible.js'

/** Without colours what matters is still bold, inverse, or said. */
export interface Paint {
  bad(text: string): string
  warn(text: string): string
  ok(text: string): string
  dim(text: string): string
  bold(text: string): string
  chosen(text: string): string
}

const sgr = (code: string) => (text: string) => (text === '' ? '' : `\x1b[${code}m${text}\x1b[0m`)
const plain = (text: string) => text

export const COLOURS: Paint = {
  bad: sgr('1;31'),
  warn: sgr('33'),
  ok: sgr('32'),
  dim: sgr('2'),
  bold: sgr('1'),
  chosen: sgr('7'),
}
/** For NO_COLOR: weight and inversion are none. */
export const NO_COLOURS: Paint = { ...COLOURS, bad: sgr('1'), warn: plain, ok: plain }
/** For what is no terminal. */
export const PLAIN: Paint = { bad: plain, warn: plain, ok: plain, dim: plain, bold: plain, chosen: plain }

export interface Frame {
  readonly width: number
  /** `null`: as many lines as there are. */
  readonly height: number | null
  readonly paint: Paint
  readonly url: string
  readonly now: number
}

/** The time of day. */
export const clock = (at: number) => new Date(at).toTimeString().slice(0, 8)

/** What is said and how it is drawn. */
export type Span = readonly [text: string, paint?: (text: string) => string]

/** A line of spans, cut where the terminal ends. */
export function line(width: number, spans: readonly Span[]): string {
  let left = width
  let drawn = ''
  for (const [text, paint = plain] of spans) {
    const shown = visible(text)
    const own = widthOf(shown)
    if (own <= left) {
      drawn += paint(shown)
      left -= own
    } else {
      drawn += paint(padTo(shown, left))
      break
    }
  }
  return drawn
}
