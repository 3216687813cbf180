/** Instants that can be shown: what is recorded, how a typed time is read, and the steps between them. */
import type { IncidentBanner } from '../../incident/inspectors.js'
import { goTo } from './address.js'
import { hasRecorder, incidentIn, openedIncident, recordedPath } from './answers.js'
import { currentInstant, present } from './fetch-route.js'
import { isUtc } from './preferences.js'
import { pinClock } from './words.js'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** What the router says of the instant that is shown, by whose clock ages are; `undefined` for the present. */
export function shownIncident(): IncidentBanner | undefined {
  const instant = currentInstant()
  const incident = instant === null ? openedIncident() : incidentIn(recordedPath(instant))
  pinClock(incident ? Date.parse((incident.clocks.node ?? incident.clocks.observer).to) : instant)
  return incident
}

/** The span that is recorded, as far as it was asked for; `null` if unknown. */
export function spanOf(incident: IncidentBanner | undefined): { from: number; to: number } | null {
  const { recording } = incident ?? openedIncident() ?? {}
  return recording ? { from: Date.parse(recording.from), to: Date.parse(recording.to) } : null
}

/** The latest instant that can be chosen: the end of an opened recording, or the present. */
const latest = (): number => (hasRecorder() ? null : spanOf(openedIncident())?.to) ?? present()

/** Shows `instant`, within what is known to be recorded; the end of a live router's recording is the present. */
export function choose(instant: number): void {
  const { from, to } = spanOf(shownIncident()) ?? { from: 0, to: present() }
  if (instant < to || !hasRecorder()) goTo(Math.min(to, Math.max(from, instant)))
  else goTo(null)
}

/** Shows the full minute before or after the instant. */
export function stepMinutes(by: -1 | 1): void {
  const now = currentInstant() ?? latest()
  choose((by < 0 ? Math.ceil(now / MINUTE_MS) - 1 : Math.floor(now / MINUTE_MS) + 1) * MINUTE_MS)
}

/**
 * The instant that `text` names, in epoch ms: `-5m`, `14:03`, `14:03:20` (the latest one, in the chosen zone), a date with a
 * time, or epoch ms. `NaN` for another text.
 */
export function instantIn(text: string): number {
  const now = latest()
  const [, count, unit] = /^-\s*([\d.]+)\s*(s|m|min|h)$/.exec(text) ?? []
  if (count) return now - Number(count) * (unit === 's' ? 1_000 : unit === 'h' ? 60 * MINUTE_MS : MINUTE_MS)
  if (/^\d{12,}$/.test(text)) return Number(text)
  const zone = isUtc() ? 'Z' : ''
  if (!/^\d?\d:\d\d(:\d\d)?$/.test(text)) {
    const date = text.replace(' ', 'T')
    return Date.parse(/T[\d:.]+$/.test(date) ? date + zone : date)
  }
  const offset = isUtc() ? 0 : new Date(now).getTimezoneOffset() * MINUTE_MS
  const today = new Date(now - offset).toISOString().slice(0, 11)
  const at = Date.parse(`${today}${text.replace(/^\d:/, '0$&')}${zone}`)
  return at > now ? at - DAY_MS : at
}
