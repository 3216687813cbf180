/** How the page writes times, ages, numbers and the names of fields. */
import { isUtc } from './preferences.js'

// Made once: a format made for each cell took half of the first draw of a long table.
const NUMBER = new Intl.NumberFormat('en')
const DAY = new Intl.DateTimeFormat('en-CA')

/** `null` is unknown, and reads so; it is never 0. */
export const countOf = (value: number | null | undefined) => (value == null ? 'unknown' : NUMBER.format(value))

/** The time of day in the chosen zone; with its date if that is not today. */
export function timeOf(at: string | number): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  const now = new Date()
  if (isUtc()) {
    const [day, time = ''] = date.toISOString().split('T')
    return now.toISOString().startsWith(day as string) ? time.slice(0, 8) : `${day} ${time.slice(0, 8)}`
  }
  const time = date.toTimeString().slice(0, 8)
  return date.toDateString() === now.toDateString() ? time : `${DAY.format(date)} ${time}`
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

/** Stops the clock of the page at an instant of an incident; `null` resumes it. */
export function pinClock(at: number | null): void {
  pinned = at
}

/** Epoch ms by this browser's clock, or the instant of an incident. */
export const clock = (): number => pinned ?? Date.now()

/** The same in one unit, for tables: `45 s`, `3 min`, `2 h`, `4 d`. */
export function shortDuration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1_000))
  if (s < 60) return `${s} s`
  const min = Math.floor(s / 60)
  if (min < 60) return `${min} min`
  const h = Math.floor(min / 60)
  return h < 48 ? `${h} h` : `${Math.floor(h / 24)} d`
}

/** How long ago that was, or how soon it is, by the clock of the page. */
export function agoOf(at: string, write = durationText): string {
  const ms = clock() - Date.parse(at)
  if (Number.isNaN(ms)) return ''
  // Two clocks are never quite the same.
  if (Math.abs(ms) < 1_500) return 'now'
  return ms > 0 ? `${write(ms)} ago` : `in ${write(-ms)}`
}

/** `superseded_count` reads as two words. */
export const spacedName = (name: string) => name.replaceAll('_', ' ')

/** Names of fields that say too little, or too much, by themselves. */
const LABELS: Readonly<Record<string, string>> = {
  staleness_ms: 'silent for',
  admission: 'admitted',
  correlation_id: 'call id',
  observed_client_ids: 'client ids',
}

/** The label of a field, without its unit, which is shown with the value. */
export const labelOf = (name: string) =>
  LABELS[name] ?? spacedName(name.replace(/_ms$|^observed_(?=\w+s$)/g, '').replace(/^oldest_age$/, 'oldest'))

/** Explanations of numbers and terms, shown on hover. */
export const HINTS: Readonly<Record<string, string>> = {
  due: 'Commands that are due for an attempt and whose client is attached.',
  'in delivery': 'Commands that were admitted and have not ended.',
  foreign: 'Replies that came from another client than the one that was called.',
  late: 'Replies that came after the call had ended.',
  'active drainers': 'Mailboxes that are being delivered right now.',
  'connection waiters': 'Connections that wait for commands at this node.',
  listener: 'Whether the node is notified of commands. A single process needs none.',
  loop: 'Whether the loop that delivers commands is running.',
  'silent for': 'Time since the node last reported.',
  'superseded count': 'How often a newer connection of its client replaced it.',
  dropped: 'Events dropped because this viewer was too slow.',
}
