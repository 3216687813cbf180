/** How the page writes times, ages and numbers. */

// Made once: a format made for each cell took half of the first draw of a long table.
const NUMBER = new Intl.NumberFormat('en')
const DAY = new Intl.DateTimeFormat('en-CA')

/** `null` is unknown, and reads so; it is never 0. */
export const countOf = (value: number | null | undefined) => (value == null ? 'unknown' : NUMBER.format(value))

/** Local time; with its day where that is not today. */
export function timeOf(at: string | number): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  const time = date.toTimeString().slice(0, 8)
  return date.toDateString() === new Date().toDateString() ? time : `${DAY.format(date)} ${time}`
}

/** `850 ms`, `4.2 s`, `3 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  const s = Math.floor(ms / 1_000)
  if (s < 10) return `${(ms / 1_000).toFixed(1)} s`
  if (s < 60) return `${s} s`
  const min = Math.floor(s / 60)
  if (min < 60) return `${min} min ${s % 60} s`
  const h = Math.floor(min / 60)
  return h < 48 ? `${h} h ${min % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`
}

let pinned: number | null = null

/** Stops the clock of the page at an instant of an incident; `null` lets it go on. */
export function pinClock(at: number | null): void {
  pinned = at
}

/** Epoch ms by this browser's clock, or the instant of an incident. */
export const clock = (): number => pinned ?? Date.now()

/** How long ago that was, or how soon it is, by the clock of the page. */
export function agoOf(at: string | number, now = clock()): string {
  const ms = now - new Date(at).getTime()
  if (Number.isNaN(ms)) return ''
  // Two clocks are never quite the same.
  if (Math.abs(ms) < 1_500) return 'now'
  return ms > 0 ? `${durationText(ms)} ago` : `in ${durationText(-ms)}`
}

/** `superseded_count` reads as two words. */
export const spacedName = (name: string) => name.replaceAll('_', ' ')
