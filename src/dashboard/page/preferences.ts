/** The preferences of this browser: time zone, theme, and whether lists move. Stored only after a choice. */

const STORED = 'relayscope.'

/** Storage may be forbidden to the page. */
function kept(name: string): string | null {
  try {
    return localStorage.getItem(STORED + name)
  } catch {
    return null
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(STORED + name, value)
  } catch {
    // It lasts as long as the page then.
  }
}

let utc = kept('zone') === 'utc'
let theme = kept('theme') ?? ''

export const isUtc = () => utc

export function setUtc(value: boolean): void {
  utc = value
  keep('zone', value ? 'utc' : 'local')
}

/** `UTC`, or how far the local zone is from it: `UTC+2`, `UTC-3:30`. */
export function zoneName(): string {
  const minutes = utc ? 0 : -new Date().getTimezoneOffset()
  if (minutes === 0) return 'UTC'
  const [h, min] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  return `UTC${minutes < 0 ? '-' : '+'}${h}${min ? `:${String(min).padStart(2, '0')}` : ''}`
}

let following = kept('follow') === 'true'

/** Whether lists show new rows as they come. */
export const isFollowing = () => following

export function setFollowing(value: boolean): void {
  following = value
  keep('follow', String(value))
}

const THEMES = ['', 'light', 'dark']

/** `''` follows the system. */
export const currentTheme = () => theme

export function applyTheme(): void {
  const { dataset } = document.documentElement
  if (theme === '') delete dataset.theme
  else dataset.theme = theme
}

export function nextTheme(): void {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? ''
  keep('theme', theme)
  applyTheme()
}
