/** The administrator's key: taken from the fragment or from its form, kept in memory, and for the tab only where that was asked for. */

const STORED = 'relayscope.key'

let key: string | null = null
let hadOne = false

/** Storage may be forbidden to the page; then there is none. */
function stored<T>(use: (storage: Storage) => T): T | null {
  try {
    return use(sessionStorage)
  } catch {
    return null
  }
}

const FRAGMENT = '#key='

/** The key of a link, `null` for none. What is no percent-encoding is what somebody has put there as it is. */
function givenKey(): string | null {
  if (!location.hash.startsWith(FRAGMENT)) return null
  const text = location.hash.slice(FRAGMENT.length)
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Takes a key out of the address bar, so that neither the history nor a glance at the screen has it. @returns whether there was one. */
export function takeKey(): boolean {
  const given = givenKey()
  if (given !== null) history.replaceState(null, '', '#/')
  key = given ?? key ?? stored((storage) => storage.getItem(STORED))
  hadOne ||= key !== null
  return given !== null
}

export const currentKey = () => key

/** Whether somebody has shown one: then it was refused, and not missing. */
export const hadKey = () => hadOne

export function setKey(given: string, remember: boolean): void {
  key = given
  hadOne = true
  stored((storage) => (remember ? storage.setItem(STORED, given) : storage.removeItem(STORED)))
}

/** It was refused: what is kept of it would only be refused again. */
export function dropKey(): void {
  key = null
  stored((storage) => storage.removeItem(STORED))
}
