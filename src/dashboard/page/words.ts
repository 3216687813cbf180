/** How the page writes times, ages, numbers and the names of fields. */
import { isUtc } from './preferences.js'

// Made once: a format made for each cell took half of the first draw of a long table.
const NUMBER = new Intl.NumberFormat('en')

/** `null` is unknown, and reads so; it is never 0. */
export const countOf = (value: number | null | undefined) => (value == null ? 'unknown' : NUMBER.format(value))

const MINUTE_MS = 60_000

/** `2026-11-27T03:12:07.000` in the chosen zone. */
function isoIn(date: Date): string {
  const offset = isUtc() ? 0 : date.getTimezoneOffset()
  return new Date(date.getTime() - offset * MINUTE_MS).toISOString()
}

/** The time of day in the chosen zone; with its date if that is not today. */
export function timeOf(at: string | number): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  const [day = '', time = ''] = isoIn(date).split('T')
  return (isoIn(new Date()).startsWith(day) ? '' : `${day} `) + time.slice(0, 8)
}

/** `850 ms`, `4.2 s`, `3 min 10 s`, `2 h 5 min`, `3 d 4 h`; short, for tables, `4 s`, `3 min`, `2 h`, `3 d`. */
export function durationText(ms: number, isShort?: boolean): string {
  const s = Math.max(0, Math.floor(ms / 1_000))
  if (s < 10 && !isShort) return ms < 1_000 ? `${Math.max(0, Math.round(ms))} ms` : `${(ms / 1_000).toFixed(1)} s`
  const min = Math.floor(s / 60)
  const h = Math.floor(min / 60)
  const parts =
    s < 60
      ? [`${s} s`]
      : min < 60
        ? [`${min} min`, `${s % 60} s`]
        : h < 48
          ? [`${h} h`, `${min % 60} min`]
          : [`${Math.floor(h / 24)} d`, `${h % 24} h`]
  return isShort ? (parts[0] as string) : parts.join(' ')
}

let pinned: number | null = null

/** Stops the clock of the page at an instant of an incident; `null` resumes it. */
export function pinClock(at: number | null): void {
  pinned = at
}

/** Whether the clock of the page is stopped. */
export const isPinned = (): boolean => pinned !== null

/** Epoch ms by this browser's clock, or the instant of an incident. */
export const clock = (): number => pinned ?? Date.now()

/** How long ago that was, or how soon it is, by the clock of the page. */
export function agoOf(at: string, isShort?: boolean): string {
  const ms = clock() - Date.parse(at)
  if (Number.isNaN(ms)) return ''
  // Two clocks are never quite the same.
  if (Math.abs(ms) < 1_500) return isPinned() ? 'then' : 'now'
  const text = durationText(Math.abs(ms), isShort)
  return ms > 0 ? `${text} ${isPinned() ? 'before' : 'ago'}` : `in ${text}`
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

/** Explanations of numbers and terms, shown on hover and on focus. */
export const HINTS: Readonly<Record<string, string>> = {
  waiting: 'Not attempted yet. It may still be delivered before its deadline.',
  attempted: 'It is unknown whether the client received it.',
  acknowledged: 'The client received it. What it has done so far is unknown.',
  resulted: 'An authorized caller reported a result.',
  failed: 'An error was reported, or it could not be delivered.',
  expired: 'The deadline passed first.',
  cancelled: 'It was cancelled before its end.',
  rejected: 'It was rejected at admission and never queued.',
  due: 'Due for an attempt, with their client attached.',
  open: 'Admitted and not ended.',
  '95 %': 'So many of the commands ended within that time.',
  'in 3 min': 'Connects less disconnects.',
  'ended in 3 min': 'Connections that ended in the last 3 minutes, by reason.',
  'pending calls': 'Calls that wait for their reply.',
  foreign: 'Replies of another client than the one that was called.',
  late: 'Replies after the call had ended.',
  'active drainers': 'Mailboxes that are being delivered.',
  'connection waiters': 'Connections that wait for commands at this node.',
  listener: 'Whether the node is notified of commands. A single process needs none.',
  loop: 'Whether the loop that delivers commands is running.',
  'silent for': 'Time since the node last reported.',
  'superseded count': 'How often a newer connection of its client replaced it.',
  'scope id': 'Commands of one scope share a quota. By default each user is one scope.',
  'reserved commands': 'Admitted and not ended: each takes one place of the quota.',
  'waiting commands': 'Commands in the mailbox of the client that wait for an attempt.',
  Mailboxes: 'A mailbox holds the commands of one client until it takes them.',
  'attached at': 'Since when a connection takes the commands of this mailbox.',
  'instance id': 'One run of a client. A newer one takes its place.',
  dropped: 'Events that this viewer was too slow for.',
}
